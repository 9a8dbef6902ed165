"""A submission: a file with a line of JSON a record, with the lines of its log, packed with xz.

It is made of records measured here, without identifying text. Read, it comes from a stranger: with
bounds on its size, its records and the depth of its JSON. A sentence refuses a record that would spoil a report;
whether a record is true is for its reviewer to say.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import os
import pwd
import re
import socket
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from harness.bounded import check_file, parse_json
from harness.errors import HandledError, InfraError
from harness.record.from_json import decode
from harness.record.outcome import OTHERS, Outcome, Stamps
from harness.record.store import compress, decompress
from harness.run.observation import LONGEST
from harness.run.provision.cache import cache_dir
from harness.run.stamps import TOP

#: Names that do not tell whose machine it is.
_COMMON = frozenset(
    (
        *("root", "user", "users", "nobody", "admin", "home", "localhost", "localdomain", "ubuntu", "debian"),
        *("nvidia", "docker", "runner", "jenkins", "jetson", "tegra", "workspace", "work", "build", "code"),
        *("repo", "project", "tmp", "temp", "main", "test", "tests"),
    )
)
#: A name this short is looked for as a word of its own: it is in too many others.
_SHORT = 4
_HEX = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
UUID = re.compile(rf"\b(?:(?:GPU|MIG)-(?:GPU-)?)?{_HEX}\b", re.IGNORECASE)
_FORMS = (
    (UUID, "<uuid>"),
    (re.compile(r"(?<![\w.)-])/(?:home|Users)/[^/\s'\":;,)\]}<>]+", re.IGNORECASE), "<home>"),
    (re.compile(r"\bssh://[\w.@:\[\]/-]*[\w\]]", re.IGNORECASE), "<host>"),
    (re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", re.IGNORECASE), "<mac>"),
    (
        re.compile(r"\bserial(?:[ _-]?(?:number|no\.?))?\s*[:=#]\s*[\w-]+", re.IGNORECASE),
        "<serial>",
    ),
)
#: An id of a container, a machine or a job: so many hexadecimal digits, letters among them.
_ID = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-f]{64}|[0-9a-f]{32}|[0-9a-f]{12})(?![0-9A-Za-z])", re.IGNORECASE)
#: The facts of a machine that a record may hold; the rest is private.
KNOWN_FACTS = frozenset(
    (
        *("engine", "engine_version", "python", "machine", "libc", "kernel", "cpu", "cpus"),
        *("gpu", "compute_capability", "gpu_memory_mib", "driver", "cuda_driver_api"),
    )
)


@dataclass(frozen=True)
class Scrubber:
    """Takes out `names`, each with its replacement; `keep` are ids that everybody may know."""

    names: tuple[tuple[str, str], ...]
    keep: frozenset[str] = frozenset()

    def text(self, text: str) -> str:
        """Return a text without identifying parts."""
        for pattern, instead in _FORMS:
            text = pattern.sub(instead, text)
        for name, instead in self.names:
            text = _pattern(name, instead).sub(instead, text)
        return _ID.sub(self._id, text)

    def data(self, data: Any) -> Any:  # noqa: ANN401  (JSON)
        """Return JSON data with every text in it scrubbed, but for the names of fields."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, dict):
            return {key: self.data(value) for key, value in data.items()}
        return [self.data(value) for value in data] if isinstance(data, list | tuple) else data

    def left_in(self, text: str) -> str:
        """Return the first of the names that a text still holds, or ""."""
        found = (name for name, instead in self.names if _pattern(name, instead).search(text))
        return next(found, "")

    def _id(self, found: re.Match[str]) -> str:
        word = found[0].casefold()
        told = word in self.keep or word.isdecimal() or word.isalpha()
        return found[0] if told else "<id>"


def scrubber(public: Iterable[str], uuids: Iterable[str] = (), keep: Collection[str] = ()) -> Scrubber:
    """Return the scrubber for texts of this machine; `public` are texts that a submission holds anyway."""
    said = "\n".join(public)
    names: dict[str, str] = {}
    for name, instead in (*((uuid, "<uuid>") for uuid in uuids), *_of_this_machine()):
        plain = name.strip().rstrip("/")
        tells = len(plain) > 1 and plain.casefold() not in _COMMON
        if tells and not _pattern(plain, instead).search(said):
            names.setdefault(plain, instead)
    longest_first = sorted(names.items(), key=lambda entry: -len(entry[0]))
    return Scrubber(tuple(longest_first), frozenset(word.casefold() for word in keep))


def without_neighbours(sensors: dict[str, str]) -> dict[str, str]:
    """Return sensors without the names of a GPU's other processes."""
    return {**sensors, OTHERS: "others"} if OTHERS in sensors else sensors


def _pattern(name: str, instead: str) -> re.Pattern[str]:
    text = re.escape(name)
    if instead == "<folder>":
        text = rf"(?<![\w.)-]){text}(?![\w-])"
    elif len(name) < _SHORT:
        text = rf"(?<![0-9A-Za-z]){text}(?![0-9A-Za-z])"
    # The domain behind a host's name tells as much.
    return re.compile(text + (r"(?:\.[0-9A-Za-z-]+)*" if instead == "<host>" else ""), re.IGNORECASE)


def _of_this_machine() -> Iterator[tuple[str, str]]:
    folders = [Path.home(), Path.cwd(), TOP, cache_dir(), Path(tempfile.gettempdir())]
    for folder in folders:
        for path in {str(folder), str(folder.resolve())} - {"/tmp", "/"}:  # noqa: S108
            yield path, "<folder>"
    # Not getfqdn, which asks a name server and may wait for it.
    for host in {socket.gethostname(), os.uname().nodename}:
        yield from ((host, "<host>"), (host.partition(".")[0], "<host>"))
    for variable in ("HOSTNAME", "USER", "LOGNAME", "USERNAME", "SUDO_USER"):
        yield os.environ.get(variable, ""), "<host>" if variable == "HOSTNAME" else "<user>"
    if home := os.environ.get("HOME"):
        yield home, "<folder>"
    with contextlib.suppress(OSError, KeyError):
        yield getpass.getuser(), "<user>"
    with contextlib.suppress(KeyError):
        entry = pwd.getpwuid(os.getuid())
        yield from (
            (entry.pw_name, "<user>"),
            (entry.pw_gecos.partition(",")[0], "<user>"),
            (entry.pw_dir, "<folder>"),
        )


SUFFIX = ".jsonl.xz"
#: Bytes of the file, of all that it holds, and of one line; lines.
MOST_PACKED, MOST_UNPACKED, MOST_OF_ONE, MOST_RECORDS = 8 << 20, 96 << 20, 24 << 20, 1000
#: As GitHub takes them.
_ACCOUNT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|-(?=[A-Za-z0-9])){0,38}")


@dataclass(frozen=True)
class Archive:
    """The content of a submission: records, stamped with their account; logs by hash; a sentence on each fault."""

    records: tuple[Outcome, ...]
    logs: Mapping[str, str]
    faults: tuple[str, ...]

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the records, as a store does."""
        yield from self.records

    def log(self, sha256: str) -> str:
        """Return the log of a record."""
        return self.logs[sha256]


def checked_account(name: str) -> str:
    """Return an account, or ""; raises HandledError for an impossible name."""
    if name and not _ACCOUNT.fullmatch(name):
        raise HandledError(f"{name!r:.60} is no account; give --account as GitHub spells it")
    return name


def write(measured: Iterable[tuple[Outcome, str]]) -> bytes:
    """Return the file of records with their logs; the same content gives the same bytes."""
    lines = (
        json.dumps({"log": log.split("\n"), "record": outcome.to_json()}, sort_keys=True, allow_nan=False)
        for outcome, log in measured
    )
    return compress("the archive", "".join(f"{line}\n" for line in lines).encode("ascii"))


def read(path: Path, account: str = "") -> Archive:
    """Read an archive, which `account` sends; raises HandledError if it is no such file."""
    records: dict[str, Outcome] = {}
    logs: dict[str, str] = {}
    faults = []
    for number, line in enumerate(_lines(path), start=1):
        try:
            outcome, log = _entry(line, account)
        except (ValueError, TypeError) as error:
            faults.append(f"line {number}: {error}")
            continue
        if outcome.cell in records:
            faults.append(f"line {number}: a second record of {outcome.cell!r:.120}")
        records[outcome.cell], logs[str(outcome.log_sha256)] = outcome, log
    return Archive(tuple(records.values()), logs, tuple(faults))


def _lines(path: Path) -> list[bytes]:
    try:
        check_file(path, MOST_PACKED)
        lines = decompress(path, MOST_UNPACKED).splitlines()
    except InfraError as error:
        sentence = str(error).partition(";")[0]
        raise HandledError(f"{sentence}; give what `trt-compat submit` wrote, unchanged") from error
    except OSError as error:
        raise HandledError(f"{path}: cannot be read: {error.strerror}") from error
    if not 0 < len(lines) <= MOST_RECORDS or max(map(len, lines)) > MOST_OF_ONE:
        raise HandledError(f"{path}: has not 1 to {MOST_RECORDS} lines of at most {MOST_OF_ONE >> 20} MiB")
    return lines


def _entry(line: bytes, account: str) -> tuple[Outcome, str]:
    """Return a record and its log; raises ValueError or TypeError for an entry to refuse."""
    text = line.decode("utf-8")
    if uuid := UUID.search(text):
        raise ValueError(f"it holds {uuid[0][:12]!r}..., which tells whose GPU it was: it was not scrubbed")
    data = parse_json(text)
    record, log = (data.get("record"), data.get("log")) if isinstance(data, dict) else (None, None)
    if not isinstance(record, dict) or not isinstance(log, list):
        raise TypeError("it is no record with its log")
    whole = "\n".join(log)
    if not whole:
        raise ValueError("its log is empty")
    sha256 = hashlib.sha256(whole.encode("utf-8")).hexdigest()
    outcome = replace(Outcome.from_json(record), key="", log_sha256=sha256)
    if fault := _fault(outcome, account):
        raise ValueError(f"{outcome.cell[:120]} {fault}")
    return outcome, whole


def _fault(outcome: Outcome, account: str) -> str:
    """Return why a record cannot be taken in, "" if it can."""
    stamps = outcome.stamps
    if not _ACCOUNT.fullmatch(stamps.account):
        return "names no account that measured it"
    if account and stamps.account.casefold() != account.casefold():
        return f"is by {stamps.account}, and {account} sends it: each sends in what they measured themselves"
    if outcome.state != "done":
        return f"is {outcome.state}: that says nothing of the engine"
    if not stamps.environment.get("gpu") or "gpu_uuid" in stamps.environment:
        return "does not say on which GPU it was measured, or says more than that"
    if not stamps.harness_commit or stamps.harness_commit.endswith("+"):
        return "was measured by a changed checkout, or by none: nobody can tell what that was"
    return ""


Measured = tuple[Outcome, str]


def submission(measured: Sequence[Measured], account: str) -> bytes:
    """Return the file of one target's records, in the name of an account.

    Records without an answer of the engine are left out. Raises HandledError if no record is left, if no GPU took part,
    and if a name of this machine is left.
    """
    told = [each for each in measured if each[0].state == "done"]
    if not told:
        why = measured[0][0].reason if measured else "`trt-compat run` of the target comes first"
        raise HandledError(f"nothing was measured: {why}")
    seen = [outcome.stamps.environment for outcome, _ in told]
    uuids = {each.get("gpu_uuid", "") for each in seen}
    if "" in uuids or len({each.get("gpu") for each in seen}) != 1:
        raise HandledError(
            "no GPU took part, or GPUs of several names: a submission is of one; "
            "what needs none the project measures itself"
        )
    clean = scrubber(_public(told), uuids, _ids(told))
    made = [_scrubbed(clean, *each) for each in told]
    texts = (f"{log}\n{json.dumps(outcome.to_json(), ensure_ascii=False)}" for outcome, log in made)
    if left := clean.left_in("\n".join(texts)):
        raise HandledError(
            f"{left!r} is still in what was to be sent: nothing was written; please report this"
        )
    return write(
        (replace(outcome, stamps=replace(outcome.stamps, account=account)), log) for outcome, log in made
    )


def _scrubbed(clean: Scrubber, outcome: Outcome, log: str) -> Measured:
    """Return a record and its log for others to read."""
    stamps = outcome.stamps
    facts = {key: value for key, value in stamps.environment.items() if key in KNOWN_FACTS}
    latency = outcome.latency
    if latency is not None:
        before, after = without_neighbours(latency.before), without_neighbours(latency.after)
        latency = replace(latency, before=before, after=after)
    public = replace(
        _without_halves(outcome),
        stamps=replace(stamps, environment=facts),
        latency=latency,
        log_sha256=None,
        key="",
    )
    # A native library's output may be no text. A folder of logs keeps it escaped like this, and it is read so again.
    whole = clean.text(log).encode("utf-8", "backslashreplace").decode()
    return decode(Outcome, clean.data(asdict(public))), whole


def _without_halves(outcome: Outcome) -> Outcome:
    """Return a record whose cut texts begin and end with a whole word, lest half a name be left."""

    def whole(text: str) -> str:
        return text if len(text) < LONGEST else text.rpartition(" ")[0]

    native = outcome.native_output
    return replace(
        outcome,
        error=whole(outcome.error),
        messages=tuple(replace(each, text=whole(each.text)) for each in outcome.messages),
        parser_errors=tuple(replace(each, text=whole(each.text)) for each in outcome.parser_errors),
        native_output=native if len(native) < LONGEST else native.partition(" ")[2],
    )


def _public(measured: Sequence[Measured]) -> Iterable[str]:
    """Yield the texts that a submission holds in any case: cells, nodes, product, versions, names of fields."""
    for outcome, _ in measured:
        stamps = outcome.stamps
        yield from (outcome.cell, stamps.image, *stamps.packages, stamps.environment.get("gpu", ""))
        yield from (node.name for node in outcome.nodes)
    yield from KNOWN_FACTS
    for kind in (Outcome, Stamps):
        yield from (field.name for field in fields(kind))


def _ids(measured: Sequence[Measured]) -> set[str]:
    """Return the hashes that a submission names in any case."""
    found: set[str] = set()
    for outcome, _ in measured:
        stamps = outcome.stamps
        digest = stamps.image_digest.partition(":")[2]
        found |= {stamps.model_sha256, stamps.recipe_sha256, stamps.run, stamps.harness_commit, digest}
    return found

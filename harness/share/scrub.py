"""Takes identifying text out of a submission: names, folders, UUIDs, ids of containers, serial numbers.

Known forms are found wherever they stand; names that only this machine knows (host, user, folders) are looked
up and found as text, in capitals or not. A name that everybody has (root, ubuntu), or that is part of the
measurement (a host called trt86), identifies no one and stays: without it a record could not be read.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import pwd
import re
import socket
import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.record.outcome import OTHERS
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
        *("trt_version", "cuda_version", "cudnn_version", "nvidia_tensorrt_version", "timing_cache"),
        *("gpu", "compute_capability", "gpu_memory_mib", "gpu_clock_mhz", "multiprocessors"),
        *("driver", "cuda_driver_api"),
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

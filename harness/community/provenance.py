"""What a submission says of itself: who measured, with which commit, on which GPU, in which image."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import re
import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from harness.errors import HandledError
from harness.record.from_json import decode
from harness.record.outcome import OTHERS
from harness.run.provision.cache import cache_dir

if TYPE_CHECKING:
    from pathlib import Path

    from harness.record.outcome import Outcome

#: Raised when the meaning of a field changes.
PROVENANCE_SCHEMA = 1
#: As GitHub takes them; "" where none was given.
_ACCOUNT = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9]|-(?=[A-Za-z0-9])){0,38})?")
_FORMS = {
    "account": _ACCOUNT,
    "commit": re.compile(r"[0-9a-f]{40}"),
    "gpu_hash": re.compile(r"[0-9a-f]{24}"),
    "compute_capability": re.compile(r"[1-9]\d?\.\d"),
    "image_digest": re.compile(r"(?:sha256:[0-9a-f]{64})?"),
    "run": re.compile(r"[0-9a-f]{12}"),
}
_LONGEST = 200
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Provenance:
    """Where a submission comes from.

    `account` is as given, "" where it was not. `gpu_hash` is salted: one GPU gives one hash on one machine, and nobody
    finds the UUID by it. `contended` are the cells that were timed while others used the GPU. `left_out` counts the
    cells that say nothing of the engine: not run, not applicable, or trouble of the machine.
    """

    account: str
    when: str
    commit: str
    harness_version: str
    target: str
    engine_version: str
    via: str
    image: str
    image_digest: str
    gpu: str
    gpu_hash: str
    compute_capability: str
    driver: str
    toolkit: str
    kernel: str
    run: str
    contended: tuple[str, ...]
    cells: int
    left_out: int
    schema: int = PROVENANCE_SCHEMA

    def to_text(self) -> str:
        """Return the file of it."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


def from_data(data: object) -> Provenance:
    """Return what a file of provenance says; raises HandledError for anything but exactly that."""
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != PROVENANCE_SCHEMA or isinstance(schema, bool):
        raise HandledError(f"its schema is {schema!r:.60}, and this harness reads {PROVENANCE_SCHEMA}")
    found = exactly(Provenance, data)
    for name, form in _FORMS.items():
        value = getattr(found, name)
        if not form.fullmatch(value):
            what = "is missing" if not value else f"is {value!r:.60}, which is none"
            raise HandledError(f"its {name} {what}")
    for name, value in asdict(found).items():
        if isinstance(value, str) and (len(value) > _LONGEST or not value.isprintable()):
            raise HandledError(f"its {name} is longer than {_LONGEST} characters, or not printable")
    return found


def exactly(kind: type[_Kind], data: Any) -> _Kind:  # noqa: ANN401  (JSON)
    """Return a dataclass of JSON data that has its fields and no others; raises HandledError, naming the place."""
    try:
        found = decode(kind, data)
        json.dumps(data, allow_nan=False)
        unknown = _unknown(data, json.loads(json.dumps(asdict(found))))  # type: ignore[call-overload]
    except (TypeError, RecursionError) as error:
        raise HandledError(str(error)) from error
    except ValueError as error:
        raise HandledError("it holds a number that is not finite") from error
    if unknown:
        raise HandledError(f"it has {unknown[:80]!r}, which means nothing here")
    return found


def _unknown(data: Any, known: Any, place: str = "") -> str:  # noqa: ANN401  (JSON)
    """Return the place of the first field that is in data and not in what was read of it, "" for none."""
    if isinstance(data, dict) and isinstance(known, dict):
        pairs = [(f"{place}.{key}".lstrip("."), key, value) for key, value in data.items()]
        for name, key, value in pairs:
            inner = _unknown(value, known[key], name) if key in known else name
            if inner:
                return inner
    elif isinstance(data, list) and isinstance(known, list):
        for one, other in zip(data, known, strict=False):
            inner = _unknown(one, other, place)
            if inner:
                return inner
    return ""


def timed_beside_others(outcome: Outcome) -> bool:
    """Tell whether other processes were on the GPU while a cell was timed."""
    latency = outcome.latency
    return bool(latency and (OTHERS in latency.before or OTHERS in latency.after))


def is_account(name: str) -> bool:
    """Tell whether this can be the name of an account."""
    return bool(name and _ACCOUNT.fullmatch(name))


def gpu_hash(uuid: str) -> str:
    """Return the hash of a GPU's UUID, salted for this machine and user; the salt is made once, in the cache folder."""
    return hmac.digest(_salt(cache_dir() / "salt"), uuid.encode(), "sha256").hex()[:24]


def _salt(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        # Another submission may be making it: who comes second reads it.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(32))
    return path.read_bytes()

"""Makes a submission of what was measured here: scrubbed, derived again from the scrubbed logs, in one file."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
import platform
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from harness import __version__
from harness.community.archive import write
from harness.community.check import rederived
from harness.community.provenance import Provenance, gpu_hash, timed_beside_others
from harness.community.scrub import KNOWN_FACTS, Scrubber, scrubber, without_neighbours
from harness.errors import HandledError
from harness.record.from_json import decode
from harness.record.outcome import End, Latency, Outcome, Stamps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.plan import Cell

    #: A cell with its record and its whole log.
    Measured = tuple[Cell, Outcome, str]

_PATIENCE = 10


def submission(measured: Sequence[Measured], *, commit: str, account: str) -> tuple[Provenance, bytes]:
    """Return the provenance and the file of a submission of one target's cells.

    Cells that say nothing of the engine are left out. Raises HandledError where none is left, where no GPU took part,
    and where something is left of this machine's names.
    """
    told = [each for each in measured if each[1].state == "done"]
    if not told:
        why = measured[0][1].reason if measured else "no cell was started"
        raise HandledError(f"nothing was measured: {why}")
    uuids = {outcome.stamps.environment.get("gpu_uuid", "") for _, outcome, _ in told}
    if uuids == {""} or len(uuids) != 1:
        raise HandledError(
            "no GPU took part, or several did: a submission is of one; what needs none the project measures itself"
        )
    (uuid,) = uuids
    clean = scrubber(_public(told), uuids, _ids(told, commit))
    made = [_scrubbed(clean, each, gpu_hash(uuid)) for each in told]
    records, logs = [outcome for outcome, _ in made], {str(each.log_sha256): log for each, log in made}
    here = not told[0][0].target.host
    provenance = _provenance(records, commit, account, len(measured) - len(told), here=here)
    provenance = decode(Provenance, clean.data(dataclasses.asdict(provenance)))
    texts = [provenance.to_text(), *(json.dumps(each.to_json(), ensure_ascii=False) for each in records)]
    if left := clean.left_in("\n".join((*texts, *logs.values()))):
        raise HandledError(
            f"{left!r} is still in what was to be sent: nothing was written; please report this"
        )
    return provenance, write(provenance, records, logs)


def _scrubbed(clean: Scrubber, measured: Measured, hashed: str) -> tuple[Outcome, str]:
    """Return a record and its log for others to read: the log scrubbed, the record made from it again."""
    cell, outcome, log = measured
    # What a native library writes may be no text. A folder of logs keeps it escaped like this, and it is read so again.
    log = clean.text(log).encode("utf-8", "backslashreplace").decode()
    facts = {
        key: clean.text(value) for key, value in outcome.stamps.environment.items() if key in KNOWN_FACTS
    }
    stamps = decode(Stamps, clean.data(dataclasses.asdict(outcome.stamps)))
    public = replace(
        outcome,
        key="",
        stamps=replace(stamps, environment=facts | {"gpu_hash": hashed}),
        latency=_clean_latency(clean, outcome.latency),
        end=decode(End, clean.data(dataclasses.asdict(outcome.end))) if outcome.end else None,
    )
    try:
        again = rederived(cell, public, log)
    except (ValueError, TypeError) as error:
        raise HandledError(f"{cell.id}: its log cannot be read again: {error}") from error
    return replace(again, log_sha256=hashlib.sha256(log.encode()).hexdigest()), log


def _clean_latency(clean: Scrubber, latency: Latency | None) -> Latency | None:
    if latency is None:
        return None
    before, after = without_neighbours(latency.before), without_neighbours(latency.after)
    alone = replace(latency, before=before, after=after)
    return decode(Latency, clean.data(dataclasses.asdict(alone)))


def _provenance(
    records: Sequence[Outcome], commit: str, account: str, left_out: int, *, here: bool
) -> Provenance:
    first = records[0]
    stamps, seen = first.stamps, first.stamps.environment
    return Provenance(
        account=account,
        when=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        commit=commit,
        harness_version=__version__,
        target=first.target,
        engine_version=stamps.engine_version,
        via=stamps.via,
        image=stamps.image,
        image_digest=stamps.image_digest,
        gpu=seen.get("gpu", ""),
        gpu_hash=seen.get("gpu_hash", ""),
        compute_capability=seen.get("compute_capability", ""),
        driver=seen.get("driver", ""),
        toolkit=_toolkit() if here else "",
        kernel=platform.release() if here else "",
        run=stamps.run,
        contended=tuple(each.cell for each in records if timed_beside_others(each)),
        cells=len(records),
        left_out=left_out,
    )


def _public(measured: Sequence[Measured]) -> Iterable[str]:
    """Yield what a submission says in any case: cells, nodes, product and versions, and the names of all fields."""
    for _, outcome, _ in measured:
        stamps = outcome.stamps
        yield from (outcome.cell, stamps.image, *stamps.packages, stamps.environment.get("gpu", ""))
        yield from (node.name for node in outcome.nodes)
    yield from KNOWN_FACTS
    for kind in (Provenance, Outcome, Stamps):
        yield from (field.name for field in dataclasses.fields(kind))


def _ids(measured: Sequence[Measured], commit: str) -> set[str]:
    """Return the hashes that a submission names in any case."""
    found = {commit, commit[:12]}
    for _, outcome, _ in measured:
        stamps = outcome.stamps
        digest = stamps.image_digest.partition(":")[2]
        found |= {stamps.model_sha256, stamps.recipe_sha256, stamps.run, stamps.harness_commit, digest}
    return found


def _toolkit() -> str:
    """Return the version of NVIDIA's container toolkit, "" where it cannot be told."""
    program = shutil.which("nvidia-ctk")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, timeout=_PATIENCE
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return next(iter(done.stdout.splitlines()), "")[:100]

"""Makes of what was measured here the file to send in: records and logs without what tells whose machine it was."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING

from harness.community.archive import write
from harness.community.scrub import KNOWN_FACTS, Scrubber, scrubber, without_neighbours
from harness.errors import HandledError
from harness.record.from_json import decode
from harness.record.outcome import Latency, Outcome, Stamps
from harness.run.observation import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    #: A record with its whole log.
    Measured = tuple[Outcome, str]


def submission(measured: Sequence[Measured], account: str) -> bytes:
    """Return the file of one target's records, in the name of an account.

    What says nothing of the engine is left out. Raises HandledError where nothing is left, where no GPU took part, and
    where something is left of this machine's names.
    """
    told = [each for each in measured if each[0].state == "done"]
    if not told:
        why = measured[0][0].reason if measured else "no cell was started"
        raise HandledError(f"nothing was measured: {why}")
    uuids = {outcome.stamps.environment.get("gpu_uuid", "") for outcome, _ in told}
    if uuids == {""} or len(uuids) != 1:
        raise HandledError(
            "no GPU took part, or several did: a submission is of one; what needs none the project measures itself"
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
    public = replace(
        _without_halves(outcome),
        stamps=replace(stamps, environment=facts),
        latency=_without_neighbours(outcome.latency),
        log_sha256=None,
        key="",
    )
    # What a native library writes may be no text. A folder of logs keeps it escaped like this, and it is read so again.
    whole = clean.text(log).encode("utf-8", "backslashreplace").decode()
    return decode(Outcome, clean.data(asdict(public))), whole


def _without_halves(outcome: Outcome) -> Outcome:
    """Return a record whose texts, where they were cut, begin and end with a whole word: nobody finds half a name."""

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


def _without_neighbours(latency: Latency | None) -> Latency | None:
    if latency is None:
        return None
    return replace(
        latency, before=without_neighbours(latency.before), after=without_neighbours(latency.after)
    )


def _public(measured: Sequence[Measured]) -> Iterable[str]:
    """Yield what a submission says in any case: cells, nodes, product and versions, and the names of all fields."""
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

"""Takes in what somebody else measured: no engine, no GPU; whatever is wrong is one sentence, and nothing is kept."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.community import repository
from harness.community.archive import Submission, read
from harness.community.check import MEMORY_MIB, SECONDS, findings
from harness.community.provenance import is_account, timed_beside_others
from harness.errors import HandledError
from harness.judge.timing import contended
from harness.record.revoked import SUBMISSIONS, revoked
from harness.record.store import Store
from harness.run.child import ChildFailed, stream
from harness.words import UNJUDGED, Class

if TYPE_CHECKING:
    from pathlib import Path

    from harness.community.provenance import Provenance
    from harness.record.outcome import Outcome

#: Seconds that a contributor's clock may be wrong.
_CLOCK = 24 * 3600.0
#: The file beside the records that says where they come from.
PROVENANCE = "provenance.json"


@dataclass(frozen=True)
class Checked:
    """A submission that holds: the records that count, whose account it is, and what to tell of it."""

    submission: Submission
    account: str
    records: tuple[Outcome, ...]
    classes: Counter[Class]
    contended: int


def check(path: Path, *, account: str = "", branch: str = "") -> Checked:
    """Hold a submission against all that it can be held against; raises HandledError, saying what is wrong and where.

    `account` is that of who sends it. A record that says nothing of the engine is left out.
    """
    found = read(path)
    provenance = found.provenance
    try:
        sender = _account(provenance, account)
        # Nothing of a commit is looked at before it is known to be the project's.
        repository.refuse_unpublished(provenance.commit, repository.main_branch(branch))
        for outcome in found.records:
            _held_against_provenance(outcome, provenance)
        classes = _classes(found)
    except HandledError as error:
        raise HandledError(f"{path}: {error}") from error
    judged = tuple(zip(found.records, classes, strict=True))
    records = tuple(outcome for outcome, cls in judged if cls not in UNJUDGED)
    if not records:
        raise HandledError(f"{path}: none of its {len(judged)} records says anything of the engine")
    beside = sum(
        bool(each.latency and contended(each.latency.before, each.latency.after)) for each in records
    )
    return Checked(found, sender, records, Counter(classes), beside)


def take_in(checked: Checked, reports: Path) -> bool:
    """Add a submission's records to a reports folder; False where they are there already.

    Raises HandledError for one that is revoked there.
    """
    submission = checked.submission
    folder = reports / SUBMISSIONS
    if why := revoked(folder).get(submission.id):
        raise HandledError(f"submission {submission.id} is revoked in {folder}: {why}")
    kept = folder / submission.id / PROVENANCE
    if kept.exists():
        return False
    kept.parent.mkdir(parents=True, exist_ok=True)
    with Store(reports, run=submission.id, worker="submission") as store:
        known = {each.cell for each in store.outcomes() if each.stamps.submission == submission.id}
        for outcome in checked.records:
            if outcome.cell not in known:
                stamps = replace(outcome.stamps, submission=submission.id, account=checked.account)
                store.append(replace(outcome, stamps=stamps), submission.logs[str(outcome.log_sha256)])
    # Last: what was killed before is taken in again, and the records that are there are not doubled.
    written = kept.with_name(f".{PROVENANCE}")
    written.write_text(replace(submission.provenance, account=checked.account).to_text(), encoding="utf-8")
    written.replace(kept)
    return True


def _account(provenance: Provenance, sender: str) -> str:
    if sender and not is_account(sender):
        raise HandledError(f"{sender!r:.60} is no account; give --account as GitHub spells it")
    named = provenance.account
    if named and sender and named.casefold() != sender.casefold():
        raise HandledError(
            f"it is by {named}, and {sender} sends it: each sends in what they measured themselves"
        )
    if not (named or sender):
        raise HandledError("it names no account; give that of who sent it with --account")
    return named or sender


def _held_against_provenance(outcome: Outcome, said: Provenance) -> None:
    stamps, seen = outcome.stamps, outcome.stamps.environment
    pairs = {
        "target": (outcome.target, said.target),
        "harness_version": (stamps.harness_version, said.harness_version),
        "commit": (stamps.harness_commit, said.commit[: len("0123456789ab")]),
        "run": (stamps.run, said.run),
        "via": (stamps.via, said.via),
        "engine_version": (stamps.engine_version, said.engine_version),
        "image": (stamps.image, said.image),
        "image_digest": (stamps.image_digest, said.image_digest),
        "gpu": (seen.get("gpu", ""), said.gpu),
        "gpu_hash": (seen.get("gpu_hash", ""), said.gpu_hash),
        "compute_capability": (seen.get("compute_capability", ""), said.compute_capability),
        "driver": (seen.get("driver", ""), said.driver),
        "contention": (timed_beside_others(outcome), outcome.cell in said.contended),
    }
    where = outcome.cell[:120]
    if stamps.harness_commit.endswith("+"):
        raise HandledError(f"{where}: was measured by a changed checkout, and nobody can tell what that was")
    for name, (recorded, told) in pairs.items():
        if recorded != told:
            raise HandledError(
                f"{where}: its {name} is {recorded!r:.80}, and the provenance says {told!r:.80}"
            )
    if outcome.state != "done":
        raise HandledError(f"{where}: is {outcome.state}: that says nothing of the engine")
    _refuse_time(where, stamps.when, said.commit)


def _refuse_time(where: str, when: str, commit: str) -> None:
    try:
        stamp = dt.datetime.fromisoformat(when).timestamp()
    except (ValueError, OverflowError) as error:
        raise HandledError(f"{where}: {when!r:.40} is no time") from error
    if stamp > time.time() + _CLOCK:
        raise HandledError(f"{where}: was measured at {when[:19]}, which is yet to come")
    if stamp < repository.committed_at(commit) - _CLOCK:
        raise HandledError(f"{where}: was measured at {when[:19]}, before its commit was made")


def _classes(found: Submission) -> list[Class]:
    """Return the class of each record, derived again; in a child, for the logs are a stranger's and cases are code."""
    items = [(outcome, found.logs[str(outcome.log_sha256)]) for outcome in found.records]
    classes: list[Class] = []
    with repository.cases_at(found.provenance.commit) as top:
        places = (top / repository.CASES, top / repository.MATRIX)
        try:
            for each in stream(findings, *places, items, seconds=SECONDS, memory_mib=MEMORY_MIB):
                if isinstance(each, Class):
                    classes.append(each)
                    continue
                raise HandledError(each + _older(found.provenance.commit))
        except ChildFailed as error:
            cell = items[len(classes)][0].cell[:120]
            raise HandledError(f"{cell}: cannot be looked at: its process {error}") from error
    return classes


def _older(commit: str) -> str:
    """Return what may explain a record that differs from its log, as the end of a sentence."""
    if repository.same_readers(commit):
        return ""
    return "; logs are read in another way since that commit: measure with today's"

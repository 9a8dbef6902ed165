"""What is sent in is held against its log, the cases and the matrix of its commit; what does not hold adds nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.community import intake
from harness.errors import HandledError
from harness.record.store import Store
from tests.community.contributors import git
from tests.community.forgeries import FORGED, forged, log, packed, records, unpacked
from tests.community.measured import UUID, make_project, send

pytestmark = pytest.mark.unit


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with one published commit."""
    return make_project(tmp_path / "project", monkeypatch)


def refused(path: Path, **how: str) -> str:
    """Return the sentence with which a file is refused."""
    with pytest.raises(HandledError) as refusal:
        intake.check(path, **how)
    said = str(refusal.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    assert len(said) < 500
    return said


def test_what_holds_is_taken_in_once_and_says_whose_it_is(project: Path, tmp_path: Path) -> None:
    path = send(project)
    checked = intake.check(path, account="Alice")
    assert intake.take_in(checked, tmp_path / "reports")
    assert not intake.take_in(checked, tmp_path / "reports")
    store = Store(tmp_path / "reports")
    outcomes = list(store.outcomes())
    assert len(outcomes) == 2
    for outcome in outcomes:
        assert (outcome.stamps.submission, outcome.stamps.account) == (checked.submission.id, "alice")
        assert "gpu_uuid" not in outcome.stamps.environment
        assert outcome.log_sha256
        assert "[stamps] " in store.log(outcome.log_sha256)
    kept = json.loads(
        (tmp_path / "reports" / "submissions" / checked.submission.id / "provenance.json").read_text()
    )
    assert kept["account"] == "alice"


def test_an_intake_that_was_killed_is_made_whole(project: Path, tmp_path: Path) -> None:
    checked = intake.check(send(project))
    half = replace(checked, records=checked.records[:1])
    intake.take_in(half, tmp_path)
    (tmp_path / "submissions" / checked.submission.id / "provenance.json").unlink()
    assert intake.take_in(checked, tmp_path)
    assert len(list(Store(tmp_path).outcomes())) == 2


@pytest.mark.parametrize("name", FORGED)
def test_a_forgery_is_refused_with_its_own_sentence(project: Path, tmp_path: Path, name: str) -> None:
    git(project, "checkout", "--quiet", "-b", "elsewhere")
    git(project, "commit", "--quiet", "--allow-empty", "-m", "mine")
    unpublished = git(project, "rev-parse", "HEAD")
    git(project, "checkout", "--quiet", "main")
    data = send(project).read_bytes()
    path = tmp_path / "forged.tar.xz"
    path.write_bytes(forged(name, data, tmp_path, unpublished))
    assert re.search(FORGED[name].said, refused(path))


def test_each_forgery_is_one(project: Path, tmp_path: Path) -> None:
    """What they are made of holds, packed by the same hands."""
    path = tmp_path / "honest.tar.xz"
    path.write_bytes(packed(unpacked(send(project).read_bytes(), tmp_path)))
    assert len(intake.check(path).records) == 2
    assert len(FORGED) > 70
    assert len({forgery.said for forgery in FORGED.values()}) > 50


def test_a_failure_is_taken_in_as_one_and_cannot_be_told_as_a_success(project: Path, tmp_path: Path) -> None:
    path = send(project, fails=True)
    assert set(intake.check(path).classes) == {"build_failed"}
    files = unpacked(path.read_bytes(), tmp_path)
    for change in (
        records(lambda record: record.update(failed_phase=None)),
        records(lambda record: record.update(error="")),
        records(lambda record: record.update(parser_errors=[])),
        log(b"0.200 s failed", b"0.200 s"),
    ):
        path.write_bytes(packed(change(files)))
        assert "and its log says" in refused(path)


def test_each_sends_in_what_they_measured_themselves(project: Path) -> None:
    path = send(project)
    assert "it is by alice, and mallory sends it" in refused(path, account="mallory")
    assert "is no account" in refused(path, account="a b")
    nobody = send(project, account="")
    assert "it names no account" in refused(nobody)
    assert intake.check(nobody, account="bob").account == "bob"


def test_cases_that_changed_since_are_those_of_the_commit(project: Path) -> None:
    """A submission outlives the case it is of: what it measured is what the commit says."""
    path = send(project)
    case = project / "cases" / "toy.py"
    text = case.read_text(encoding="utf-8")
    case.write_text(text.replace("[1, 4]", "[1, 5]"), encoding="utf-8")
    git(project, "commit", "--quiet", "--all", "-m", "another model")
    assert len(intake.check(path).records) == 2
    case.write_text("raise SystemExit(1)", encoding="utf-8")
    assert len(intake.check(path).records) == 2


def test_cases_that_hang_cost_a_sentence(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = send(project)
    (project / "cases" / "toy.py").write_text("while True: pass", encoding="utf-8")
    git(project, "commit", "--quiet", "--all", "--amend", "-m", "a case that hangs")
    monkeypatch.setattr(intake, "SECONDS", 1.0)
    files = unpacked(path.read_bytes(), project / ".git")
    now = git(project, "rev-parse", "HEAD").encode()
    was = json.loads(files["submission/provenance.json"])["commit"].encode()
    changed = {name: data.replace(was, now).replace(was[:12], now[:12]) for name, data in files.items()}
    changed = log(b"[INFO]", b"[INFO]")(changed)
    path.write_bytes(packed(changed))
    assert "cannot be looked at: its process was not done after 1 s" in refused(path)


def test_what_was_revoked_is_left_out_everywhere(project: Path, tmp_path: Path) -> None:
    checked, other = (
        intake.check(send(project)),
        intake.check(send(project, account="bob", uuid=f"{UUID[:-1]}2")),
    )
    one, two = tmp_path / "one", tmp_path / "two"
    intake.take_in(checked, one)
    intake.take_in(other, one)
    revoked = one / "submissions" / "revoked.yaml"
    revoked.write_text(f"{checked.submission.id}: measured with a patched driver\n", encoding="utf-8")
    assert {outcome.stamps.account for outcome in Store(one).outcomes()} == {"bob"}
    with Store(two) as store:
        assert store.absorb(Store(one)) == 2
    with pytest.raises(HandledError, match=r"is revoked in .*: measured with a patched driver"):
        intake.take_in(checked, one)
    # Nor does it come back by another folder's records.
    third = tmp_path / "third"
    intake.take_in(checked, third)
    with Store(one) as store:
        assert store.absorb(Store(third)) == 0


@pytest.mark.parametrize(
    "text", ["- 0123456789ab\n", "0123456789ab:\n", "0123456789ab: {why: x}\n", "x: y\nx: z\n"]
)
def test_a_list_of_the_revoked_that_says_something_else_is_refused(tmp_path: Path, text: str) -> None:
    """To guess could let count what somebody took back."""
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "revoked.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(HandledError, match=r"revoked.yaml: is no list of ids"):
        list(Store(tmp_path).outcomes())

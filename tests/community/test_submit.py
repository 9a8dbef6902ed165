"""What is sent says what was measured and not on whose machine; what cannot be told from it is not sent at all."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.community import intake, repository, scrub
from harness.community import submit as submitting
from harness.community.provenance import gpu_hash
from harness.community.scrub import Scrubber, scrubber, without_neighbours
from harness.community.submit import submission
from harness.errors import HandledError, InfraError
from harness.record.outcome import OTHERS, Outcome
from harness.run import commit
from tests.community.contributors import git
from tests.community.forgeries import unpacked
from tests.community.measured import UUID, cells, make_project, measure, send

pytestmark = pytest.mark.unit

HOST, USER, LOGIN, HOME = "heartofgold", "zaphod-b", "slartibartfast", "/srv/people/zb"
#: What nobody is to learn, as a machine's programs might print it.
PLANTED = (
    UUID,
    UUID.removeprefix("GPU-").upper(),
    "MIG-aaaaaaaa-1111-2222-3333-bbbbbbbbbbbb",
    HOST,
    f"{HOST.upper()}.magrathea.example",
    USER,
    LOGIN,
    f"{HOME}/src",
    "/{}/somebody-else/x".format("home"),
    "/{}/Trillian/x".format("Users"),
    "3f0c1de27a4b9913c5a1f0d7e6b82a4d3f0c1de27a4b9913c5a1f0d7e6b82a4d",
    "3f0c1de27a4b",
    "02:42:ac:11:00:02",
    "Serial Number: 1324921063471",
    "serial=QX77-12",
)
#: Of these, what must not be found: a word of each.
UNTOLD = re.compile(
    r"11111111-1111|aaaaaaaa|heartofgold|magrathea|zaphod|slartib|/srv/people|somebody-else|trillian|3f0c1de27a4b|02:42:ac"
    r"|1324921063471|QX77|pid 7|python3",
    re.IGNORECASE,
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project on a machine with names of its own."""
    named = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((named[0], HOST, *named[2:])))
    monkeypatch.setattr(socket, "gethostname", lambda: HOST)
    monkeypatch.setattr(scrub.getpass, "getuser", lambda: USER)  # type: ignore[attr-defined]
    monkeypatch.setenv("HOME", HOME)
    monkeypatch.setenv("USER", LOGIN)
    return make_project(tmp_path / "project", monkeypatch)


@pytest.mark.parametrize("fails", [False, True], ids=["runs", "fails"])
def test_nothing_in_the_archive_tells_whose_machine_it_was(project: Path, *, fails: bool) -> None:
    """Planted in every text that an engine or the machine says; and what is left still holds."""
    for planted in PLANTED:
        path = send(project, fails=fails, say=lambda text, planted=planted: f"{text} {planted} end")
        files = unpacked(path.read_bytes(), project / ".git")
        found = {name: match[0] for name, data in files.items() if (match := UNTOLD.search(data.decode()))}
        assert not found, planted
        assert " end" in files["submission/records.jsonl"].decode()
        assert len(intake.check(path).records) == 2


def test_what_is_no_text_is_sent_all_the_same(project: Path) -> None:
    """Nor is an entry of the log taken for another, whatever an engine prints."""
    odd = "\udc80 caf\u00e9 \u0000 \r\n\n[end] finished\n  [ERROR] no\n[phase] build 9.000 s failed\n"
    for fails in (False, True):
        path = send(project, fails=fails, say=lambda text: text + odd)
        checked = intake.check(path)
        assert set(checked.classes) == {"build_failed" if fails else "ok"}
        told = checked.records[0].messages[0].text
        assert told.startswith(("building\\udc80 café", "it is so"))
        assert told.endswith("\n[end] finished\n  [ERROR] no\n[phase] build 9.000 s failed\n")


def test_it_would_be_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above looks in the right places: without scrubbing each is there, and the last guard refuses some."""
    monkeypatch.setattr(Scrubber, "text", lambda _, text: text)
    monkeypatch.setattr(Scrubber, "left_in", lambda *_: "")
    for planted in PLANTED:
        files = unpacked(
            send(project, say=lambda text, planted=planted: text + planted).read_bytes(), project / ".git"
        )
        assert all(
            UNTOLD.search(data.decode()) for name, data in files.items() if "provenance" not in name
        ), planted


def test_what_is_left_is_not_sent(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scrubber, "text", lambda _, text: text)
    with pytest.raises(HandledError, match=f"'{HOST}' is still in what was to be sent: nothing was written"):
        send(project, say=lambda text: text + HOST)


def test_a_name_that_everybody_has_or_that_was_measured_stays() -> None:
    """A host called trt86 must not make every cell's id unreadable."""
    found = scrubber(["toy[relu]-trt86"])
    named = replace(found, names=())
    for text in (
        "root",
        "/{}/x".format("root"),
        "square root of trt86",
        "0x3f0c1de27a4b9913",
        "123456789012",
        "10.2.0.19",
    ):
        assert named.text(text) == text
    names = {name for name, _ in scrubber(["heartofgold-7"], keep=()).names}
    assert "root" not in names


def test_a_short_name_is_a_word_of_its_own() -> None:
    clean = Scrubber((("al", "<user>"),))
    assert clean.text("al calls al-2, also normal") == "<user> calls <user>-2, also normal"


def test_the_address_of_a_targets_host_is_taken_out() -> None:
    said = "Docker does not answer at ssh://me@orin.example:22/run/docker.sock: ssh: no answer"
    assert Scrubber(()).text(said) == "Docker does not answer at <host>: ssh: no answer"


def test_ids_that_everybody_may_know_stay() -> None:
    clean = Scrubber((), frozenset({"0a1b2c3d4e5f"}))
    assert (
        clean.text("0a1b2c3d4e5f 0a1b2c3d4e50 deadbeefdead 0A1B2C3D4E5F")
        == "0a1b2c3d4e5f <id> deadbeefdead 0A1B2C3D4E5F"
    )


def test_neighbours_are_counted_and_not_named() -> None:
    assert without_neighbours({OTHERS: "a (pid 1), b (pid 2)"}) == {OTHERS: "2 of others"}
    assert without_neighbours({"power_w": "70"}) == {"power_w": "70"}


def test_contention_is_said(project: Path) -> None:
    path = send(project, uuid=f"{UUID[:-1]}9")
    checked = intake.check(path)
    assert (checked.contended, len(checked.submission.provenance.contended)) == (2, 2)
    assert "python3" not in unpacked(path.read_bytes(), project / ".git")["submission/records.jsonl"].decode()
    assert intake.check(send(project)).contended == 0


def test_a_gpu_has_one_hash_on_a_machine_and_another_on_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the salt is its owner's alone."""
    hashes = []
    for machine in ("one", "other"):
        monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(tmp_path / machine))
        hashes += [gpu_hash(UUID), gpu_hash(UUID), gpu_hash(f"{UUID[:-1]}2")]
        assert (tmp_path / machine / "salt").stat().st_mode & 0o777 == 0o600
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 4


def test_the_same_measurement_gives_the_same_records_and_logs(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = [measure(cell) for cell in cells(project)]
    whole = commit.git("rev-parse", "HEAD")
    monkeypatch.setattr(submitting, "_toolkit", lambda: "")
    made = [submission(measured, commit=whole, account="alice")[1] for _ in range(2)]
    kept = [
        {name: data for name, data in unpacked(data, project / ".git").items() if "provenance" not in name}
        for data in made
    ]
    assert kept[0] == kept[1]


def infra(measured: Any) -> Any:
    """Return a cell as a machine in trouble leaves it."""
    cell, outcome, log = measured
    return cell, replace(Outcome.blank(cell, "infra_error", "no driver", outcome.stamps)), log


def test_what_says_nothing_of_the_engine_is_not_sent(project: Path) -> None:
    one, other = (measure(cell) for cell in cells(project))
    provenance, _ = submission([one, infra(other)], commit="0" * 40, account="")
    assert (provenance.cells, provenance.left_out) == (1, 1)
    with pytest.raises(HandledError, match="nothing was measured: no driver"):
        submission([infra(one), infra(other)], commit="0" * 40, account="")


def test_a_submission_is_of_one_gpu(project: Path) -> None:
    one, other = cells(project)
    for uuids in (("", ""), (UUID, f"{UUID[:-1]}2")):
        measured = [measure(cell, uuid=uuid) for cell, uuid in zip((one, other), uuids, strict=True)]
        with pytest.raises(HandledError, match="no GPU took part, or several did"):
            submission(measured, commit="0" * 40, account="")


def test_only_a_clean_and_published_commit_is_measured(project: Path) -> None:
    assert repository.clean_commit(repository.main_branch()) == git(project, "rev-parse", "HEAD")
    for branch, said in (("nowhere", "has no branch 'nowhere'"), ("--help", "has no branch '--help'")):
        with pytest.raises(HandledError, match=said):
            repository.main_branch(branch)
    (project / "cases" / "toy.py").write_text("# changed\n", encoding="utf-8")
    commit.harness_commit.cache_clear()
    with pytest.raises(HandledError, match=r"is changed, and nobody could tell"):
        repository.clean_commit("main")
    git(project, "checkout", "--quiet", "-b", "mine")
    git(project, "commit", "--quiet", "--all", "-m", "mine")
    commit.harness_commit.cache_clear()
    with pytest.raises(HandledError, match=r"is not on main: only what the project published counts"):
        repository.clean_commit("main")


def test_no_checkout_is_refused(project: Path) -> None:
    (project / ".git").rename(project / "gone")
    commit.harness_commit.cache_clear()
    with pytest.raises(HandledError, match="is no checkout of the project"):
        repository.clean_commit("main")


def test_where_the_file_cannot_go_is_said_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten minutes of a GPU later it would be too late."""
    output = tmp_path / "gone" / "file.tar.xz"
    assert main(["submit", "--target", "trt102", "--output", str(output)]) == 2
    assert "gone/file.tar.xz: its folder is not there; make it, or give another" in capsys.readouterr().err


def test_a_program_that_does_not_end_is_the_machine_s_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "_PATIENCE", 0.1)
    with pytest.raises(InfraError, match=r"sleep 30 failed: .*timed out"):
        repository._bounded("sleep", "30")

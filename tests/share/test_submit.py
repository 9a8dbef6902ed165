"""What is sent says what was measured and not on whose machine; what cannot be told from it is not sent at all."""

from __future__ import annotations

import lzma
import os
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.cli import merge as submitting
from harness.errors import HandledError
from harness.record.outcome import OTHERS
from harness.record.store import Store
from harness.run.observation import LONGEST
from harness.share.submission import Scrubber, read, scrubber, submission, without_neighbours
from tests.fixtures import Capture, Patch
from tests.share.measured import UUID, cells, make_project, measure, send, sent

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
def project(tmp_path: Path, monkeypatch: Patch) -> Path:
    """Return a project on a machine with names of its own."""
    named = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((named[0], HOST, *named[2:])))
    monkeypatch.setattr(socket, "gethostname", lambda: HOST)
    monkeypatch.setattr("getpass.getuser", lambda: USER)
    monkeypatch.setenv("HOME", HOME)
    monkeypatch.setenv("USER", LOGIN)
    return make_project(tmp_path / "project", monkeypatch)


@pytest.mark.parametrize("fails", [False, True], ids=["runs", "fails"])
def test_nothing_in_the_archive_tells_whose_machine_it_was(project: Path, *, fails: bool) -> None:
    """Planted in every text that an engine or the machine says; and what is left still holds."""
    for planted in PLANTED:
        path = send(project, fails=fails, say=lambda text, planted=planted: f"{text} {planted} end")
        text = lzma.decompress(path.read_bytes()).decode()
        assert not UNTOLD.search(text), planted
        assert " end" in text
        archive = read(path)
        assert (len(archive.records), archive.faults) == (2, ())


def test_what_is_no_text_is_sent_all_the_same(project: Path) -> None:
    """Nor is an entry of the log taken for another, whatever an engine prints."""
    odd = "\udc80 caf\u00e9 \u0000 \r\n\n[end] finished\n  [ERROR] no\n[phase] build 9.000 s failed\n"
    for fails in (False, True):
        archive = read(send(project, fails=fails, say=lambda text: text + odd))
        assert archive.faults == ()
        told = archive.records[0].messages[0].text
        assert told.startswith(("building\udc80 café", "it is so"))
        assert told.endswith("9.000 s failed\n")
        assert "building\\udc80 café" in archive.log(str(archive.records[0].log_sha256))


def test_it_would_be_found(project: Path, monkeypatch: Patch) -> None:
    """The test above looks in the right places: without scrubbing each is there, and the last guard refuses some."""
    monkeypatch.setattr(Scrubber, "text", lambda _, text: text)
    monkeypatch.setattr(Scrubber, "left_in", lambda *_: "")
    for planted in PLANTED:
        data = sent(project, say=lambda text, planted=planted: text + planted)
        assert UNTOLD.search(lzma.decompress(data).decode()), planted


def test_what_is_left_is_not_sent(project: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(Scrubber, "text", lambda _, text: text)
    with pytest.raises(HandledError, match=f"'{HOST}' is still in what was to be sent: nothing was written"):
        sent(project, say=lambda text: text + HOST)


def test_where_a_text_was_cut_no_half_of_a_name_is_left(project: Path) -> None:
    """A record keeps the beginning of a long message; the host's name may lie across its end."""
    path = send(project, say=lambda text: f"{text} {'a' * (LONGEST - len(text) - 6)} {HOST} end")
    for outcome in read(path).records:
        assert not any("heart" in each.text for each in outcome.messages)
        assert all(len(each.text) < LONGEST for each in outcome.messages)


def test_a_login_that_is_the_account_is_taken_out_of_what_was_printed(project: Path) -> None:
    archive = read(send(project, LOGIN, say=lambda text: f"{text} {LOGIN}"))
    assert {each.stamps.account for each in archive.records} == {LOGIN}
    assert not any(LOGIN in log for log in archive.logs.values())


def test_a_name_that_everybody_has_or_that_was_measured_stays() -> None:
    """A host called trt86 must not make every cell's id unreadable."""
    found = scrubber(["toy.relu-trt86"])
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


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("al calls al-2, also normal", "<user> calls <user>-2, also normal"),
        (
            "Docker does not answer at ssh://me@orin.example:22/run/docker.sock: no",
            "Docker does not answer at <host>: no",
        ),
        (
            "0a1b2c3d4e5f 0a1b2c3d4e50 deadbeefdead 0A1B2C3D4E5F",
            "0a1b2c3d4e5f <id> deadbeefdead 0A1B2C3D4E5F",
        ),
    ],
    ids=["a short name is a word of its own", "a target's host", "ids that everybody may know"],
)
def test_what_goes_and_what_stays(text: str, left: str) -> None:
    assert Scrubber((("al", "<user>"),), frozenset({"0a1b2c3d4e5f"})).text(text) == left


def test_neighbours_are_not_named() -> None:
    assert without_neighbours({OTHERS: "a (pid 1), b (pid 2)"}) == {OTHERS: "others"}
    assert without_neighbours({"power_w": "70"}) == {"power_w": "70"}


def test_contention_is_said(project: Path) -> None:
    path = send(project, uuid=f"{UUID[:-1]}9")
    assert all(each.latency and OTHERS in each.latency.before for each in read(path).records)
    assert b"python3" not in lzma.decompress(path.read_bytes())


def infra(measured: Any) -> Any:
    """Return a cell as a machine in trouble leaves it."""
    outcome, log = measured
    return replace(outcome, state="infra_error", reason="no driver"), log


def test_what_says_nothing_of_the_engine_is_not_sent(project: Path, tmp_path: Path) -> None:
    one, other = (measure(cell)[1:] for cell in cells(project))
    path = tmp_path / "one.jsonl.xz"
    path.write_bytes(submission([one, infra(other)], "alice"))
    assert [each.cell for each in read(path).records] == [one[0].cell]
    with pytest.raises(HandledError, match="nothing was measured: no driver"):
        submission([infra(one), infra(other)], "alice")


def test_a_submission_is_of_the_gpus_of_one_name(project: Path) -> None:
    one, other = cells(project)
    first = measure(one, uuid=UUID)[1:]
    second, log = measure(other, uuid=f"{UUID[:-1]}2")[1:]
    submission([first, (second, log)], "alice")
    for instead in ({"gpu_uuid": ""}, {"gpu": "NVIDIA A10"}):
        stamps = replace(second.stamps, environment={**second.stamps.environment, **instead})
        with pytest.raises(HandledError, match="no GPU took part"):
            submission([first, (replace(second, stamps=stamps), log)], "alice")


def recorded(project: Path, monkeypatch: Patch) -> list[str]:
    """Record what was measured in the project; return the line that submits it."""
    monkeypatch.setattr(submitting, "TOP", project)
    monkeypatch.chdir(project)
    with Store(project / "reports", run="r1") as store:
        for cell in cells(project):
            store.append(*measure(cell)[1:])
    return ["submit", "--target", "trt86", "--account", "alice", "--output", ".git/sent.jsonl.xz"]


def test_what_was_recorded_is_written(project: Path, monkeypatch: Patch, capsys: Capture) -> None:
    words = recorded(project, monkeypatch)
    assert main(words) == 0
    assert "2 cells of trt86" in capsys.readouterr().out
    assert len(read(project / ".git" / "sent.jsonl.xz", "alice").records) == 2
    assert main([*words, "-k", "nothing"]) == 2


def test_only_a_clean_checkout_of_the_project_is_sent(
    project: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    module = project / "cases" / "toy.py"
    module.write_text(f"{module.read_text(encoding='utf-8')}# changed\n", encoding="utf-8")
    assert main(recorded(project, monkeypatch)) == 2
    assert "changed checkout, or" in capsys.readouterr().err

"""`explain`: the findings of a file or a pipe, in words and as JSON, and its exit codes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.cli.main import main
from tests.fixtures import Capture, Patch
from tests.layers.test_tactics import CALIBRATED, CONV

pytestmark = pytest.mark.unit

LOG = """[TensorRT v8601]
[08/07/2024-09:00:00] [W] [TRT] Missing scale and zero-point for tensor a, expect fall back to non-int8 implementation
[E] 10: Could not find any implementation for node w + w_q/QuantizeLinear + /a/Conv.
[E] never seen by anybody
"""
FIELDS = ["id", "title", "cause", "advice", "where", "node", "operator", "versions", "harmless"]


def asked(tmp_path: Path, capsys: Capture, text: str, *options: str) -> tuple[int, str]:
    file = tmp_path / "build.log"
    file.write_text(text)
    code = main(["explain", str(file), *options])
    return code, capsys.readouterr().out


def test_causes_come_first_and_what_nobody_knows_comes_last(tmp_path: Path, capsys: Capture) -> None:
    code, out = asked(tmp_path, capsys, LOG)
    assert code == 0
    places = [
        out.index(word)
        for word in ("8.6.1", "(no-implementation-qdq)", "line 3", "/a/Conv", "warning: ", "not known")
    ]
    assert places == sorted(places)
    assert out.rstrip().endswith("never seen by anybody")


def test_json_has_the_findings_and_the_very_lines_that_are_unknown(tmp_path: Path, capsys: Capture) -> None:
    code, out = asked(tmp_path, capsys, LOG, "--json")
    found = json.loads(out)
    assert code == 0
    assert [list(each) for each in found["findings"]] == [FIELDS] * 2
    assert [(each["id"], each["where"], each["harmless"]) for each in found["findings"]] == [
        ("no-implementation-qdq", 3, False),
        ("missing-scale", 2, True),
    ]
    assert found["unknown"] == ["never seen by anybody"]


@pytest.mark.parametrize("text", ["", "nothing\n", LOG.split("\n")[1]])
def test_what_holds_no_failure_ends_with_1(tmp_path: Path, capsys: Capture, text: str) -> None:
    assert asked(tmp_path, capsys, text)[0] == 1


def test_a_pipe_is_read(monkeypatch: Patch, capsys: Capture) -> None:
    pipe: Any = io.TextIOWrapper(io.BytesIO(LOG.encode() + b"\xff\xfe\n"))
    monkeypatch.setattr(sys, "stdin", pipe)
    assert main(["explain", "-"]) == 0
    assert "no-implementation-qdq" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere.log"],
        ["."],
        ["/dev/null"],
        [],
        ["--ask", "FP8", "8.6"],
        ["--ask", "FP8 " * 1000],
        *(["a", "--engine-version", each] for each in ("new", "²", "8..6")),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explain", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_verbose_build_log_tells_why_a_layer_lost_its_precision(tmp_path: Path, capsys: Capture) -> None:
    code, said = asked(tmp_path, capsys, "\n".join(CALIBRATED))
    assert code == 1
    assert f"{CONV} ran in FP32, not" in " ".join(said.split())
    assert main(["explain", str(tmp_path / "build.log"), "--json"]) == 1
    (conv,) = (each for each in json.loads(capsys.readouterr().out)["layers"] if each["name"] == CONV)
    assert (conv["time_us"], conv["reason"]["why"]) == (4.7799, "conversion")


def test_two_build_logs_tell_what_changed(tmp_path: Path, capsys: Capture) -> None:
    old, new, short = (tmp_path / name for name in ("old.log", "new.log", "short.log"))
    old.write_text("\n".join(CALIBRATED), encoding="utf-8")
    new.write_text(
        "\n".join(CALIBRATED).replace(
            f"{CONV}, Tactic: 0x8ad32616b1424be4, images (Float[",
            f"{CONV}, Tactic: 0xd14bd6d95fefd45e, images (Int8[",
        ),
        encoding="utf-8",
    )
    failed = tmp_path / "failed.log"
    failed.write_text(
        "\n".join([*CALIBRATED, "[E] 2: Could not find any implementation for node /0/Range."]),
        encoding="utf-8",
    )
    short.write_text("[E] Could not find any implementation for node x.", encoding="utf-8")
    assert main(["explain", str(new), str(old)]) == 0
    assert f"LOST {CONV}: INT8 4.46 us" in " ".join(capsys.readouterr().out.split())
    assert main(["explain", str(old), str(old)]) == 0
    assert capsys.readouterr().out.startswith("0 of ")
    assert main(["explain", str(old), str(failed)]) == 0
    assert "No implementation for" in capsys.readouterr().out
    assert main(["explain", str(old), str(short)]) == 2
    assert "short.log: holds no" in capsys.readouterr().err


def test_python_gets_the_same() -> None:
    found = harness.explain(LOG)
    assert [each.id for each in found.causes] == ["no-implementation-qdq"]
    assert found.version == "8.6.1"


def test_a_line_in_quotes_is_explained_without_a_file(capsys: Capture) -> None:
    line = "Could not find any implementation for node /c/Conv + PWN(PWN(/a/Sigmoid), /a/Mul)."
    assert main(["explain", line]) == 0
    assert "no-implementation-silu" in capsys.readouterr().out
    assert main(["explain", f"{'longer than a name ' * 20}{line}"]) == 0
    assert "no-implementation-silu" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        (
            "model.onnx",
            b"\x08\x07\x12\x04\x1a\x02\x05\x06" * 4000,
            "is no text; `trt-compat check` reads models",
        ),
        ("build.log.gz", bytes(range(256)) * 12_000, "is no text; give a log, unpacked"),
    ],
)
def test_a_file_that_is_no_text_is_one_sentence(
    tmp_path: Path, capsys: Capture, name: str, data: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert main(["explain", str(path)]) == 2
    said_on = capsys.readouterr()
    assert said_on.err == f"error: {path}: {said}\n"
    assert said_on.out == ""


def test_a_log_with_a_terminals_colours_and_odd_bytes_is_text(tmp_path: Path, capsys: Capture) -> None:
    coloured = "".join(f"\x1b[31m{line}\x1b[0m\r\n" for line in LOG.splitlines()) + "\x00\x07"
    assert asked(tmp_path, capsys, coloured)[0] == 0


def test_a_question_is_answered_from_what_is_published_where_nothing_ran(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "--ask", "8.6 to 10.6"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("From TensorRT 8.6")
    assert "the published results" in printed.err


@pytest.mark.parametrize(
    "question", ["\"8.6' `to` 10.6\\", "\U0001f680 8.6 \u2192 10.6", "8.6\0 to 10.6", "8.6 to 10.6 " * 80]
)
def test_odd_signs_and_repetition_hide_no_part_of_a_question(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture, question: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "--ask", question]) == 0
    assert capsys.readouterr().out.startswith("From TensorRT 8.6")


def test_a_question_without_the_engine_of_the_script_is_one_sentence(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "quickjs", None)
    monkeypatch.delitem(sys.modules, "harness.report.asking", raising=False)
    assert main(["explain", "--ask", "8.6 to 10.6"]) == 3
    said = capsys.readouterr().err
    assert "quickjs-ng" in said
    assert said.count("\n") == 1

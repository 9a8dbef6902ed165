"""Whatever is wrong with a command line, or with the files it names, is one sentence and exit code 2."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from harness.cli import main
from tests.cli import project
from tests.fixtures import Capture, Patch
from tests.models import data
from tests.waiting import PATIENCE

pytestmark = pytest.mark.unit

Prepare = Callable[[Path], object]


def nothing(_: Path) -> None:
    """Leave the project as it is."""


def recorded(folder: Path) -> None:
    """Leave one record."""
    project.record(folder, "toy.relu-ort131", state="not_run", end=None)


def recorded_beside_a_file(folder: Path) -> None:
    """Leave one record, and a file called `out`."""
    recorded(folder)
    (folder / "out").write_text("")


def damaged(text: str) -> Prepare:
    """Put a line that is no record before a good one."""

    def prepare(folder: Path) -> None:
        recorded(folder)
        path = next((folder / "reports" / "records").iterdir())
        path.write_text(f"{text}\n{path.read_text()}")

    return prepare


def one_field(name: str, value: object) -> Prepare:
    """Put another value into one field of a record."""

    def prepare(folder: Path) -> None:
        recorded(folder)
        path = next((folder / "reports" / "records").iterdir())
        path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}) + "\n")

    return prepare


def case(text: str) -> Prepare:
    return lambda folder: (folder / "cases" / "toy.py").write_text(text)


def measured(text: str) -> Prepare:
    return lambda folder: (folder / "cases" / "measured.yaml").write_text(text)


def matrix(old: str, new: str) -> Prepare:
    """Change the matrix file's text."""

    def prepare(folder: Path) -> None:
        path = folder / "matrix.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return prepare


def a_file(name: str) -> Prepare:
    return lambda folder: (folder / name).write_text("")


BUILDER = project.CASE.replace('g = Graph("relu")\n', 'g = Graph("relu")\n    g.missing()\n')
RTX = "rtx17:\n  engine: tensorrt_rtx\n  version: {}\n  measured: '2026-01-01'\n  cells: {}\n"

#: What is prepared, what is typed, and what is said.
#: Of expressions, matrix, cases and measured.yaml one each: the tests of those rooms hold their sentences to the word.
BROKEN: dict[str, tuple[Prepare, list[str], str]] = {
    "no verb": (nothing, [], "required: VERB"),
    "unknown verb": (nothing, ["lst"], "no verb 'lst'; did you mean 'list'?"),
    "option before the verb": (nothing, ["--reports", "x", "run"], "'--reports' comes before the verb"),
    "unknown option": (
        nothing,
        ["run", "--targt", "ort131"],
        "no option '--targt'; did you mean '--target'?",
    ),
    "one word too many": (nothing, ["doctor", "please"], "'please' is one word too many"),
    "unquoted expression": (nothing, ["list", "-k", "toy", "and", "ort131"], "quote a -k expression"),
    "missing argument": (nothing, ["run", "--target"], "--target: expected one argument"),
    "missing positional": (nothing, ["show"], "required: cell"),
    "jobs 0": (nothing, ["run", "--jobs", "0"], "'0' is no whole number from 1"),
    "more jobs than a number has digits": (
        nothing,
        ["run", "--jobs", "9" * 400],
        "is no whole number from 1 to",
    ),
    "a name too long": (nothing, ["verify", "--reports", "r" * 400], "rrr...: is too long a name"),
    "via podman": (nothing, ["run", "--via", "podman"], "invalid choice: 'podman'"),
    "list what": (nothing, ["list", "cels"], "'cels' is none of cells, targets"),
    "expression": (
        nothing,
        ["list", "-k", "toy and (ort131"],
        "'toy and (ort131' cannot be read; write it like",
    ),
    "unknown target": (nothing, ["list", "--target", "ort13"], "did you mean 'ort131'?"),
    "unknown required target": (nothing, ["run", "--require", "trt68"], "did you mean 'trt86'?"),
    "required, not selected": (
        nothing,
        ["run", "--target", "ort131", "--require", "trt86"],
        "--require trt86: the selection holds no cell of that target",
    ),
    "unknown cell": (nothing, ["show", "toy.rely-ort131"], "did you mean 'toy.relu-ort131'?"),
    "empty selection": (nothing, ["run", "-k", "nowhere"], "-k 'nowhere' matches no cell"),
    "matrix missing": (nothing, ["list", "--matrix", "nowhere.yaml"], "nowhere.yaml"),
    "cases missing": (nothing, ["list", "--cases", "nowhere"], "nowhere: no such folder of cases"),
    "cases empty": (
        lambda folder: (folder / "cases" / "toy.py").unlink(),
        ["list"],
        "cases: holds no case modules",
    ),
    "case raises": (
        case("import onnx\n\nraise ValueError('two\\nlines')\n"),
        ["list"],
        "cases/toy.py:3: cannot be imported: ValueError: two lines",
    ),
    "case without CASE": (case("x = 1\n"), ["list"], "cases/toy.py: declares no case"),
    "case twice": (
        lambda folder: (folder / "cases" / "twin.py").write_text(project.CASE),
        ["list"],
        "cases/twin.py: a case called 'toy' exists already",
    ),
    "case that cannot build": (
        case(BUILDER),
        ["show", "toy.relu-ort131"],
        "cases/toy.py:9: the model of variant 'relu' cannot be built: AttributeError",
    ),
    "reports on a file": (a_file("out"), ["run", "--reports", "out"], "out: cannot be written"),
    "reports nowhere": (nothing, ["run", "--reports", "/proc/nowhere"], "/proc/nowhere: cannot be written"),
    "merge into a file": (
        recorded_beside_a_file,
        ["merge", "reports", "--reports", "out"],
        "out: cannot be written",
    ),
    "save nowhere": (
        nothing,
        ["show", "toy.relu-ort131", "--output", "nowhere/x.onnx"],
        "nowhere/x.onnx: cannot be written: No such file",
    ),
    "report of nothing": (nothing, ["report"], "reports: holds no records"),
    "verify of a suite": (a_file("suite.json"), ["verify", "--reports", "."], ".: holds a suite"),
    "verify of nothing": (nothing, ["verify", "--reports", "nowhere"], "nowhere: holds no records"),
    "accept of what did not run": (recorded, ["accept"], "nothing measured is recorded for this selection"),
    "merge of a folder that is none": (
        recorded,
        ["merge", "reports", "nowhere"],
        "nowhere: holds no records",
    ),
    "measured is no YAML": (
        measured("schema: 1\nrtx17: {\n"),
        ["list"],
        "cases/measured.yaml:3: is not YAML",
    ),
    "measured class": (
        measured("schema: 1\n" + RTX.format("1.7.1", "{toy: {relu: bilt}}")),
        ["list"],
        "rtx17.cells.toy.relu: 'bilt' is not in the right form; write a class that can be measured",
    ),
    "a suite on Slurm": (
        nothing,
        ["run", "--executor", "slurm", "--suite", "onnx-node"],
        "--executor slurm runs the cases alone; leave that or --suite out",
    ),
    "matrix is no YAML": (matrix("targets:", "targets: ["), ["run"], "matrix.yaml"),
}


@pytest.mark.parametrize(("prepare", "words", "said"), BROKEN.values(), ids=BROKEN)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    toy: Path, capsys: Capture, prepare: Prepare, words: list[str], said: str
) -> None:
    prepare(toy)
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert not out


BAD_RECORDS: dict[str, tuple[Prepare, list[str], str]] = {
    "no JSON": (damaged("{"), ["report"], "run-main.jsonl:1: not a record"),
    "a state of its own": (one_field("state", "asleep"), ["report"], "Invalid enum value 'asleep'"),
    "a time of its own": (
        one_field("stamps", {"when": None}),
        ["report"],
        "stamps.when: Expected `str`, got",
    ),
}


@pytest.mark.parametrize(("prepare", "words", "said"), BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_a_record_that_cannot_be_read_is_one_sentence_and_the_others_go_on(
    toy: Path, capsys: Capture, prepare: Prepare, words: list[str], said: str
) -> None:
    """It is one cell's; that a folder holds such a line is a fault of the folder alone."""
    prepare(toy)
    assert main(words) == (3 if words == ["verify"] else 0)
    out, err = capsys.readouterr()
    told = out if words == ["verify"] else err
    assert told.count(said) == 1
    assert "Traceback" not in err
    assert not err or err.count("\n") == 1


@pytest.mark.parametrize("words", [["run", "-k", "relu"], ["check", "m.onnx"]])
def test_a_python_of_the_user_s_that_is_none_is_a_mistake(
    toy: Path, words: list[str], monkeypatch: Patch, capsys: Capture
) -> None:
    onnx.save(data.model(), toy / "m.onnx")
    monkeypatch.setenv("TRT_COMPAT_VENV_PYTHON", "/nonexistent/python")
    assert main([*words, "--target", "ort131", "--via", "venv"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "TRT_COMPAT_VENV_PYTHON=/nonexistent/python: is no" in line
    assert not Path("reports").exists()


@pytest.mark.parametrize("words", [["lst"], ["show", "toy.rely-ort131"], ["run", "--jobs", "0"]])
def test_the_program_itself_ends_with_code_2_and_one_line(toy: Path, words: list[str]) -> None:
    with project.harness(toy, *words) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)


def test_a_usage_mistake_records_nothing(toy: Path) -> None:
    """A run that is refused leaves no folder behind."""
    assert main(["run", "-k", "nowhere"]) == 2
    assert main(["run", "--require", "trt86", "--target", "ort131"]) == 2
    assert sorted(path.name for path in toy.iterdir()) == ["cases", "matrix.yaml"]


@pytest.mark.usefixtures("toy")
def test_a_full_disk_is_infrastructure(capsys: Capture, monkeypatch: Patch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "reports/records/x.jsonl")

    monkeypatch.setattr("harness.record.store.Store.append", full)
    assert main(["run", "--target", "trt86", "-k", "relu"]) == 3
    err = capsys.readouterr().err
    assert err.endswith("left on device\n"), err
    assert "Traceback" not in err


def test_help_and_version_end_with_code_0(capsys: Capture) -> None:
    for words in (["--help"], ["--version"], ["run", "--help"], ["show", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
    assert "usage: trt-compat show" in capsys.readouterr().out

"""What the pages say can be done can be done: commands, examples, links. And no text names a developer's machine."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from harness.case import Case, Precision, load_cases, model_sha256
from harness.cli import main
from harness.matrix import load_matrix
from harness.plan import all_cells
from harness.record.outcome import End, Outcome, Stamps
from harness.record.store import Store
from harness.words import Engine
from tests import needs
from tests.cases import test_all_cases as rules

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    *sorted(path for folder in (".", "docs", "docker") for path in ROOT.glob(f"{folder}/*.md")),
    ROOT / "reports" / "README.md",
]
#: The reports folder of another machine, in the lines that show `merge`.
OTHER_MACHINE = "../gpu-box/reports"
CELLS_BEFORE = yaml.safe_load((ROOT / "cases" / "measured.yaml").read_text(encoding="utf-8"))["rtx17"][
    "cells"
]
#: Lines that are not run here, and why.
NOT_RUN = {
    "source .venv/bin/activate": "changes the reader's shell and nothing else",
    "pip install trt-compat": "tests/integration/test_installed.py installs the wheel",
}


@dataclass(frozen=True)
class Line:
    """A line of a `sh` block, without its comment: `variables` in front of it, then the words."""

    page: str
    text: str
    variables: tuple[str, ...]
    words: tuple[str, ...]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def lines(pages: Iterable[Path]) -> list[Line]:
    found = []
    for page in pages:
        for text in "".join(blocks(page.read_text(encoding="utf-8"), "sh")).splitlines():
            words = shlex.split(text, comments=True)
            variables = [
                word for word in words if re.match(r"[A-Z_]+=", word) and not word.startswith("ARGS")
            ]
            rest = tuple(word for word in words if word not in variables)
            if rest:
                code = text.partition("  #")[0].strip()
                found.append(Line(page.relative_to(ROOT).as_posix(), code, tuple(variables), rest))
    return found


COMMANDS = [line for line in lines(PAGES) if line.text not in NOT_RUN]


def select(*start: str) -> list[Line]:
    return [line for line in COMMANDS if line.words[: len(start)] == start]


def each(found: list[Line]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("line", found, ids=[f"{line.page}: {line.text}" for line in found])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with matrix.yaml, a copy of the cases, one record, and one of another machine."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / "cases", folder / "cases", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "matrix.yaml", folder)
    end = End("signalled", signal="SIGSEGV")
    case = next(case for case in load_cases(ROOT / "cases") if case.name == "mish")
    variant = next(variant for variant in case if variant.name == "fp32")
    for target, path in (
        ("rtx17", folder / "reports"),
        ("ort131", tmp_path / OTHER_MACHINE.removeprefix("../")),
    ):
        stamps = Stamps(
            model_sha256=model_sha256(variant.model_bytes()),
            recipe_sha256=variant.recipe.sha256(),
            engine_version=load_matrix(ROOT / "matrix.yaml").target(target).version,
            via="venv",
            packages=("onnxruntime==1.31.1",),
            harness_version="0.1.0",
            when="2026-01-02T03:04:05.678+00:00",
            run="a-run",
        )
        with Store(path) as store:
            store.append(
                Outcome(f"mish[fp32]-{target}", "mish", "fp32", target, state="done", end=end, stamps=stamps)
            )
    return folder


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


class Harness:
    """`trt-compat` in this process: starting Python for each line would take a minute."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, words: Iterable[str]) -> Done:
        self._capsys.readouterr()
        code = main(list(words))
        return Done(code, *self._capsys.readouterr())


@pytest.fixture
def harness(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Harness:
    monkeypatch.chdir(checkout)
    return Harness(capsys)


def verb(line: Line) -> str:
    return line.words[1]


HARNESS = select("trt-compat")


def test_every_line_is_of_a_kind_that_is_tried() -> None:
    """Each line of a `sh` block is of make, of pytest or of the harness, or is in the list of those not run."""
    tried = [*HARNESS, *select("make"), *select("pytest")]
    assert [line.text for line in COMMANDS if line not in tried] == []


def test_the_readme_shows_every_verb() -> None:
    """The verbs of the command line, started as the README does, are the ones that the README has lines of."""
    shown = {verb(line) for line in HARNESS if line.page == "README.md"}
    said = program(["--help"], ROOT).stdout
    assert set(re.findall(r"^    (\w+)(?:  |$)", said, re.MULTILINE)) == shown


@each([line for line in HARNESS if verb(line) in ("list", "show", "doctor")])
def test_a_looking_command_works(line: Line, harness: Harness) -> None:
    """`list`, `show` and `doctor` print something and complain of nothing."""
    done = harness(line.words[1:])
    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) > 1


@each([line for line in HARNESS if verb(line) == "run"])
def test_a_run_is_understood_and_selects_cells(line: Line, harness: Harness) -> None:
    """A `run` is planned only: running takes minutes and downloads, and the integration tests do it."""
    done = harness([*line.words[1:], *([] if "--dry-run" in line.words else ["--dry-run"])])
    if "--resume" in line.words:
        assert (done.code, "there is no unfinished run" in done.err) == (2, True)
        return
    assert (done.code, done.err) == (0, "")
    assert "cells" in done.out


def program(words: Iterable[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `trt-compat` in a process of its own, as a reader does."""
    command = [sys.executable, "-m", "harness", *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.long
@each([line for line in HARNESS if verb(line) in ("report", "merge", "verify", "accept", "pack")])
def test_a_command_on_records_works(line: Line, checkout: Path) -> None:
    """What works on records does so, on one record of a cell."""
    if verb(line) == "verify":
        assert program(["report"], checkout).returncode == 0
    done = program(line.words[1:], checkout)
    assert (done.returncode, done.stderr) == (0, "")
    if verb(line) == "merge":
        assert "1 records and 0 runs of the past taken in" in done.stdout
    if verb(line) == "accept":
        written = yaml.safe_load((checkout / "cases" / "measured.yaml").read_text(encoding="utf-8"))
        assert written["rtx17"]["cells"] == CELLS_BEFORE | {"mish[fp32]": "crashed"}


@each([line for line in HARNESS if verb(line) in ("submit", "intake")])
def test_a_command_on_submissions_is_understood(line: Line, harness: Harness) -> None:
    """There is nothing to take in, and the cases are a copy: each says so. tests/community does it all."""
    done = harness(line.words[1:])
    assert done.code == 2
    assert re.search(r"theirs.tar.xz: cannot be read|only the project's own can be submitted", done.err)


@each(select("make"))
def test_make_knows_the_target(line: Line) -> None:
    """`make` is asked what it would do: doing it sets up an environment and runs everything."""
    done = subprocess.run(
        [needs.program("make"), "--dry-run", *line.words[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    arguments = [word.removeprefix("ARGS=") for word in line.words if word.startswith("ARGS=")]
    assert all(argument in done.stdout for argument in arguments)


@each(select("make"))
def test_options_in_args_are_understood(line: Line, harness: Harness) -> None:
    """What the pages hand to `make matrix` in ARGS is what `run` understands."""
    for word in line.words:
        if word.startswith("ARGS="):
            assert harness(["run", "--dry-run", *shlex.split(word[5:])]).code == 0


@pytest.mark.long
@each(select("pytest"))
def test_pytest_collects_what_is_selected(line: Line) -> None:
    """A `pytest` line collects something; running that would take minutes or start this very test again."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        *line.words[1:],
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert re.search(r"[1-9]\d*(/\d+)? tests collected", done.stdout)


def example(language: str, mark: str) -> str:
    (text,) = [text for text in blocks(README, language) if mark in text]
    return text


def test_the_example_case_loads_and_plans(tmp_path: Path) -> None:
    """The README's case is a file that works as it stands, and gives a cell on every target."""
    (tmp_path / "leaky_relu.py").write_text(example("python", "leaky_relu"), encoding="utf-8")
    (case,) = load_cases(tmp_path)
    assert isinstance(case, Case)
    matrix = load_matrix(ROOT / "matrix.yaml")
    cells = all_cells(matrix, [case])
    assert [cell.id for cell in cells] == [f"leaky_relu[qdq]-{target.name}" for target in matrix]
    (variant,) = case
    model = variant.build()
    assert "/conv/Conv" in {node.name for node in model.graph.node}
    assert dict(variant.precision or ()) == {"/conv/Conv": Precision.INT8}


def test_the_example_case_keeps_to_the_rules_of_cases(tmp_path: Path) -> None:
    """What tests/cases asks of every variant the README's example fulfils too."""
    (tmp_path / "leaky_relu.py").write_text(example("python", "leaky_relu"), encoding="utf-8")
    (variant,) = load_cases(tmp_path)[0]
    checks = [
        check
        for name, check in vars(rules).items()
        if name.startswith("test_") and list(inspect.signature(check).parameters) == ["variant"]
    ]
    assert len(checks) > 5
    for check in checks:
        check(variant)


def test_the_example_case_fails_on_as_many_targets_as_the_readme_says() -> None:
    """TensorRT for RTX refuses it before 1.7, and 1.7 loses its precision for Turing, as a run of it showed."""
    rtx = [each for each in load_matrix(ROOT / "matrix.yaml") if each.engine is Engine.TENSORRT_RTX]
    failing = [each for each in rtx if each.version < "1.7" or each.compute_capability == "7.5"]
    number = {7: "seven", 8: "eight", 9: "nine"}[len(failing)]
    assert f"without a GPU, tells of {number} new failures" in README


def test_the_example_target_loads_and_plans(tmp_path: Path) -> None:
    """The README's target, put among the others, is a valid one of about eight lines with cells of its own."""
    added = example("yaml", "trt104:")
    # Who followed the README has it already.
    text = (ROOT / "matrix.yaml").read_text(encoding="utf-8").replace(added, "")
    assert text.count("\n  trt107:\n") == 1
    path = tmp_path / "matrix.yaml"
    path.write_text(text.replace("\n  trt107:\n", f"\n{added}\n  trt107:\n"), encoding="utf-8")
    matrix = load_matrix(path)
    assert matrix.target("trt104").version == "10.4.0.26"
    cells = all_cells(matrix, load_cases(ROOT / "cases"))
    assert "mish[qdq]-trt104" in {cell.id for cell in cells}
    assert len(added.splitlines()) == 8


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page: Path) -> None:
    """Each link and picture of a page that is not on the web is a file of the repository."""
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if not link.startswith(("https://", "http://", "#")):
            assert (page.parent / link.partition("#")[0]).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_are_named_exist(page: Path) -> None:
    """Each path in a page's prose that looks like a source file is there, save what runs and examples make."""
    made = {"cases/leaky_relu.py", "cases/example.py", "transport/docker.py", "uv.toml"}
    text = re.sub(r"https?://\S+", "", without_code(page.read_text(encoding="utf-8")))
    for name in re.findall(r"(?<![\w./-])[\w.-]+/[\w./-]*\.(?:py|yaml|toml|md)\b", text):
        if name not in made and not name.startswith("reports/"):
            assert (ROOT / name).exists() or (ROOT / "harness" / name).exists(), name


def test_the_picture_is_light() -> None:
    """The picture in the README is a PNG that a page loads at once."""
    data = (ROOT / "docs" / "matrix.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < 300_000


def test_the_published_run_is_few_files_and_light() -> None:
    """A clone is not to carry a run of which each cell is files: `trt-compat pack`."""
    sizes = [path.stat().st_size for path in (ROOT / "reports" / "published").rglob("*") if path.is_file()]
    assert len(sizes) <= 30
    assert sum(sizes) <= 12_000_000


def tracked() -> list[Path]:
    """Return the files that are, or would be, in the repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = [needs.program("git"), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return [
        path for name in done.stdout.split(b"\0") if name and (path := ROOT / os.fsdecode(name)).is_file()
    ]


def texts() -> list[tuple[Path, str]]:
    found = []
    for path in tracked():
        data = path.read_bytes()
        if b"\0" not in data:
            found.append((path, data.decode("utf-8")))
    return found


def test_no_path_of_a_machine() -> None:
    """No text names a place in somebody's home or work folder."""
    place = re.compile(r"(?<![\w.$}-])/(?:root|home|work|Users)/[\w.-]+")
    named = [
        f"{path.relative_to(ROOT)}: {found[0]}" for path, text in texts() for found in place.finditer(text)
    ]
    assert named == []


def test_no_package_index_of_a_machine() -> None:
    """The index that this machine takes its packages from is named nowhere, unless it is the public one."""
    said = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    said += "".join(value for name, value in os.environ.items() if "INDEX" in name)
    hosts = set(re.findall(r"https?://(?:[^@/\s'\"]*@)?([\w.-]+)", said)) - {
        "pypi.org",
        "files.pythonhosted.org",
    }
    named = [str(path.relative_to(ROOT)) for path, text in texts() if any(host in text for host in hosts)]
    assert named == []
    locked = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert "://" not in locked

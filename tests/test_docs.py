"""The pages' commands, examples and links work."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from packaging.version import Version

from harness.case import Precision, load_cases
from harness.cli import main
from harness.cli.main import _parse
from harness.matrix import load_matrix
from harness.plan import all_cells
from harness.record.store import Store
from harness.report import FILES
from tests.cli import project
from tests.fixtures import Capture, Patch
from tools.docs import CHECK_PAGE, check_page, stale

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "docs/results.md").read_text(encoding="utf-8")
CASES = (ROOT / "docs/cases.md").read_text(encoding="utf-8")
PAGES = [path for folder in (".", "docs", "docker", "reports") for path in ROOT.glob(f"{folder}/*.md")]
#: The reports folder of another machine, in the line of `merge`.
OTHER_MACHINE = "../gpu-box/reports"


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[list[str]]:
    """Return the words of each `trt-compat` line of a page's `sh` blocks, without the program's name and a ">"."""
    lines = [
        shlex.split(line.partition(" > ")[0], comments=True)
        for line in "".join(blocks(text, "sh")).splitlines()
    ]
    return [words[1:] for words in lines if words[:1] == ["trt-compat"]]


def shown(page: str, *verbs: str) -> list[list[str]]:
    return [words for words in commands(page) if words[0] in verbs]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: Patch) -> Path:
    """Go to a folder with matrix.yaml, a copy of the cases, one record, and one of another machine beside it."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / "cases", folder / "cases", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "matrix.yaml", folder)
    for target, reports in (("rtx17", "reports"), ("ort131", OTHER_MACHINE)):
        project.record(folder, f"mish.fp32-{target}", reports, phases={"build": 1.0})
    monkeypatch.chdir(folder)
    return folder


def test_every_command_is_understood() -> None:
    """The parser takes each verb, option and value that a page shows."""
    all_of_them = [words for page in PAGES for words in commands(page.read_text(encoding="utf-8"))]
    assert len(all_of_them) > 20
    for words in all_of_them:
        assert _parse(words).called == words[0]


@pytest.mark.usefixtures("checkout")
def test_the_readmes_lines_that_look_and_plan_work(capsys: Capture) -> None:
    """A `run` is planned only: the integration tests run cells."""
    for words in shown(README, "list", "show", "doctor", "run"):
        planned = words[0] == "run" and "--dry-run" not in words
        assert main([*words, "--dry-run"] if planned else words) == 0, words
        said = capsys.readouterr()
        assert (len(said.out.splitlines()) > 1, said.err) == (True, ""), words


def test_the_readmes_step_is_what_diff_prints(tmp_path: Path, capsys: Capture, monkeypatch: Patch) -> None:
    """Each piece between two lines of dots, in its order; where nothing has run, of what is published."""
    (sample,) = (text for text in blocks(README, "text") if "trt-compat diff" in text)
    command, *printed = sample.partition("\n$ trt-compat explain")[0].splitlines()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    main(shlex.split(command, comments=True)[2:])
    rest = capsys.readouterr().out
    for piece in "\n".join(printed).split("\n...\n"):
        before, found, rest = rest.partition(piece)
        assert found, piece
        assert not before or before.endswith("\n")


@pytest.mark.long
@pytest.mark.usefixtures("checkout")
def test_the_lines_on_records_work(capsys: Capture) -> None:
    for words in shown(RESULTS, "report", "verify", "merge", "accept"):
        assert (main(words), capsys.readouterr().err) == (0, ""), words
    assert {each.cell for each in Store(Path("reports")).outcomes()} == {
        "mish.fp32-rtx17",
        "mish.fp32-ort131",
    }


def test_the_example_case_loads_and_plans(tmp_path: Path) -> None:
    """It is a file that works as it stands, and gives a cell on every target."""
    (text,) = (text for text in blocks(CASES, "python") if "leaky_relu" in text)
    (tmp_path / "leaky_relu.py").write_text(text, encoding="utf-8")
    (case,) = load_cases(tmp_path)
    matrix = load_matrix(ROOT / "matrix.yaml")
    assert [cell.id for cell in all_cells(matrix, [case])] == [
        f"leaky_relu.qdq-{each.name}" for each in matrix
    ]
    (variant,) = case
    assert "/conv/Conv" in {node.name for node in variant.build().graph.node}
    assert dict(variant.precision or ()) == {"/conv/Conv": Precision.INT8}


def test_the_example_target_loads_and_plans(tmp_path: Path) -> None:
    """It is a valid one of seven lines, with cells of its own."""
    (added,) = (text for text in blocks(CASES, "yaml") if "trt119:" in text)
    text = (ROOT / "matrix.yaml").read_text(encoding="utf-8")
    path = tmp_path / "matrix.yaml"
    path.write_text(text.replace("\n  trt107:\n", f"\n{added}\n  trt107:\n"), encoding="utf-8")
    matrix = load_matrix(path)
    assert "mish.qdq-trt119" in {cell.id for cell in all_cells(matrix, load_cases(ROOT / "cases"))}
    assert len(added.splitlines()) == 7


def test_the_table_of_workarounds_is_that_of_the_rewrites() -> None:
    assert not stale(CHECK_PAGE, check_page())


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_files_and_headings() -> None:
    """Each link and picture of a page that is not on the web is a file of the repository, and a place in it is one."""
    for page in PAGES:
        for link, place in re.findall(r"\]\((?!https?://)([^)\s#]*)#?([^)\s]*)", prose(page)):
            target = page.parent / link if link else page
            assert target.exists(), (page, link)
            assert not place or place in anchors(target), (page, link, place)


def test_the_files_that_a_page_names_are_there() -> None:
    pattern = r"`((?:tests|harness|tools|docs)/[\w/.-]+\.\w+)`"
    named = {
        (page.name, name) for page in PAGES for name in re.findall(pattern, page.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert sorted((page, name) for page, name in named if not (ROOT / name).is_file()) == []


def test_the_readme_names_the_newest_version_and_the_docs_every_file_of_a_report() -> None:
    newest = max(
        Version(each.version) for each in load_matrix(ROOT / "matrix.yaml") if each.engine == "tensorrt"
    )
    assert f"to {newest.major}.{newest.minor}, Jetson" in README
    for page in ("docs/results.md", "reports/README.md"):
        assert [name for name in FILES if name not in (ROOT / page).read_text(encoding="utf-8")] == [], page

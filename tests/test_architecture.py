"""The import rules of docs/architecture.md hold in the code."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
#: A program of its own, which readers get: no module imports it.
REPRO = ROOT / "harness" / "plan" / "repro.py"
HARNESS = sorted({*(ROOT / "harness").rglob("*.py")} - {REPRO})
AGENT = sorted((ROOT / "harness" / "agent").rglob("*.py"))
CASES = sorted((ROOT / "cases").glob("*.py"))
#: Importable from every room but the agent.
EVERYWHERE = {"bounded", "scratch", "text", "words", "engines", "errors", "__init__"}
#: Conclusions and their sources: computed from records alone.
RIGHT_OF_THE_STORE = {"record", "layers", "judge", "history", "report"}
#: The rooms that run cells.
MACHINERY = {"run", "run/docker", "run/transport", "run/provision", "run/numbers", "agent"}


#: The kinds of tests, by which `make test` and `make test-all` choose.
MARKERS = {"unit", "integration", "docker", "contract", "browser", "slurm", "gpu"}


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(tree: ast.Module) -> set[str]:
    """Return the dotted names that a module imports anywhere in it, for type checkers too."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def tops(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(parse(path))}


def room(parts: Sequence[str]) -> str:
    """Return the room of a dotted name or path within harness/: the longest one of the table that it is in."""
    inside = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in inside if name in TABLE), parts[0])


def room_of(path: Path) -> str:
    return room(path.relative_to(ROOT / "harness").with_suffix("").parts)


def imported_room(name: str) -> str:
    """Return the room of `harness.room.module.name`; a name of the package itself is in `__init__`."""
    part = name.split(".")[1]
    there = (ROOT / "harness" / part).is_dir() or (ROOT / "harness" / f"{part}.py").is_file()
    return room(name.split(".")[1:]) if there else "__init__"


def rooms_imported_by(name: str) -> set[str]:
    return {
        imported_room(imported)
        for path in HARNESS
        if room_of(path) == name
        for imported in imports(parse(path))
        if imported.startswith("harness.")
    } - {name}


def documented_rooms() -> dict[str, tuple[set[str], set[str]]]:
    """Return the table of rooms: name -> rooms and other packages that it may import."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("| room | what it does |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {row[0]: (words(row[2]), words(row[3])) for row in rows}


def words(cell: str) -> set[str]:
    return set(re.findall(r"[\w/]+", cell))


TABLE = documented_rooms()
ROOMS = sorted({room_of(path) for path in HARNESS} - EVERYWHERE - {"__main__"})


def test_the_table_names_every_room() -> None:
    """Each module or folder of harness/ has its row in docs/architecture.md, and a room that is gone has no row."""
    assert sorted(TABLE) == ROOMS


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_what_the_table_says(name: str) -> None:
    """A room's imports of this project and of others are its row of the table: no more, and no less."""
    of_project, of_others = TABLE[name]
    assert rooms_imported_by(name) - (EVERYWHERE if name != "agent" else set()) == of_project
    foreign = {top for path in HARNESS if room_of(path) == name for top in tops(path)}
    assert foreign - sys.stdlib_module_names - {"harness", "__future__"} == of_others


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_a_case_imports_only_onnx_and_harness_case(path: Path) -> None:
    """A case module needs only onnx, harness.case and the standard library."""
    names = imports(parse(path))
    allowed = sys.stdlib_module_names | {"onnx", "__future__"}
    for name in names:
        assert name.startswith("harness.case.") or name.partition(".")[0] in allowed, name


@pytest.mark.parametrize(
    ("package", "knower"),
    [("docker", "run/docker"), ("pytest", "pytest_plugin"), ("uv", "run/provision"), ("rich", "cli")],
)
def test_one_room_knows_it(package: str, knower: str) -> None:
    """pytest, uv and the terminal are each known to one room."""
    assert {room_of(path) for path in HARNESS if package in tops(path)} == {knower}


def test_one_module_starts_slurms_commands() -> None:
    """Slurm is no package: who names one of its programs, to start it, is the one module that knows it."""
    program = re.compile(r'"(sbatch|squeue|scontrol|scancel|sacct|sinfo)"')
    assert {path.name for path in HARNESS if program.search(path.read_text())} == {"slurm.py"}


def _imports_by_name(path: Path) -> bool:
    """Tell whether a module imports something whose name is not written in it as a module of this project."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            what = ast.unparse(node.args[0])
            if not what.startswith(("'harness.", '"harness.')):
                return True
    return False


def test_only_the_engine_modules_import_an_engine() -> None:
    """TensorRT and ONNX Runtime are imported in harness/agent/engines and nowhere else, by whatever spelling."""
    engines = {"tensorrt", "tensorrt_rtx", "onnxruntime"}
    found = [path for path in (*HARNESS, *CASES) if tops(path) & engines or _imports_by_name(path)]
    assert found, "the engines are imported somewhere"
    assert all(path.is_relative_to(ROOT / "harness" / "agent" / "engines") for path in found), found


@pytest.mark.parametrize("path", AGENT, ids=lambda path: path.relative_to(ROOT / "harness").as_posix())
def test_the_agent_stands_alone_on_python_38(path: Path) -> None:
    """An agent module parses as Python 3.8 and imports only harness.agent and the standard library."""
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    for name in imports(tree):
        top = name.partition(".")[0]
        assert name.startswith("harness.agent.") or top in sys.stdlib_module_names, name


@pytest.mark.parametrize("path", AGENT, ids=lambda path: path.relative_to(ROOT / "harness").as_posix())
def test_the_agent_calls_no_newer_method(path: Path) -> None:
    """No `removeprefix` in an agent module: of methods that 3.8 lacks, `make lint` finds only a literal's."""
    called = {node.attr for node in ast.walk(parse(path)) if isinstance(node, ast.Attribute)}
    assert not called & {"removeprefix", "removesuffix", "bit_count"}


def test_nothing_right_of_the_store_reaches_the_machinery() -> None:
    """No conclusion imports, itself or through others, a room that runs cells."""
    reached, waiting = set(), list(RIGHT_OF_THE_STORE)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += rooms_imported_by(name)
    assert not reached & MACHINERY


def test_a_public_class_has_a_name_of_its_own() -> None:
    """No two rooms have a public class of one name, so that a name in a traceback, a search or a type is one thing."""
    rooms: dict[str, set[str]] = {}
    for path in HARNESS:
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms.setdefault(node.name, set()).add(room_of(path))
    assert {name: sorted(where) for name, where in rooms.items() if len(where) > 1} == {}


def _marked(node: ast.AST, named: Collection[str] = ()) -> bool:
    return any(
        (isinstance(each, ast.Attribute) and each.attr in MARKERS)
        or (isinstance(each, ast.Name) and each.id in named)
        for each in ast.walk(node)
    )


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=lambda path: path.stem)
def test_each_test_is_of_a_kind(path: Path) -> None:
    """A file says the kind of all its tests, or each test its own: else `make coverage` and `-m unit` pass it by."""
    body = parse(path).body
    assigned = [each for each in body if isinstance(each, ast.Assign) and _marked(each.value)]
    names = {ast.unparse(target) for each in assigned for target in each.targets}
    tests = [each for each in body if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")]
    unmarked = [each.name for each in tests if not any(_marked(one, names) for one in each.decorator_list)]
    assert "pytestmark" in names or not unmarked


def _holds_a_sentence(node: ast.Assert) -> bool:
    texts = (each.value for each in ast.walk(node.test) if isinstance(each, ast.Constant))
    return any(isinstance(text, str) and len(text) >= 25 and text.count(" ") >= 3 for text in texts)


def test_few_asserts_hold_a_whole_sentence() -> None:
    """They break when a sentence is put better: at most one in 25 does, and all others hold names, figures, codes."""
    files = (parse(path) for path in (ROOT / "tests").rglob("test_*.py"))
    asserts = [node for file in files for node in ast.walk(file) if isinstance(node, ast.Assert)]
    assert sum(map(_holds_a_sentence, asserts)) <= 0.04 * len(asserts)

"""`make mutants` on a planted module: good tests kill all, hollow ones let live, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import HANGS, PATIENCE, wait_for
from tools.mutants.areas import AREAS, Area
from tools.mutants.campaign import mutants_of
from tools.mutants.mutant import Module, Mutant
from tools.mutants.survivors import FILE, Trouble, read_reasons

ROOT = Path(__file__).resolve().parents[2]
AREA = Area("planted", ("planted/counted.py",), ("tests",))
CODE = '''"""Planted."""

from functools import cache

LEAST = 3


def enough(count: int) -> bool:
    """Tell."""
    return count >= LEAST


@cache
def part(word: str) -> str:
    return word[1:]
'''
WHOLE = """
import subprocess, sys
import pytest
from planted.counted import enough, part

@pytest.mark.parametrize(("count", "said"), [(2, False), (3, True), (4, True)])
def test_enough(count, said):
    assert enough(count) is said

def test_part():
    assert part("word") == "ord"
"""
HOLLOW = """
from planted.counted import enough, part

def test_enough():
    assert enough(5)

def test_part():
    part("word")
"""
#: Kills only through another process.
OUTSIDE = """
import subprocess, sys

def test_enough():
    code = "from planted.counted import enough; print([enough(n) for n in (2, 3, 4)])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "[False, True, True]\\n"
"""
ENDLESS = '''"""Planted."""


def rounds(most: int) -> int:
    done = 0
    while done < most:
        done += 1
    return done
'''


def planted(folder: Path, tests: str, code: str = CODE) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in (
        ("pyproject.toml", '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n'),
        ("planted/__init__.py", ""),
        ("planted/counted.py", code),
        ("tests/__init__.py", ""),
        ("tests/test_counted.py", tests),
    ):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def command(root: Path, *arguments: str) -> list[str]:
    """Return what runs the tool on a planted project; it forks and changes folder, so in a process of its own."""
    code = f"""
import sys
from pathlib import Path
from tools.mutants.__main__ import main
from tools.mutants.areas import Area
sys.exit(main(sys.argv[1:], Path({str(root)!r}), [Area({AREA.name!r}, {AREA.modules!r}, {AREA.tests!r})]))
"""
    return [sys.executable, "-c", code, *arguments]


def mutants(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(root, *arguments), cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGS
    )


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def changes(root: Path) -> dict[str, Mutant]:
    return {mutant.change: mutant for mutant in Module(root, root / "planted/counted.py").mutants()}


@pytest.mark.unit
def test_every_module_of_the_table_is_there_and_can_be_mutated() -> None:
    found = mutants_of(ROOT, AREAS)
    assert {area.name for _, area in found} == {area.name for area in AREAS}
    assert len({mutant.id for mutant, _ in found}) == len(found)
    for area in AREAS:
        assert all((ROOT / test).exists() for test in area.tests), area.name


@pytest.mark.unit
def test_the_mutants_of_a_module(tmp_path: Path) -> None:
    assert sorted(changes(planted(tmp_path, WHOLE))) == [
        "1 => 0",
        "1 => 2",
        "1: => :",
        "3 => 2",
        "3 => 4",
        "count >= LEAST => count < LEAST",
        "count >= LEAST => count > LEAST",
        "return count >= LEAST => return None",
        "return word[1:] => return None",
    ]


@pytest.mark.unit
def test_a_key_does_not_know_lines(tmp_path: Path) -> None:
    before = changes(planted(tmp_path, WHOLE))
    after = changes(planted(tmp_path, WHOLE, CODE.replace("LEAST = 3", "# moved\n\n\nLEAST = 3")))
    assert {change: each.id for change, each in before.items()} == {
        change: each.id for change, each in after.items()
    }
    change = "count >= LEAST => count > LEAST"
    assert after[change].line == before[change].line + 3
    assert after[change].diff() == "-    return count >= LEAST\n+    return count > LEAST"


@pytest.mark.long
def test_tests_that_hold_everything_kill_all_and_leave_nothing_behind(tmp_path: Path) -> None:
    root = planted(tmp_path, WHOLE)
    before = contents(root)
    done = mutants(root)
    count = len(changes(root))
    *_, last = (line for line in done.stdout.splitlines() if line.split()[:1] == ["all"])
    assert last.split() == ["all", str(count), str(count), "0", "0", "100.0"], done.stdout
    assert done.returncode == 0
    assert contents(root) == before


@pytest.mark.long
def test_hollow_tests_let_live_and_each_survivor_is_told_with_its_reason(tmp_path: Path) -> None:
    root = planted(tmp_path, HOLLOW)
    (root / "tools").mkdir()
    entries = [
        ("part", "return word[1:] => return None", "nobody asks"),
        ("enough", "count >= LEAST => count < LEAST", "once"),
        ("gone", "a => b", "once"),
    ]
    (root / FILE).write_text(
        "".join(
            f"- module: planted.counted\n  function: {function}\n  mutation: {mutation!r}\n  reason: {reason}\n"
            for function, mutation, reason in entries
        )
    )
    done = mutants(root)
    assert done.returncode == 1
    assert "-    return count >= LEAST\n+    return count > LEAST" in done.stdout
    assert "planted/counted.py:10 in enough: no reason is given" in done.stdout
    assert "planted/counted.py:15 in part: nobody asks" in done.stdout
    assert "enough, count >= LEAST => count < LEAST: is killed now; drop the entry" in done.stdout
    assert "gone, a => b: there is no such mutant any more; drop the entry" in done.stdout


@pytest.mark.unit
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("- {module: m, function: f, mutation: a}", "an entry is module, function, mutation, reason"),
        ("- {module: m, function: f, mutation: a, reason: ''}", "an entry is"),
        ("- {module: m, function: f, mutation: a, reason: b}\n" * 2, "stands there twice"),
    ],
)
def test_an_entry_without_a_reason_is_a_mistake(tmp_path: Path, entry: str, said: str) -> None:
    (tmp_path / "file.yaml").write_text(entry)
    with pytest.raises(Trouble, match=said):
        read_reasons(tmp_path / "file.yaml")


@pytest.mark.long
def test_programs_that_tests_start_see_the_mutant(tmp_path: Path) -> None:
    root = planted(tmp_path, OUTSIDE)
    change = changes(root)["count >= LEAST => count > LEAST"]
    done = mutants(root, "--only", change.id)
    assert "killed: tests/test_counted.py::test_enough" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.long
def test_an_endless_mutant_ends(tmp_path: Path) -> None:
    tests = "from planted.counted import rounds\n\ndef test_rounds():\n    assert rounds(3) == 3\n"
    root = planted(tmp_path, tests, ENDLESS)
    done = mutants(root, "--only", changes(root)["done += 1 => pass"].id)
    assert "killed: ran out of time" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.long
def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    begun, scratch = tmp_path / "begun", tmp_path / "scratch"
    tests = f"""
import os, time
from pathlib import Path
from planted.counted import enough

def test_enough():
    assert enough(4)
    if "MUTANTS_CODE" in os.environ:
        Path({str(begun)!r}).write_text(str(os.getpid()))
        time.sleep({HANGS})
"""
    root = planted(tmp_path / "root", tests)
    before = contents(root)
    scratch.mkdir()
    survivor = changes(root)["count >= LEAST => count > LEAST"]
    with subprocess.Popen(
        command(root, "--only", survivor.id),
        cwd=ROOT, env={**os.environ, "TMPDIR": str(scratch)}, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert wait_for(lambda: begun.exists() and begun.read_text() != "")
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (130, "mutants: interrupted\n")
    assert wait_for(lambda: not Path(f"/proc/{begun.read_text()}").exists())
    assert list(scratch.iterdir()) == []
    assert contents(root) == before


def test_tests_that_fail_as_things_are_say_nothing_of_mutants(tmp_path: Path) -> None:
    done = mutants(planted(tmp_path, WHOLE + "\n\ndef test_broken():\n    assert False\n"))
    assert done.returncode == 3
    assert "without any mutant these fail: tests/test_counted.py::test_broken" in done.stderr

"""The campaign's table: what was tried, what was expected, and how it ended, with xdist and without."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tools.faults import Campaign

pytestmark = pytest.mark.unit

MODULE = """
import pytest

@pytest.mark.fault("files", "a torn line", "passed over")
@pytest.mark.parametrize("at", [1, 2, 3])
def test_torn(at):
    if at == 3:
        pytest.skip("no")
    assert at == 1

@pytest.mark.fault("frames", "a lie", "the cell's own")
def test_lie():
    pass

def test_other():
    pass
"""
CONFTEST = """
def pytest_collection_modifyitems(items):
    for item in items:
        item.user_properties += [("fault", list(mark.args)) for mark in item.iter_markers("fault")]
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_every_end_is_counted_by_its_fault(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_harm.py").write_text(MODULE)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    program = (
        "import pytest, sys; from tools.faults import Campaign; it = Campaign(); "
        "pytest.main(sys.argv[1:], plugins=[it]); print(it.table())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), "-p", "no:cacheprovider", "-q", *workers],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-4:] == [
        "| group | fault | expected | observed |",
        "| --- | --- | --- | --- |",
        "| files | a torn line | passed over | broke 1 of 3, held 1 of 3, not tried 1 of 3 |",
        "| frames | a lie | the cell's own | held |",
    ]


def test_one_end_needs_no_count() -> None:
    assert Campaign({("a", "b", "c"): Counter(held=1)}).table().endswith("| a | b | c | held |")

"""Fixtures and rules for every test of the project."""

from __future__ import annotations

import functools
import signal
import subprocess
from pathlib import Path

import pytest
import uv

from harness.case import Case, registry
from tests import needs
from tests.waiting import HANGS, UNIT_HANGS

# A shell that starts a program in the background without job control has it ignore SIGINT. Programs respect that, and
# so does the harness: those that tests start and interrupt would inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests load the project's own cases some hundred times, which do not change meanwhile.
_TESTS = Path(__file__).resolve().parent
_CASES = _TESTS.parent / "cases"
_load = registry._load
_own = functools.cache(_load)


def _load_once(folder: Path) -> tuple[Case, ...]:
    return _own(_CASES) if folder.resolve() == _CASES else _load(folder)


registry._load = _load_once

#: The mark that a test which is no unit test has by the value of one of its parameters.
IMPLIED = {"docker": "docker", "python3.8": "contract"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make a warning an error, and end a test that hangs: nothing else is to be ended by a clock.

    No cell either: pytest loads this file for the matrix too if an option's value is a word by itself.
    """
    for item in items:
        if _TESTS not in item.path.parents:
            continue
        # Not in pyproject.toml: who runs the matrix beside plugins of other people's lives with their warnings.
        item.add_marker(pytest.mark.filterwarnings("error"), append=False)
        marks = {mark.name for mark in item.iter_markers()}
        if "timeout" not in marks:
            quick = "unit" in marks and "long" not in marks
            item.add_marker(pytest.mark.timeout(UNIT_HANGS if quick else HANGS))
        callspec = getattr(item, "callspec", None)
        for value in callspec.params.values() if callspec and "unit" not in marks else ():
            if isinstance(value, str) and value in IMPLIED:
                item.add_marker(IMPLIED[value])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tell the helpers of `tests.needs` which test asks them."""
    needs.running(item)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of `make dist`: a wheel out of the source distribution."""
    needs.network()
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([uv.find_uv_bin(), "build", "--quiet", "--out-dir", folder], cwd=_CASES.parent, check=True)
    (made,) = folder.glob("*.whl")
    return made

"""A fault of the harness itself is never taken for a regression: traceback, one sentence, exit code 3."""

from __future__ import annotations

import argparse
import errno
import importlib
import shlex
from pathlib import Path

import pytest

from harness.cli import main
from tests.cli import project
from tests.fixtures import Capture, Patch
from tests.waiting import PATIENCE

pytestmark = pytest.mark.unit

#: `harness.cli.main` is the function.
module = importlib.import_module("harness.cli.main")

#: A command line of each verb; what it works on does not matter, for it fails at once.
VERBS = {verb: [verb, *shlex.split(module.EXAMPLES.get(verb, ""))] for verb in module.VERBS}
VERBS["completion"].append("bash")


@pytest.mark.parametrize("verb", VERBS)
def test_a_fault_in_any_verb_is_3(monkeypatch: Patch, capsys: Capture, verb: str) -> None:
    """Python itself would end with 1."""

    def broken(_: argparse.Namespace) -> int:
        raise KeyError("a slip of ours")

    known = module._loaded
    monkeypatch.setattr(module, "_loaded", lambda name: (known(name)[0], broken))
    assert main(VERBS[verb]) == 3
    *trace, last = capsys.readouterr().err.splitlines()
    assert trace[0].startswith("Traceback")
    assert trace[-1].startswith("KeyError: ")
    assert last.startswith("fault: the harness")
    assert "issue tracker" in last


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EBADF])
def test_an_error_of_the_system_that_nobody_expected_is_a_fault(
    monkeypatch: Patch, capsys: Capture, number: int
) -> None:
    """Unlike a full disk, which is told in one sentence without a traceback."""

    def broken(*_: object) -> None:
        raise OSError(number, "unexpected")

    monkeypatch.setattr("harness.cli.show.load_project", broken)
    assert main(["list"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_the_exit_code_of_the_process_is_3(toy: Path) -> None:
    """Also where the program cannot even be loaded, as with a Python that lacks its packages."""
    (toy / "sitecustomize.py").write_text(
        "import harness.matrix\n\ndef broken(*_):\n    raise RuntimeError('slip')\n\n"
        "harness.matrix.load_matrix = broken\n"
    )
    path = ("PYTHONPATH", f"{toy}:{project.TOP}")
    with project.harness(toy, "list", environment=[path]) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, err
    assert "RuntimeError: slip" in err
    (toy / "sitecustomize.py").unlink()
    (toy / "rich.py").write_text("raise ImportError('no rich here')\n")
    with project.harness(toy, "run", environment=[path]) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, err
    assert "ImportError: no rich" in err
    assert "harness; `make .venv/run.stamp`" in err.splitlines()[-1]

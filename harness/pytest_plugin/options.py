"""The options of the matrix, and what they say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.pytest_plugin import FILE, given_path
from harness.shipped import shipped

if TYPE_CHECKING:
    import pytest

_CASES = "cases"
#: As harness.run.provision.pulls has it, which loads Docker's SDK.
PULL_GB = "TRT_COMPAT_PULL_GB"


def options() -> dict[str, dict[str, Any]]:
    """Return the options by name; each is kept as `compat_` and its name."""
    # pytest looks for its settings before it has heard of these options, and takes a file or folder that exists for
    # one of tests: outside the project it is to be written with "=".
    outside = 'with "=" where it is outside the project'
    return {
        "--matrix": {
            "metavar": "FILE",
            "help": f"the matrix to collect, in place of every {FILE}; {outside}",
        },
        "--cases": {
            "metavar": "FOLDER",
            "help": f"folder of case modules (default: {_CASES}, else those of trt-compat); {outside}",
        },
        "--reports": {
            "metavar": "FOLDER",
            "default": "reports",
            "help": f"folder for records and the report (default: reports); {outside}",
        },
        "--via": {
            "choices": ("auto", "docker", "venv"),
            "default": "auto",
            "help": "where engines run: containers, virtual environments, or containers where possible (default: auto)",
        },
        "--ignore-needs": {
            "action": "store_true",
            "help": "run also what is refused for this machine's driver, GPU or Jetson Linux; the records say so",
        },
        "--require": {
            "metavar": "TARGET",
            "action": "append",
            "default": [],
            "help": "fail, not skip, the cells of this target that cannot run here (may be repeated)",
        },
        "--pull": {
            "action": "store_true",
            "help": f"pull large images too: those above {PULL_GB} (default: 2 GB), or of unknown size",
        },
        "--cached": {
            "action": "store_true",
            "help": "take what this machine has recorded and nothing has changed for (the default)",
        },
        "--fresh": {"action": "store_true", "help": "run every cell, whatever is recorded"},
        "--suite": {
            "metavar": "NAME",
            "help": "run the models of a suite in place of the cells: onnx-node, or a folder of models with data; "
            + outside,
        },
    }


def matrix_name(config: pytest.Config) -> str:
    """Return the name of the file that is collected."""
    return Path(config.getoption("compat_matrix") or FILE).name


def cases_folder(config: pytest.Config) -> Path:
    """Return the folder that `--cases` names, else the project's, else the one that comes with the harness."""
    given = config.getoption("compat_cases")
    if given:
        return given_path(config, given)
    own = config.rootpath / _CASES
    return own if own.is_dir() else shipped(_CASES)


def reports_folder(config: pytest.Config) -> Path:
    """Return the folder that `--reports` names, relative to where pytest was started."""
    return Path(config.invocation_params.dir, config.getoption("compat_reports"))


def named(config: pytest.Config, matrix: Path) -> dict[str, str]:
    """Return how a line to paste is to name a matrix, and the cases: "" where pytest would find them by itself."""
    path = os.path.relpath(matrix, config.invocation_params.dir)
    return {"matrix": "" if path == FILE else path, _CASES: config.getoption("compat_cases") or ""}

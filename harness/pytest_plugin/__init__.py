"""The only room that knows pytest: matrix.yaml is collected into one item a cell.

This module is an entry point, which every pytest loads that has the package on its path. In a repository without a
matrix of ours it adds no option, collects nothing and imports nothing: what does the work is in `cells`, which is
loaded where the file that `--matrix` names, or a matrix.yaml, is in what pytest was given, in the folder that it was
started in or at its root.

The entry point has this module's name, so that a conftest.py with `pytest_plugins = ["harness.pytest_plugin"]`, for
where the package is not installed, loads it no second time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

#: What is collected, unless --matrix names another file.
FILE = "matrix.yaml"
#: A matrix.yaml of somebody else's lacks one of the fields; one of ours that is broken further down has both.
_FIELDS = tuple(re.compile(rf"^[\"']?{name}[\"']?\s*:", re.MULTILINE) for name in ("schema", "targets"))


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options where a conftest.py asks for the plugin; elsewhere nobody knows yet whether there is a matrix."""
    loaded = (getattr(plugin, "__file__", None) for plugin in pluginmanager.get_plugins())
    if any(file and Path(file).name == "conftest.py" for file in loaded):
        _add_options(parser)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, None, None]:
    """Add the options once every conftest.py has added its own, where there is a matrix of ours or one is named."""
    yield
    words = [word for word in args if word.partition("=")[0] == "--matrix"]
    given = parser.parse_known_args(args).file_or_dir or early_config.getini("testpaths")
    if found(early_config, given) or (words and not _taken(parser, "--matrix")):
        _add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Load what does the work where there is a matrix of ours, or one is named."""
    named = named_matrix(config)
    if named:
        _collect_too(config, named)
    if named or found(config, config.args):
        from harness.pytest_plugin import cells  # noqa: PLC0415  (a foreign repository is not to pay for it)

        config.pluginmanager.register(cells, cells.__name__)


def named_matrix(config: pytest.Config) -> Path | None:
    """Return the file that `--matrix` names."""
    named = config.getoption("compat_matrix", None)
    return given_path(config, named) if named else None


def given_path(config: pytest.Config, word: str) -> Path:
    """Return what an option names: from where pytest was started, or, out of a settings file, from the root."""
    start, root = config.invocation_params.dir / word, config.rootpath / word
    # As pytest spells the paths of what it collects.
    return Path(os.path.normpath(start if start.exists() else root))


def _collect_too(config: pytest.Config, matrix: Path) -> None:
    if not matrix.is_file():
        raise pytest.UsageError(f"--matrix {matrix}: no such file")
    # What stands on the command line is all that is wanted.
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = [*(arg for arg in config.args if Path(arg).name != FILE), str(matrix)]


def found(config: pytest.Config, given: Iterable[str]) -> bool:
    """Tell whether a matrix.yaml of ours is where pytest was started, at its root, or in what it was given."""
    start = config.invocation_params.dir
    return any(is_matrix(path / FILE) for path in (start, config.rootpath)) or has_matrix(config, given)


def has_matrix(config: pytest.Config, given: Iterable[str]) -> bool:
    """Tell whether a matrix of ours is in what pytest was given, and so collected."""
    named = named_matrix(config)
    paths = [config.invocation_params.dir / word.partition("::")[0] for word in given]
    return any(path == named or is_matrix(path if path.name == FILE else path / FILE) for path in paths)


def is_matrix(path: Path) -> bool:
    """Tell whether a file has the fields of a matrix of ours, without reading it as YAML, which takes its time."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return all(field.search(text) for field in _FIELDS)


def _taken(parser: pytest.Parser, name: str) -> bool:
    """Tell whether somebody else has an option of this name; parsing tells it without pytest's private names."""
    try:
        return not parser.parse_known_and_unknown_args([f"{name}=1"])[1]
    except pytest.UsageError:
        return True


def _add_options(parser: pytest.Parser) -> None:
    """Add the matrix's options, once; one whose name somebody else has becomes `--compat-...`."""
    if hasattr(parser.parse_known_args([]), "compat_matrix"):
        return
    from harness.pytest_plugin.options import options  # noqa: PLC0415  (as above)

    group = parser.getgroup("compat", "TensorRT compatibility matrix")
    for name, attributes in options().items():
        free = f"--compat-{name[2:]}" if _taken(parser, name) else name
        group.addoption(free, dest=f"compat_{name[2:].replace('-', '_')}", **attributes)

"""`init`: a folder with a matrix, a case, a workflow and its script, a conftest.py and a .gitignore, all working."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from harness import __version__
from harness.cli.options import EXIT_OK
from harness.errors import HandledError

_START = Path(__file__).with_name("start")
#: The files that are written, and their sources.
_FILES = {
    "matrix.yaml": "matrix.yaml",
    "cases/example.py": "example.py.txt",
    ".github/workflows/trt-compat.yml": "workflow.yml.txt",
    ".github/trt-compat-gate.sh": "gate.sh",
}
_PLUGIN = 'pytest_plugins = ["harness.pytest_plugin"]\n'
_IGNORED = (b"/reports/", b"__pycache__/")


def add_init(command: argparse.ArgumentParser) -> None:
    """Add the folder, and whether to overwrite."""
    command.add_argument(
        "folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="(default: here)"
    )
    command.add_argument("--force", action="store_true", help="overwrite what is there of the same name")


def do_init(options: argparse.Namespace) -> int:
    """Write all files, or no file if one is there already; .gitignore gets only the lines that it lacks."""
    folder: Path = options.folder
    there = [name for name in _FILES if (folder / name).exists()]
    if there and not options.force:
        raise HandledError(f"{folder / there[0]}: is there already; --force overwrites {', '.join(there)}")
    try:
        for name, source in _FILES.items():
            text = (_START / source).read_text(encoding="utf-8")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text.replace("@VERSION@", __version__), encoding="utf-8")
        _ignore(folder / ".gitignore")
        pytest_too = _load_plugin(folder / "conftest.py")
    except OSError as error:
        raise HandledError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    print(f"written: {', '.join([*_FILES, '.gitignore', 'conftest.py'][: None if pytest_too else -1])}")
    if not pytest_too:
        print(f"for pytest, conftest.py needs the line {_PLUGIN.strip()}")
    cd = "" if folder == Path() else f"{shlex.join(['cd', str(folder)])}; "
    print(f"next: {cd}trt-compat doctor; trt-compat run, or pytest")
    return EXIT_OK


def _load_plugin(path: Path) -> bool:
    """Have pytest collect the matrix; return False for somebody's conftest.py, which is left as it is."""
    if not path.exists():
        path.write_text(f'"""Has pytest collect matrix.yaml."""\n\n{_PLUGIN}', encoding="utf-8")
    return _PLUGIN.strip() in path.read_text(encoding="utf-8", errors="replace")


def _ignore(path: Path) -> None:
    # As bytes: Git asks for no encoding.
    before = path.read_bytes() if path.exists() else b""
    missing = [line for line in _IGNORED if line not in before.splitlines()]
    if missing:
        joint = b"\n" if before and not before.endswith(b"\n") else b""
        path.write_bytes(before + joint + b"\n".join([*missing, b""]))

"""The files of what is to be scanned, each read once, within bounds, by the reader of its kind."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.errors import HandledError
from harness.scan.cpp import cpp
from harness.scan.python import python
from harness.scan.text import lines
from harness.scan.uses import Found, Remark

#: Larger files are data.
_LARGEST = 4 << 20
#: A file that has none of these names none of the libraries, and is not parsed.
_NAMED = re.compile(rb"tensorrt|trtexec|TensorRT|NvInfer|nvinfer|nvonnx|\btrt\b|_TRT\b|TENSORRT")
_SHOWN = frozenset({".github", ".ci", ".circleci", ".devcontainer", ".gitlab"})
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})
_IGNORE = re.compile(r"(?:#|//|/\*|--)\s*trt-compat:\s*ignore\b")
#: What IPython takes in a cell of Python, to the end of a continued line.
_MAGIC = re.compile(r"^([ \t]*)(?:[!%?]|[\w.]+\?\?? *$|[\w, ]+= *[!%]).*(?:(?<=\\)\n.*)*", re.MULTILINE)
_SIGN = re.compile(r"^[ \t]*(?:%%?\w*|!+)", re.MULTILINE)
Reader = Callable[[str, str], Found]


def notebook(text: str, path: str) -> Found:
    """Return the uses in the cells of a notebook, by cell and line of it."""
    try:
        cells = json.loads(text)["cells"]
        sources = [each["source"] for each in cells if each["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return [Remark(path, 1, "does not parse as a notebook")]
    found: Found = []
    for at, source in enumerate(sources, 1):
        code = "".join(source) if isinstance(source, list) else str(source)
        shell = _MAGIC.findall(code)
        # Lines for the shell and for IPython are no Python, nor is a cell of another language.
        plain = "" if code.lstrip().startswith("%%") else _MAGIC.sub(_pass, code)
        where = f"{path}#cell{at}"
        inside = [*python(plain, where), *(lines(_SIGN.sub("", code), where) if shell else ())]
        found += _heeded(inside, code)
    return found


def _pass(found: re.Match[str]) -> str:
    return f"{found[1]}pass{chr(10) * found[0].count(chr(10))}"


_PROGRAMS = (".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh", ".cu", ".cuh", ".inl")
_LINES = (
    *(".sh", ".bash", ".bat", ".ps1", ".yml", ".yaml", ".json"),
    *(".toml", ".in", ".cfg", ".mk", ".cmake"),
)
READERS: Mapping[str, Reader] = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), python),
    **dict.fromkeys(_PROGRAMS, cpp),
    **dict.fromkeys(_LINES, lines),
    ".ipynb": notebook,
}
_BY_NAME = re.compile(
    r"(?i)(?:Dockerfile|Containerfile|Makefile|Pipfile|Jenkinsfile)(?:[.-].*)?|.*\.Dockerfile|CMakeLists\.txt"
    r"|.*(?:requirements|constraints)[\w.-]*\.txt"
)


def reader_of(name: str) -> Reader | None:
    """Return the reader of a file's kind, None if it is not looked at."""
    found = READERS.get(os.path.splitext(name)[1].lower())  # noqa: PTH122  (ten thousand of them)
    return lines if found is None and _BY_NAME.fullmatch(name) else found


def scanned(paths: Sequence[Path]) -> tuple[Found, int]:
    """Return the uses in files and folders, without those of ignored lines, and the number of files read."""
    found: Found = []
    count = 0
    for path in paths:
        if not path.exists():
            raise HandledError(f"{path}: no such file or folder; give the code to scan")
        for each, reader in _files(path):
            count += 1
            found += one_file(each, reader)
    return found, count


def _files(path: Path) -> Iterator[tuple[str, Reader]]:
    """Yield the files below a folder that have a reader, in order; links to folders are not followed."""
    if not path.is_dir():
        yield str(path), reader_of(path.name) or lines
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(each for each in folders if _is_code(folder, each))
        for name in sorted(names):
            if reader := reader_of(name):
                yield os.path.join(folder, name), reader  # noqa: PTH118


def _is_code(folder: str, name: str) -> bool:
    """Tell whether a folder is one of code, no cache and no virtual environment."""
    hidden = name.startswith(".") and name not in _SHOWN
    return not hidden and name not in _SKIPPED and not Path(folder, name, "pyvenv.cfg").exists()


def one_file(path: str, reader: Reader) -> Found:
    """Return the uses in one file; what cannot be read is a remark."""
    try:
        about = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST:
            return []
        with open(path, "rb") as file:  # noqa: PTH123
            data = file.read(_LARGEST)
    except OSError as error:
        return [Remark(path, 1, f"cannot be read: {error.strerror or error}")]
    if not _NAMED.search(data):
        return []
    text = data.decode("utf-8", "replace")
    found = reader(text, path)
    return found if reader is notebook else _heeded(found, text)


def _heeded(found: Found, text: str) -> Found:
    """Return what does not stand on a line that says to ignore it."""
    rows = text.split("\n") if found and "trt-compat:" in text else []
    return [each for each in found if each.line > len(rows) or not _IGNORE.search(rows[each.line - 1])]

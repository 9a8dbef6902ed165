"""The files of what is to be scanned, each read once, within bounds, by the reader of its kind.

Shell, Dockerfiles, Makefiles, YAML, JSON, TOML, requirements and CMake are read as lines, a continued one as one:
trtexec's options, images, packages without a bound.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from harness.errors import HandledError
from harness.matrix.interface import interfaces
from harness.scan.cpp import cpp
from harness.scan.python import python
from harness.scan.uses import Found, Remark, Use

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


_TRTEXEC = re.compile(r"(?<![\w.-])(?:[\w./${}~-]*/)?trtexec(?:\.exe)?\b(?!\.\w)")
_TRTEXEC_OPTION = re.compile(r"(?<![\w-])--[A-Za-z]\w*")
#: The next command begins.
_NEXT = re.compile(r"&&|\|\||[;|]|(?<!\$)\)")
_IMAGE = re.compile(r"nvcr\.io/nvidia/(tensorrt|l4t-tensorrt|tritonserver|pytorch):(r?\d+\.\d+(?:\.\d+)*)")
#: The month of NVIDIA's images from which on each major is inside, by their release notes.
_MONTHS = (("26.06", "11"), ("24.05", "10"), ("21.07", "8"))
_PACKAGES = re.compile(r"tensorrt(?:-cu1[0-9])?(?:-(?:bindings|libs|lean|dispatch))?")
_REQUIREMENT = re.compile(
    r"(?<![\w./@:-])(tensorrt(?:[-_]cu1\d)?(?:[-_](?:bindings|libs|lean|dispatch))?)(?:\[[\w,-]+\])?(?=[\"'\s,;<>=!~]|$)"
    r"((?:\s*(?:===?|~=|!=|<=?|>=?)\s*[\w.*+]+(?:\s*,\s*)?)*)"
)
_INSTALL = re.compile(r"\b(?:pip3?|uv|conda|mamba|poetry)\b[^\n]*\b(?:install|add)\b")
_LISTS = re.compile(
    r"(?:requirements|constraints|environment)[\w.-]*\.(?:txt|in|ya?ml)$|pyproject\.toml$|setup\.(?:py|cfg)$|Pipfile$"
)
_LONGEST_LINE = 8192


def lines(text: str, path: str) -> Found:
    """Return the uses and remarks of a text that is no program of Python or C++."""
    found: Found = []
    is_list = bool(_LISTS.search(path))
    for number, line in _joined(text):
        if line.lstrip().startswith(("#", "//")):
            continue
        found += _commands(line, number, path)
        found += _images(line, number, path)
        if is_list or _INSTALL.search(line):
            found += _pins(line, number, path)
    return found


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with the number of each, those that are continued as one with line breaks in it."""
    kept: list[str] = []
    for number, whole in enumerate(text.split("\n"), 1):
        line = whole.rstrip("\r")[:_LONGEST_LINE]
        kept.append(line)
        if not line.endswith(("\\", "^", "`")):
            yield number - len(kept) + 1, "\n".join(kept)
            kept = []
    if kept:
        yield text.count("\n") + 2 - len(kept), "\n".join(kept)


def _commands(line: str, number: int, path: str) -> Iterator[Use]:
    """Yield the options of each trtexec of a line, up to the next command."""
    known = interfaces()["trtexec"].names
    for call in _TRTEXEC.finditer(line):
        end = _NEXT.search(line, call.end())
        for option in _TRTEXEC_OPTION.finditer(line, call.end(), end.start() if end else len(line)):
            if found := known.get(option[0]):
                before = line[: option.start()]
                row = number + before.count("\n")
                yield Use(path, row, option.start() - (before.rfind("\n") + 1) + 1, found)


def _images(line: str, number: int, path: str) -> Iterator[Remark]:
    for image in _IMAGE.finditer(line):
        version = _of_image(image[1], image[2])
        if version:
            yield Remark(path, number, f"{image[0]} holds TensorRT {version}", version=version)


def _of_image(name: str, tag: str) -> str:
    """Return the TensorRT of an image, "" if its tag does not say."""
    if name.startswith("l4t"):
        return tag.lstrip("r")
    return next((version for month, version in _MONTHS if month <= tag), "")


def _pins(line: str, number: int, path: str) -> Iterator[Remark]:
    for each in _REQUIREMENT.finditer(line.partition(" #")[0]):
        try:
            requirement = Requirement(f"{each[1]}{''.join(each[2].split()).rstrip(',')}")
        except InvalidRequirement:
            continue
        if not _PACKAGES.fullmatch(canonicalize_name(requirement.name)):
            continue
        # Only these keep the next major out.
        if not any(one.operator in ("==", "===", "~=", "<", "<=") for one in requirement.specifier):
            yield Remark(
                path, number, f"{requirement} takes the newest TensorRT, whatever its major",
                f'a bound, "{requirement.name}>=10,<11", until the code runs on 11',
            )  # fmt: skip


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

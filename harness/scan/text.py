"""The uses in command lines and lists of packages: trtexec's options, plugins' names, images, pins.

Shell, Dockerfiles, Makefiles, YAML, JSON, TOML, requirements and CMake are read as lines, a continued one as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from harness.matrix.interface import interfaces
from harness.scan.uses import Found, Remark, Use

_TRTEXEC = re.compile(r"(?<![\w.-])(?:[\w./${}~-]*/)?trtexec(?:\.exe)?\b(?!\.\w)")
_OPTION = re.compile(r"(?<![\w-])--[A-Za-z]\w*")
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
_MOST = 8192


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
        line = whole.rstrip("\r")[:_MOST]
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
        for option in _OPTION.finditer(line, call.end(), end.start() if end else len(line)):
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

"""Reads the names that TensorRT's Python bindings define out of their public C++ sources.

8.5 and 9.2 have no bindings on the package index. Their sources are public (github.com/NVIDIA/TensorRT, branches
release/8.5 and release/9.2, python/src): pybind11 definitions, regular enough to be read with three expressions. What
is kept in data/ are names alone: classes, members, enum values, and the names of a method's arguments.

    python -m tests.contract.sources CHECKOUT 8.5 > tests/contract/data/sources-8.5.json

CHECKOUT is a clone of that repository; it is read with `git show`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

_FILES = (
    "infer/pyAlgorithmSelector.cpp",
    "infer/pyCore.cpp",
    "infer/pyFoundationalTypes.cpp",
    "infer/pyGraph.cpp",
    "infer/pyInt8.cpp",
    "infer/pyPlugin.cpp",
    "parsers/pyOnnx.cpp",
    "pyTensorRT.cpp",
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
#: A scope: `py::class_<...>(m, "Builder", ...)`, `py::class_<...> name{m, "ILogger", ...}`, or an enum.
_SCOPE = re.compile(
    r'py::(?P<kind>class_|enum_)<[^;{(]*>\s*(?P<variable>\w*)\s*[({]\s*(?P<parent>\w+),\s*"(?P<name>\w+)"'
)
#: `variable.def(...)`, on a scope that was given a name.
_AGAIN = re.compile(r"(?<![\w.)])(?P<variable>\w+)(?=\s*\.(?:def|value)\w*\()")
_MEMBER = re.compile(r'(?<!\bm)\.(?P<how>def\w*|value)\(\s*"(?P<name>\w+)"')
#: A C++ vector as a class of its own.
_VECTOR = re.compile(r'py::bind_vector<[^;{(]*>\s*\(\s*m,\s*"(?P<name>\w+)"')
_OF_A_VECTOR = ("append", "clear", "count", "extend", "insert", "pop", "remove")
_FUNCTION = re.compile(r'\bm\.def\(\s*"(?P<name>\w+)"')
_ARGUMENT = re.compile(r'"(\w+)"_a')


def read(texts: Iterable[str]) -> dict[str, Any]:
    """Return `names`, every path that the sources define, and `arguments`, a method's argument names by path."""
    names: set[str] = set()
    arguments: dict[str, list[list[str]]] = {}
    for text in texts:
        _read_file(_COMMENT.sub("", text), names, arguments)
    return {"names": sorted(names), "arguments": {path: arguments[path] for path in sorted(arguments)}}


def _read_file(text: str, names: set[str], arguments: dict[str, list[list[str]]]) -> None:
    variables: dict[str, str] = {}
    scope = ""
    patterns = (_SCOPE, _AGAIN, _MEMBER, _FUNCTION, _VECTOR)
    tokens = [found for pattern in patterns for found in pattern.finditer(text)]
    for found in sorted(tokens, key=re.Match.start):
        if found.re is _SCOPE:
            parent = variables.get(found["parent"], "")
            scope = f"{parent}.{found['name']}" if parent else found["name"]
            if found["variable"]:
                variables[found["variable"]] = scope
            names.add(scope)
            if found["kind"] == "enum_":
                names.update((f"{scope}.name", f"{scope}.value"))
        elif found.re is _AGAIN:
            scope = variables.get(found["variable"], scope)
        elif found.re is _FUNCTION:
            names.add(found["name"])
        elif found.re is _VECTOR:
            names.add(found["name"])
            names.update(f"{found['name']}.{member}" for member in _OF_A_VECTOR)
        elif scope and not found["name"].startswith("_"):
            path = f"{scope}.{found['name']}"
            names.add(path)
            if found["how"] == "def":
                arguments.setdefault(path, []).append(_ARGUMENT.findall(_call(text, found.start())))


def _call(text: str, start: int) -> str:
    """Return a call's text from its dot to its closing parenthesis."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0 and text[at] == ")":
            return text[start:at]
    return text[start:]


def main() -> None:
    """Print the names of a branch as JSON."""
    checkout, version = sys.argv[1:]
    branch = f"release/{version}"

    def show(path: str) -> str:
        command = ["git", "-C", checkout, "show", f"{branch}:{path}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    found = read(show(f"python/src/{file}") for file in _FILES)
    source = {
        "source": f"https://github.com/NVIDIA/TensorRT/tree/{branch}/python/src",
        "version": show("VERSION").strip(),
    }
    json.dump({**source, **found}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()

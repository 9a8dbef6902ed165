# ruff: noqa: E501  (patterns stand on one line)
"""Writes harness/judge/tables/messages.tsv: what the open tools around TensorRT print, cut out of their sources.

    python -m tools.messages trtexec@8.6.1=FOLDER trtexec@11.1=FOLDER polygraphy@0.53.6=FOLDER ...

A folder is a checkout of the tool's repository (or an unpacked wheel) at that version. Rows of versions that are not given
stay. The groups of harness/judge/tables/groups.yaml claim forms by their words: a new version is a run of this, and a look at
the rows that no group has claimed.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from harness.judge.tables import TABLE, groups, load_forms

#: A tool's files, and the places in them where it prints an error or a warning.
_PLACES = {
    "trtexec": ("samples/common/*.[ch]*", "samples/trtexec/*.cpp"),
    "polygraphy": ("**/polygraphy/**/*.py",),
    "parser": ("*.cpp", "*.hpp"),
    "triton": ("src/*.[ch]*",),
    "torch-tensorrt": ("py/torch_tensorrt/**/*.py", "core/**/*.cpp", "core/**/*.h"),
    "ort": ("*.so",),
}
_CPP = re.compile(
    r"(?:gLog(?P<w>Warning|Error)|std::cerr|LOG_(?P<o>ERROR|WARNING))\s*<<"
    r"|(?:SMP_RETVAL_IF_FALSE|throw std::\w+|ASSERT(?:_NODE|_INPUT)?|RT_ASSERT|MAKE_\w*ERROR|LOG_(?P<l>ERROR|WARNING|WARN)|TRITONSERVER_ErrorNew"
    r"|LOG_MESSAGE|TORCHTRT_(?:CHECK|THROW_ERROR|ASSERT)|ONNXTRT_\w+|RETURN_ERROR\w*)\s*\("
)
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPES = {"n": " ", "t": " ", '"': '"', "\\": "\\"}
_LOUD = {"critical": "E", "error": "E", "internal_error": "E", "exception": "E", "warning": "W", "warn": "W"}
_LEAST_WORDS, _LEAST_LETTERS = 2, 11
#: Remarks of a library beside its complaints.
_QUIET = re.compile(
    r"enabled\.?\Z|is set to|[Ss]uccessfully|will (?:be|run|not)|won't|Dumped|erialized \Z|[Nn]ame is|version is|shape values? of|limited using"
    r"|onsolidated|dims_|shapes_|Its parent|[Ss]ubgraph|profile #|implicit|are allowed|Replaying|Capturing|Refitting from|Re-generate|EP\] \Z|is empty|V3ONE"
)


@dataclass(frozen=True)
class Site:
    """A place in a source that prints: its level, the words with {} for values, and the file."""

    level: str
    form: str
    file: str


def main(arguments: list[str]) -> int:
    """Read the folders and write the table."""
    found: dict[tuple[str, str], tuple[str, str, set[str]]] = {}
    for old in load_forms():
        found[old.tool, old.form] = old.level, old.source, set(old.versions.split(" "))
    given = [re.fullmatch(r"([\w-]+)@([\w.]+)=(.+)", each) for each in arguments]
    if not all(given) or not given:
        print(__doc__, file=sys.stderr)
        return 2
    for match in filter(None, given):
        tool, version, folder = match.groups()
        for site in sites(tool, Path(folder)):
            level, source, versions = found.get((tool, site.form), (site.level, site.file, set()))
            found[tool, site.form] = level, site.file or source, versions | {version}
    rows = []
    for (tool, form), (level, source, versions) in sorted(found.items()):
        known = sorted(versions, key=Version)
        rows.append("\t".join((tool, level, claimed(tool, form, source), " ".join(known), source, form)))
    TABLE.write_text(
        "tool\tlevel\tgroup\tversions\tsource\tform\n" + "\n".join(rows) + "\n", encoding="utf-8"
    )
    said = sum(row.split("\t")[2].endswith("-says") for row in rows)
    print(f"{len(rows)} forms, {said} that no group claims by its words")
    return 0


def claimed(tool: str, form: str, source: str) -> str:
    """Return the id of the first group that claims a form of a tool."""
    for group in groups()["groups"]:
        words = any(
            form.startswith(claim[1:]) if claim[:1] == "^" else claim in form
            for claim in group.get("claims", ())
        )
        if group["tool"] == tool and (words or any(part in source for part in group.get("files", ()))):
            return str(group["id"])
    return ""


def sites(tool: str, folder: Path) -> Iterator[Site]:
    """Yield each place of a tool's sources once."""
    seen = set()
    for pattern in _PLACES[tool]:
        for path in sorted(folder.glob(pattern)):
            if "test" in path.name or not path.is_file():
                continue
            reader = {".py": python_sites, ".so": library_sites}.get(path.suffix, cpp_sites)
            for level, text in reader(path):
                form = formed(text)
                if form and form not in seen:
                    seen.add(form)
                    yield Site(level, form, str(path.relative_to(folder)))


def formed(text: str) -> str:
    """Return a form: one blank between words, {} for what is filled in; "" for one that says too little."""
    text = re.sub(r"%(?:[-+ #0]*\d*(?:\.\d+)?(?:l{0,2}|z)[sdiuxfgp])", "{}", text)
    text = re.sub(r"(?:\{\}\s*)+\{\}", "{}", " ".join(text.split()))
    # A condition before the words is none of them.
    text = re.sub(r"\A\{\}(?=[A-Z])", "", text)
    # A word before a bar is taken for the name of a container, and cut off with the line's head.
    text = re.sub(r"\A(?:FAILED|PASSED) \| |\A(?:ERROR|Warning|\[TRT\]):? (?=\S)", "", text)
    words = re.findall(r"[A-Za-z][A-Za-z'-]+", text.replace("{}", " "))
    enough = len(words) >= _LEAST_WORDS and sum(map(len, words)) >= _LEAST_LETTERS
    return text.strip() if enough else ""


def cpp_sites(path: Path) -> Iterator[tuple[str, str]]:
    """Yield level and text of each place in a C++ source."""
    source = re.sub(r"(?m)^\s*//.*$", "", path.read_text(encoding="utf-8", errors="replace"))
    for match in _CPP.finditer(source):
        kind = (match["w"] or match["o"] or match["l"] or "").upper()
        if source.rfind("#define", 0, match.start()) > source.rfind("\n", 0, match.start()):
            continue
        end = _ends(source, match.end(), ";" if match.group().endswith("<<") else ")")
        inside = source[match.end() : end]
        level = "W" if kind.startswith("WARN") or "LOG_WARN" in inside else "E"
        for part in _arguments(inside):
            yield level, _joined(part)


def _ends(source: str, start: int, last: str) -> int:
    depth, at = 0, start
    while at < min(len(source), start + 4000):
        if (text := _LITERAL.match(source, at)) is not None:
            at = text.end()
            continue
        if depth == 0 and source[at] == last:
            return at
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(source[at], 0)
        at += 1
    return at


def _arguments(inside: str) -> Iterator[str]:
    start = 0
    while start < len(inside):
        end = _ends(inside, start, ",")
        yield inside[start:end]
        start = end + 1


def _joined(part: str) -> str:
    """Return the literals of an expression in one, {} for all else between them."""
    made, last = [], 0
    for match in _LITERAL.finditer(part):
        between = re.sub(r"std::(?:string|endl)|[\s<+(){}&]|\bstring\b", "", part[last : match.start()])
        made += ["{}"] if between else []
        made.append(re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), match[1]))
        last = match.end()
    rest = re.sub(r"std::endl|\.c_str|[\s<+(){}&]", "", part[last:])
    return "".join([*made, "{}" if made and rest else ""])


def python_sites(path: Path) -> Iterator[tuple[str, str]]:
    """Yield level and text of each place in a Python source: a logger, a warning, an exception, an assertion."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LOUD:
            yield from ((_LOUD[node.func.attr], _said(each)) for each in node.args[:1])
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from (("E", _said(each)) for each in node.exc.args[:1])
        elif isinstance(node, ast.Assert) and node.msg is not None:
            yield "E", _said(node.msg)


def _said(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else "{}"
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_said, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _said(node.left) + _said(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _said(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return re.sub(r"\{[^{}]*\}", "{}", _said(node.func.value))
    return "{}"


def library_sites(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a library that is closed, or whose sources are too large to bring: level unknown."""
    output = subprocess.run(
        ["strings", "-n", "14", str(path)], capture_output=True, text=True, check=True
    ).stdout
    for line in output.splitlines():
        said = re.match(r"(?:\[?TensorRT EP|[A-Z][a-z]+ )", line)
        if said and not re.search(r"[_:]{2}|\w\(", line) and not _QUIET.search(line):
            yield "E", line + ("{}" if line.endswith(" ") else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# ruff: noqa: E501  (a pattern stands on one line)
"""Reads NVIDIA/TensorRT, release by release, from a clone: C++ headers, trtexec's options, plugins."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from tools.interface.table import Fact, Listing

#: The oldest release that is read: people still come from code of 7.
_OLDEST = (7, 2)
_RELEASE = re.compile(r"^\*? *(?:remotes/\w+/)?(release/(\d+)\.(\d+)(?:\.\d+)?)$", re.MULTILINE)
#: What a header writes around a declaration and tree-sitter does not know.
_DECORATION = re.compile(
    r"\b(?:TRT_(?!VERSION)[A-Z_]+|TENSORRTAPI|TRTNOEXCEPT|_TENSORRT_\w+|NV_TENSORRT_\w+(?= )(?<!define ))(?:\(\"[^\"]*\"\))?(?=\s)"
)
_DEPRECATED = re.compile(r"[\\@]deprecated\s+(.*?)(?=\s*(?:[\\@]\w|$))", re.DOTALL)
_COMMENT = re.compile(r"^\s*(?://[!/]?<?|/\*[*!]?|\*/|\*)\s?", re.MULTILINE)
_OPTION = re.compile(r"\b(?:get|check|erase|parse)\w*\([^;\"]*\"(--[A-Za-z]\w*)\"")
_PARSE = re.compile(r"^(?:void|bool) (\w+)(?:::\w+)?\(Arguments& arguments", re.MULTILINE)
#: trtexec reads these of its own; others of the file are of other programs.
_OF_TRTEXEC = re.compile(
    r"^(?:Base)?ModelOptions|BuildOptions|SystemOptions|InferenceOptions|ReportingOptions|AllOptions|parseHelp|get\w+"
)
_READ = ("include", "plugin", "samples/common/sampleOptions.cpp")
_TEXTS = (".h", ".cpp", ".md")
#: Larger sources are kernels as bytes: NvInfer.h has half of it.
_LARGEST = 800_000
_HEADER = re.compile(r"include/\w+(?<!Impl)\.h")
_PLUGIN_ROW = re.compile(r"^\| \[[^|]*\| (\w+) *\| *([\d, ]+?) *\|", re.MULTILINE)


@dataclass(frozen=True)
class Release:
    """One branch of the clone, and the version that it says it is."""

    branch: str
    version: str


class Clone:
    """A clone of NVIDIA/TensorRT with its release branches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")

    def releases(self) -> list[Release]:
        """Return the releases from the oldest to the newest, one a version."""
        found = {}
        for branch, major, minor in _RELEASE.findall(self._git("branch", "-a")):
            if (int(major), int(minor)) >= _OLDEST:
                text = self._git("show", f"{branch}:VERSION")
                version = ".".join(text.strip().split(".")[:3])
                found[version] = Release(branch, version)
        return sorted(found.values(), key=lambda each: [int(part) for part in each.version.split(".")])

    @lru_cache(maxsize=2)  # noqa: B019  (one clone a run)
    def tree(self, branch: str) -> dict[str, str]:
        """Return the texts that are read of a release, by path."""
        command = ["git", "-C", str(self.folder), "archive", branch, *_READ]
        done = subprocess.run(command, check=True, capture_output=True)
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            some = [each for each in archive if each.name.endswith(_TEXTS) and each.size < _LARGEST]
            found = [(each.name, archive.extractfile(each)) for each in some]
            return {name: file.read().decode("utf-8", "replace") for name, file in found if file}


def trtexec(clone: Clone, release: Release) -> Listing:
    """Return the options that trtexec reads."""
    text = clone.tree(release.branch)["samples/common/sampleOptions.cpp"]
    starts = [*_PARSE.finditer(text)]
    ends = [*(each.start() for each in starts[1:]), len(text)]
    own = [
        text[each.start() : end] for each, end in zip(starts, ends, strict=True) if _OF_TRTEXEC.match(each[1])
    ]
    return {name: Fact() for part in own for name in _OPTION.findall(part)}


def plugins(clone: Clone, release: Release) -> Listing:
    """Return the plugins by name and version that the table of NVIDIA's page names and the sources write."""
    tree = clone.tree(release.branch)
    written = "".join(
        text for path, text in tree.items() if path.endswith((".cpp", ".h")) and path.startswith("plugin/")
    )
    found: Listing = {}
    for name, versions in _PLUGIN_ROW.findall(tree["plugin/README.md"]):
        if f'"{name}"' in written:
            found[name] = Fact()
            found.update({f"{name}.{each.strip()}": Fact() for each in versions.split(",")})
    return found


def parser(clone: Clone, release: Release) -> Listing:
    """Return what the headers of the ONNX parser declare; {} of a release that has them in another repository."""
    found = headers(clone, release, onnx=True)
    # That of 7.2 is too far from the next to tell when a name came.
    return found if "OnnxParserFlag" in found else {}


def headers(clone: Clone, release: Release, *, onnx: bool = False) -> Listing:
    """Return the classes, their public members, the enumerators, functions and aliases of the public headers.

    Those of the ONNX parser are apart: not every release has them in the clone.
    """
    found: Listing = {}
    for path, whole in clone.tree(release.branch).items():
        if _HEADER.fullmatch(path) and ("/NvOnnx" in path) is onnx:
            text = _DECORATION.sub("", whole)
            tree = Parser(Language(tree_sitter_cpp.language())).parse(text.encode())
            for name, fact in _declared(tree.root_node, path.rpartition("/")[2]):
                found.setdefault(name, fact)
                if fact.note and not found[name].note:
                    found[name] = fact
    return found


_TYPES = frozenset({"class_specifier", "struct_specifier", "enum_specifier"})
_SCOPES = frozenset(
    {
        "translation_unit", "namespace_definition", "declaration_list", "linkage_specification",
        "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "template_declaration",
    }
)  # fmt: skip


def _declared(node: Node, file: str) -> Iterator[tuple[str, Fact]]:
    """Yield what is declared at the top of a header, in namespaces or not."""
    note = ""
    for child in node.named_children:
        if child.type == "comment":
            note = _said(note, child)
            continue
        if child.type in _SCOPES:
            yield from _declared(child, file)
        else:
            yield from _one(child, note, file)
        note = ""


def _one(node: Node, note: str, file: str) -> Iterator[tuple[str, Fact]]:
    """Yield what one declaration declares."""
    if node.type in _TYPES:
        yield from _type(node, note, file)
    elif node.type in ("declaration", "function_definition"):
        for inner in node.named_children:
            if inner.type in _TYPES:
                yield from _type(inner, note, file)
        yield from _function(node, "", note, file)
    elif node.type in ("alias_declaration", "type_definition"):
        name, target = node.child_by_field_name("name"), node.child_by_field_name("type")
        # Versions of an interface are classes of one name in namespaces of their own, and an alias takes one.
        if name and target and _last(_text(target)) != _text(name):
            yield _text(name), Fact(note=_deprecation(note, file), bases=(_last(_text(target)),))


def _type(node: Node, note: str, file: str) -> Iterator[tuple[str, Fact]]:
    """Yield a class, a structure or an enumeration with its public members."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is None or body is None:
        return
    owner = _last(_text(name))
    bases = [_last(_text(each)) for child in node.children if child.type == "base_class_clause"
             for each in child.named_children if each.type != "access_specifier"]  # fmt: skip
    yield owner, Fact(note=_deprecation(note, file), bases=tuple(bases))
    if node.type == "enum_specifier":
        yield from _enumerators(body, owner, file)
        return
    public, said = node.type == "struct_specifier", ""
    for child in body.named_children:
        if child.type == "access_specifier":
            public = _text(child).startswith("public")
        elif child.type == "comment":
            said = _said(said, child)
            continue
        elif public and child.type in ("function_definition", "declaration", "field_declaration"):
            yield from _function(child, f"{owner}.", said, file)
        said = ""


def _enumerators(body: Node, owner: str, file: str) -> Iterator[tuple[str, Fact]]:
    said = ""
    for child in body.named_children:
        if child.type == "comment":
            said = _said(said, child)
        elif child.type == "enumerator" and (name := child.child_by_field_name("name")):
            yield f"{owner}.{_text(name)}", Fact(returns=owner, note=_deprecation(said, file))
            said = ""


def _function(node: Node, prefix: str, note: str, file: str) -> Iterator[tuple[str, Fact]]:
    """Yield a function, or a field, with what it returns."""
    declarator, returns = node.child_by_field_name("declarator"), node.child_by_field_name("type")
    while declarator is not None and declarator.type in (
        "pointer_declarator",
        "reference_declarator",
        "array_declarator",
    ):
        inner = declarator.named_children
        declarator = declarator.child_by_field_name("declarator") or (inner[-1] if inner else None)
    is_call = declarator is not None and declarator.type == "function_declarator"
    if is_call and declarator is not None:
        declarator = declarator.child_by_field_name("declarator")
    if declarator is None or not (is_call or prefix):
        return
    name = _text(declarator)
    if re.fullmatch(r"[A-Za-z]\w*", name) and f"{name}." != prefix:
        kind = _last(_text(returns)) if returns is not None else ""
        yield prefix + name, Fact(returns=kind if kind[:1].isupper() else "", note=_deprecation(note, file))


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _last(name: str) -> str:
    return name.rpartition("::")[2].strip()


def _said(before: str, comment: Node) -> str:
    """Return the comment, after those right above it."""
    return f"{before}\n{_COMMENT.sub('', _text(comment))}"


def _deprecation(note: str, file: str) -> str:
    found = _DEPRECATED.search(note.replace("\n\n", " \\\n"))
    return f"{' '.join(found[1].split()).rstrip(chr(92) + ' ')} ({file})" if found else ""

"""The uses in C++, by tree-sitter: qualified names, types, and members by the types that declarations tell."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping
from functools import cache

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from harness.matrix.interface import Name, interfaces
from harness.scan.conditions import UNREAD, Condition, decoded
from harness.scan.uses import Found, Use, by_name, plugin_named

_QUERY = """
(field_expression argument: (_) @object field: (field_identifier) @field)
(qualified_identifier) @qualified
(type_identifier) @type
(call_expression function: (identifier) @call)
(string_content) @string
(declaration type: (_) @declared declarator: (_) @variable)
(field_declaration type: (_) @declared declarator: (_) @variable)
(parameter_declaration type: (_) @declared declarator: (_) @variable)
(class_specifier name: (type_identifier) @own)
(struct_specifier name: (type_identifier) @own)
(function_declarator declarator: (field_identifier) @defined)
(function_declarator declarator: (qualified_identifier name: (identifier) @defined))
"""
_SPEAKS = re.compile(r"\bNvInfer|\bnvinfer1\b|\bNvOnnx|\bnvonnxparser\b|\bNV_TENSORRT_")
_VERSION = re.compile(
    r"NV_TENSORRT_|TENSORRT_?V|TRT_?(?:LIB_)?V|TRT_?(?:MAJOR|\d)|TENSORRT_?(?:MAJOR|\d)|NV_?INFER_?V"
)
_COMPARED = re.compile(r"([<>]=?|[=!]=)\s*(\d+)L?\s*\)?\s*$")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if\w*|el\w+|endif)\b(.*(?:\\\n.*)*)", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(r"(?:->|\.|\b)(\w+)\s*\(")
#: The ends of variables' names by which members that another file declares are told.
_USUAL = {
    "engine": "ICudaEngine", "context": "IExecutionContext", "builder": "IBuilder", "config": "IBuilderConfig",
    "network": "INetworkDefinition", "runtime": "IRuntime", "profile": "IOptimizationProfile", "layer": "ILayer",
}  # fmt: skip


def cpp(text: str, path: str) -> Found:
    """Return the uses in a file of C++ or CUDA that names TensorRT's headers or namespaces."""
    return [*_File(text, path).uses()] if _SPEAKS.search(text) else []


@cache
def _parser() -> tuple[Parser, Query]:
    language = Language(tree_sitter_cpp.language())
    return Parser(language), Query(language, _QUERY)


class _File:
    """One file: its captures, the classes of its variables, and the lines behind a test of the version."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        parser, query = _parser()
        self.tree = parser.parse(text.encode())
        self.captures: Mapping[str, list[Node]] = QueryCursor(query).captures(self.tree.root_node)
        self.main = interfaces()["c++"]
        self.interfaces = (self.main, interfaces()["c++ parser"])
        self.own = {_text(each) for each in self.captures.get("own", ())}
        self.defined = {_text(each) for each in self.captures.get("defined", ())}
        self.classes = self._variables()
        self.guarded = _guarded(text)

    def uses(self) -> Iterator[Use]:
        """Yield the uses."""
        for node in self.captures.get("qualified", ()):
            parts = _WORD.findall(_text(node))
            whole = node.parent is not None and node.parent.type != "qualified_identifier"
            if not whole or len(parts) == 1 or parts[-2] in self.own:
                continue
            if name := self._name(".".join(parts[-2:])) or self._name(parts[-1]):
                yield self._use(_last(node), name)
        for node in (*self.captures.get("type", ()), *self.captures.get("call", ())):
            inside = node.parent is not None and node.parent.type == "qualified_identifier"
            if not inside and _text(node) not in self.own and (name := self._name(_text(node))):
                yield self._use(node, name)
        for node in self.captures.get("field", ()):
            yield from self._member(node)
        for node in self.captures.get("string", ()):
            if name := plugin_named(_text(node)):
                yield self._use(node, name)

    def _member(self, node: Node) -> Iterator[Use]:
        before = node.parent.child_by_field_name("argument") if node.parent else None
        owner = self._class(before) if before is not None else ""
        if owner:
            found = self._find(owner, _text(node))
            if found:
                yield self._use(node, found)
            return
        for interface in self.interfaces:
            name = by_name(interface, _text(node)) if _text(node) not in self.defined else None
            if name:
                yield self._use(node, name, sure=False)
                return

    def _find(self, owner: str, member: str) -> Name | None:
        return next((found for each in self.interfaces if (found := each.member(owner, member))), None)

    def _name(self, full: str) -> Name | None:
        return next((found for each in self.interfaces if (found := each.names.get(full))), None)

    def _class(self, node: Node) -> str:
        """Return the class of an expression: of a variable, of what a call gives."""
        if node.type == "call_expression":
            return self._given(_text(node))
        word = (_WORD.findall(_text(node)) or [""])[-1]
        if node.type in ("identifier", "field_expression", "pointer_expression", "this") or "get()" in _text(
            node
        ):
            if word in self.classes:
                return self.classes[word]
            usual = re.sub(r"^(?:m_?|trt_?|cuda_?|g_?|p_?|s_?)+(?=[a-zA-Z])|_+$", "", word).lower()
            return _USUAL.get(usual, "")
        return ""

    def _given(self, text: str) -> str:
        """Return the class that the last known call of an expression gives."""
        for called in reversed(_CALLED.findall(text)):
            gives = {name.gives for each in self.interfaces for name in each.by_bare.get(called, ())}
            if len(gives) == 1 and "" not in gives:
                return gives.pop()
        return ""

    def _variables(self) -> dict[str, str]:
        """Return the class of each variable that the file declares; of one that has several, none."""
        found: dict[str, set[str]] = {}
        for node in self.captures.get("variable", ()):
            declared = node.parent.child_by_field_name("type") if node.parent else None
            known = (
                [each for each in _WORD.findall(_text(declared)) if self._is_class(each)]
                if declared is not None
                else []
            )
            name, value = node, None
            while (inner := name.child_by_field_name("declarator")) is not None:
                name, value = inner, value or name.child_by_field_name("value")
            if name.type in ("pointer_declarator", "reference_declarator") and name.named_children:
                name = name.named_children[-1]
            kind = known[-1] if known else ""
            if not kind and value is not None:
                words = [each for each in _WORD.findall(_text(value)[:400]) if self._is_class(each)]
                kind = words[0] if words and "<" in _text(value) else self._given(_text(value)[:400])
            found.setdefault(_text(name), set()).add(kind)
        return {name: kinds.pop() for name, kinds in found.items() if len(kinds) == 1 and kinds != {""}}

    def _is_class(self, word: str) -> bool:
        return word[:1].isupper() and any(word in each.names for each in self.interfaces)

    def _use(self, node: Node, name: Name, *, sure: bool = True) -> Use:
        row, column = node.start_point
        return Use(self.path, row + 1, column + 1, name, self.guarded.get(row + 1, ()), sure)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _last(node: Node) -> Node:
    """Return the last name of a qualified one."""
    while node.type == "qualified_identifier" and (inner := node.child_by_field_name("name")) is not None:
        node = inner
    return node


def _guarded(text: str) -> dict[int, tuple[Condition, ...]]:
    """Return by line the tests of the version that its conditional parts make."""
    if not _VERSION.search(text):
        return {}
    starts = [0, *(each.end() for each in re.finditer("\n", text))]
    open_parts: list[tuple[int, Condition | None]] = []
    found: dict[int, tuple[Condition, ...]] = {}
    for each in _DIRECTIVE.finditer(text):
        row = bisect.bisect_right(starts, each.start())
        before = None
        if not each[1].startswith("if") and open_parts:
            first, before = open_parts.pop()
            found.update((line, (*found.get(line, ()), before)) for line in range(first, row) if before)
        if each[1].startswith("if"):
            open_parts.append((row, _condition(each[2], negated=each[1] == "ifndef")))
        elif each[1] == "else":
            open_parts.append((row, before.negated() if before else None))
        elif each[1] != "endif":
            open_parts.append((row, _condition(each[2]) or (UNREAD if before else None)))
    return found


def _condition(text: str, *, negated: bool = False) -> Condition | None:
    """Return the test of a directive; None if it asks for no version of TensorRT."""
    if not _VERSION.search(text):
        return None
    found = _COMPARED.search(text.partition("//")[0])
    if not found or negated or "&&" in text or "||" in text:
        return UNREAD
    return Condition(found[1], decoded(int(found[2])))

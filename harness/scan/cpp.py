"""The uses in C++, by tree-sitter: qualified names, types, and members by the types that declarations tell."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from functools import cache

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from harness.matrix.interface import Interface, Name, interfaces
from harness.scan.uses import UNREAD, Condition, Found, Use, by_name, decoded, plugin_named

_QUERY = """
(field_expression argument: (_) @object field: (field_identifier) @field)
(qualified_identifier) @qualified
(type_identifier) @type
(call_expression function: (identifier) @call)
(string_content) @string
(preproc_arg) @macro
(alias_declaration name: (type_identifier) @alias)
(function_declarator declarator: (field_identifier) @override (virtual_specifier))
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
_TEMPLATE = re.compile(r"<\s*(?:\w+::)*(\w+)\s*(?:,[^<>]*)?>\s*$")
#: What programs write for `noexcept` and for exported classes, which a parser of plain C++ takes for something else.
_MACRO = re.compile(
    r"(?<=[)\s])[A-Z][A-Z0-9_]{3,}(?=\s*(?:override\b|final\b|\{|=\s*0|;))"
    r"|(?<=class )[A-Z][A-Z0-9_]+(?=\s+\w+\s*(?:final\s*)?[:{])",
    re.ASCII,
)
#: An enumerator, in the text of a macro.
_QUALIFIED = re.compile(r"\b([A-Z]\w+)::(k[A-Z]\w+)")
#: Nodes around an expression.
_WRAPPING = frozenset({"initializer_list", "argument_list", "parenthesized_expression", "pointer_expression"})
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


@cache
def _interface() -> Interface:
    """Return the names of all headers together."""
    one, other = interfaces()["c++"], interfaces()["c++ parser"]
    names, bases = {**other.names, **one.names}, {**other.bases, **one.bases}
    return Interface(one.versions, names, bases, {}, {**other.by_bare, **one.by_bare})


class _File:
    """One file: its captures, the classes of its variables, and the lines behind a test of the version."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        parser, query = _parser()
        self.tree = parser.parse(_MACRO.sub(lambda found: " " * len(found[0]), text).encode())
        captures = QueryCursor(query).captures(self.tree.root_node)
        # The order of the file decides what a variable is by then.
        self.captures = {name: sorted(nodes, key=_place) for name, nodes in captures.items()}
        self.interface = _interface()
        self.own = {_text(each) for each in self.captures.get("own", ())}
        self.defined = {_text(each) for each in self.captures.get("defined", ())}
        aliases = [each.parent for each in self.captures.get("alias", ()) if each.parent is not None]
        words = [_WORD.findall(_text(each)) for each in aliases]
        self.aliases = {each[1]: each[-1] for each in words if len(each) > 2}  # noqa: PLR2004  (using, name, type)
        self.classes: dict[str, str] = {}
        self._declare()
        self.guarded = _guarded(text)

    def uses(self) -> Iterator[Use]:
        """Yield the uses."""
        for node in self.captures.get("qualified", ()):
            if node.parent is not None and node.parent.type != "qualified_identifier":
                yield from self._named(_last(node), _WORD.findall(_text(node).partition("<")[0])[-2:])
        readers = {
            "type": self._alone, "call": self._alone, "macro": self._defined_as, "field": self._member,
            "override": self._overridden, "string": self._string,
        }  # fmt: skip
        for kind, reader in readers.items():
            for node in self.captures.get(kind, ()):
                yield from reader(node)

    def _alone(self, node: Node) -> Iterator[Use]:
        if node.parent is not None and node.parent.type != "qualified_identifier":
            yield from self._named(node, [_text(node)])

    def _defined_as(self, node: Node) -> Iterator[Use]:
        for found in _QUALIFIED.finditer(_text(node)):
            yield from self._named(node, [found[1], found[2]])

    def _string(self, node: Node) -> Iterator[Use]:
        if name := plugin_named(_text(node)):
            yield self._use(node, name)

    def _named(self, node: Node, parts: list[str]) -> Iterator[Use]:
        """Yield the use that a name is, alone or of the class before it."""
        if parts[0] in self.own:
            return
        parts = [self.aliases.get(parts[0], parts[0]), *parts[1:]]
        names = self.interface.names
        found = self.interface.member(*parts) if len(parts) > 1 else names.get(parts[0])
        if found := found or names.get(parts[-1]):
            yield self._use(node, found)

    def _member(self, node: Node) -> Iterator[Use]:
        before = node.parent.child_by_field_name("argument") if node.parent else None
        owner = self._class(before) if before is not None else ""
        found = self.interface.member(owner, _text(node)) if owner else None
        if found:
            yield self._use(node, found)
        elif _text(node) not in self.defined and (name := by_name(self.interface, _text(node))):
            yield self._use(node, name, sure=False)

    def _overridden(self, node: Node) -> Iterator[Use]:
        """Yield the method of a base that a class overrides."""
        for base in _bases(node):
            whole, found = self.interface.names.get(base), self.interface.member(base, _text(node))
            # Of a class that goes itself its use as a base is told.
            if found and not (whole and whole.spans[-1] == found.spans[-1]):
                yield self._use(node, found)

    def _class(self, node: Node | None) -> str:
        """Return the class of an expression: of a variable, of what a call gives."""
        if node is None:
            return ""
        if node.type == "call_expression":
            return self._given(node)
        if node.type in _WRAPPING:
            return self._class(node.named_children[0]) if node.named_children else ""
        word = (_WORD.findall(_text(node)) or [""])[-1]
        if word in self.classes:
            return self.classes[word]
        usual = re.sub(r"^(?:m_?|trt_?|cuda_?|g_?|p_?|s_?)+(?=[a-zA-Z])|_+$", "", word).lower()
        return _USUAL.get(usual, "")

    def _given(self, node: Node) -> str:
        """Return the class that a call gives: its template's, that of the interface, or that of what it wraps."""
        called = node.child_by_field_name("function")
        if called is None:
            return ""
        if template := _TEMPLATE.search(_text(called)):
            return template[1] if self._is_class(template[1]) else ""
        name = (_WORD.findall(_text(called)) or [""])[-1]
        if name == "get" and called.type == "field_expression":
            return self._class(called.child_by_field_name("argument"))
        gives = {each.gives for each in self.interface.by_bare.get(name, ())}
        if not gives:
            return self._class(node.child_by_field_name("arguments"))
        return gives.pop() if len(gives) == 1 else ""

    def _declare(self) -> None:
        """Take in the class of each variable that the file declares; of one that has several, none."""
        found: dict[str, list[str]] = {}
        for node in self.captures.get("variable", ()):
            declared = node.parent.child_by_field_name("type") if node.parent else None
            words = _WORD.findall(_text(declared)) if declared else []
            name, value = _declared(node)
            kind = next(filter(self._is_class, reversed(words)), "") or self._class(value)
            kinds = found.setdefault(name, [])
            kinds += [] if kind in kinds else [kind]
            # What follows may be made of it.
            self.classes.update({name: kind} if kind else {})
        for name in (each for each, kinds in found.items() if len(kinds) > 1):
            self.classes.pop(name, None)

    def _is_class(self, word: str) -> bool:
        return word[:1].isupper() and word in self.interface.names

    def _use(self, node: Node, name: Name, *, sure: bool = True) -> Use:
        row, column = node.start_point
        return Use(self.path, row + 1, column + 1, name, self.guarded.get(row + 1, ()), sure)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _place(node: Node) -> tuple[int, int]:
    return node.start_byte, node.end_byte


def _last(node: Node) -> Node:
    """Return the last name of a qualified one."""
    while node.type == "qualified_identifier" and (inner := node.child_by_field_name("name")) is not None:
        node = inner
    return node


def _bases(node: Node) -> Iterator[str]:
    """Yield the words that name the bases of the class around a node."""
    above: Node | None = node
    while above is not None and above.type not in ("class_specifier", "struct_specifier"):
        above = above.parent
    for each in above.children if above else ():
        yield from _WORD.findall(_text(each)) if each.type == "base_class_clause" else ()


def _declared(node: Node) -> tuple[str, Node | None]:
    """Return the name of a declared variable, and its value."""
    value = None
    while (inner := node.child_by_field_name("declarator")) is not None:
        value = value or node.child_by_field_name("value")
        node = inner
    if node.type in ("pointer_declarator", "reference_declarator") and node.named_children:
        node = node.named_children[-1]
    return _text(node), value


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
        if each[1] != "endif":
            open_parts.append((row, _opened(each[1], each[2], before)))
    return found


def _opened(directive: str, text: str, before: Condition | None) -> Condition | None:
    """Return the test of the part behind a directive; `before` is that of the part before it."""
    if directive == "else":
        return before.negated() if before else None
    return _condition(text, negated=directive == "ifndef") or (UNREAD if before else None)


def _condition(text: str, *, negated: bool = False) -> Condition | None:
    """Return the test of a directive; None if it asks for no version of TensorRT."""
    if not _VERSION.search(text):
        return None
    found = _COMPARED.search(text.partition("//")[0])
    if not found or negated or "&&" in text or "||" in text:
        return UNREAD
    return Condition(found[1], decoded(int(found[2])))

"""A module -> its mutants: where each is, what it reads, and the code that it compiles to."""

from __future__ import annotations

import ast
import bisect
import difflib
import functools
import hashlib
import marshal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType
from typing import Any

from tools.mutants.mutations import members, replacements

#: Fields that are there for readers and type checkers.
_UNMUTATED = {"decorator_list", "returns", "annotation", "bases", "format_spec", "type_comment"}
_TYPES = {"Literal", "Callable", "TypeVar", "NewType", "cast"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """The outermost function about a place, as its code object knows it: the names down to it, and its first line."""

    names: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class _Place:
    """A node in its tree: `holder.name`, or the entry of that list."""

    holder: ast.AST
    name: str
    index: int | None

    @property
    def node(self) -> ast.AST:
        """Return the node that is there."""
        held = getattr(self.holder, self.name)
        node: ast.AST = held if self.index is None else held[self.index]
        return node

    def put(self, node: ast.AST) -> ast.AST:
        """Put a node there; return the one that was."""
        before = self.node
        if self.index is None:
            setattr(self.holder, self.name, node)
        else:
            getattr(self.holder, self.name)[self.index] = node
        return before


@dataclass(frozen=True)
class _Scope:
    names: tuple[str, ...] = ()
    function: Function | None = None
    #: The lines of the innermost statement, of a compound one its head.
    lines: tuple[int, int] = (0, 0)

    def inside(self, node: ast.AST) -> _Scope:
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            first = getattr(body[0], "lineno", 0) or body[0].pattern.lineno if body else 0
            last = max(node.lineno, first - 1) if body else node.end_lineno or node.lineno
            return _Scope(self.names, self.function, (node.lineno, last))
        return self

    def named(self, node: _Function | ast.ClassDef) -> _Scope:
        names, function = (*self.names, node.name), self.function
        if function is None and not isinstance(node, ast.ClassDef):
            function = Function(names, min([node.lineno, *(each.lineno for each in node.decorator_list)]))
        return _Scope(names, function, self.lines)


@dataclass(frozen=True)
class Mutant:
    """One change of one module. `nth` counts those of a scope that read alike; the key holds when lines move."""

    module: Module = field(repr=False, compare=False)
    scope: str
    change: str
    nth: int
    line: int
    lines: tuple[int, int]
    function: Function | None
    place: _Place = field(repr=False, compare=False)
    replacement: ast.AST = field(repr=False, compare=False)

    @property
    def key(self) -> tuple[str, str, str]:
        """Return module, function and mutation, as the file of survivors names them."""
        return self.module.name, self.scope, self.change + (f" ({self.nth})" if self.nth > 1 else "")

    @property
    def id(self) -> str:
        """Return a short name that is the same as long as the mutant is."""
        return hashlib.sha256("\n".join(self.key).encode()).hexdigest()[:8]

    def compiled(self, *, alone: bool = False) -> CodeType:
        """Return the module's code with this change in it; `alone` of the one statement of the module that it is in."""
        before = self.place.put(self.replacement)
        try:
            return self.module.compiled(self.line if alone else None)
        finally:
            self.place.put(before)

    def diff(self) -> str:
        """Return the change as a diff of the source where the syntax tree knows the place, else as it reads."""
        changed = self.module.spliced(self.place.node, self.replacement)
        if changed is None:
            before, _, after = self.change.partition(" => ")
            return f"-{before}\n+{after}"
        lines = difflib.unified_diff(self.module.source.splitlines(), changed.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


class Module:
    """A module's source and syntax tree."""

    def __init__(self, root: Path, path: Path) -> None:
        self.path = path
        self.file = path.relative_to(root).as_posix()
        self.name = self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.source = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.source, filename=str(path))

    def compiled(self, line: int | None = None) -> CodeType:
        """Return the code of the tree as it stands, or of the one statement of the module about a line."""
        tree = self.tree
        if line is not None:
            begins = [statement.lineno for statement in tree.body]
            tree = ast.Module([tree.body[bisect.bisect(begins, line) - 1]], [])
        code: CodeType = compile(tree, str(self.path), "exec", dont_inherit=True)
        return code

    def mutants(self) -> Iterator[Mutant]:
        """Yield every mutant that is other code than the module."""
        known, seen = members(self.tree), Counter[tuple[str, str]]()
        original = functools.cache(lambda line: marshal.dumps(self.compiled(line)))
        for place, node, scope in _walk(self.tree, _Scope()):
            for replacement in replacements(node, known):
                _locate(replacement, node)
                name, change = ".".join(scope.names) or "<module>", _read(node, replacement)
                seen[name, change] += 1
                mutant = Mutant(
                    module=self,
                    scope=name,
                    change=change,
                    nth=seen[name, change],
                    line=getattr(node, "lineno", scope.lines[0]),
                    lines=scope.lines,
                    function=scope.function,
                    place=place,
                    replacement=replacement,
                )
                if marshal.dumps(mutant.compiled(alone=True)) != original(mutant.line):
                    yield mutant

    def spliced(self, node: ast.AST, replacement: ast.AST) -> str | None:
        """Return the source with another node in place of one; None where the tree does not know its text."""
        segment = ast.get_source_segment(self.source, node)
        if segment is None or not isinstance(node, ast.expr | ast.stmt) or not _same(segment, node):
            return None
        lines = self.source.splitlines(keepends=True)
        first, start = node.lineno - 1, node.col_offset
        last, end = (node.end_lineno or node.lineno) - 1, node.end_col_offset
        head = "".join(lines[:first]) + lines[first].encode()[:start].decode()
        tail = lines[last].encode()[end:].decode() + "".join(lines[last + 1 :])
        return head + _changed_text(segment, node, replacement) + tail


def _changed_text(segment: str, node: ast.AST, replacement: ast.AST) -> str:
    """Return a replacement as source; of a compound statement only the head changes."""
    if isinstance(node, ast.If | ast.While | ast.For | ast.Match):
        for name in ("test", "iter"):
            inner, other = getattr(node, name, None), getattr(replacement, name, None)
            if inner is not other and inner is not None and other is not None:
                old = ast.unparse(inner)
                return segment.replace(old, ast.unparse(other), 1)
    return ast.unparse(replacement)


def _same(segment: str, node: ast.AST) -> bool:
    try:
        tree = ast.parse(f"({segment}\n)", mode="eval").body if isinstance(node, ast.expr) else None
    except SyntaxError:
        return False
    return tree is None or ast.dump(tree) == ast.dump(node)


def _locate(replacement: ast.AST, node: ast.AST) -> None:
    """Give what is new in a replacement the place of the node."""
    for each in ast.walk(replacement):
        if not hasattr(each, "lineno") and hasattr(node, "lineno"):
            ast.copy_location(each, node)


def _read(node: ast.AST, replacement: ast.AST) -> str:
    """Return how a mutation reads, on one line: what was there => what is there now."""
    before, after = ast.unparse(node), ast.unparse(replacement)
    if isinstance(node, ast.If | ast.While | ast.For | ast.Match | ast.ExceptHandler):
        pairs = zip(before.splitlines(), after.splitlines(), strict=False)
        heads = [(old, new) for old, new in pairs if old != new]
        first = before.splitlines()[0]
        old, new = heads[0] if heads else (before, after)
        before, after = (old, new) if old == first else (f"{first} {old.strip()}", new.strip())
    return f"{' '.join(before.split())} => {' '.join(after.split())}"


def _walk(holder: ast.AST, scope: _Scope) -> Iterator[tuple[_Place, ast.AST, _Scope]]:
    for name, value in ast.iter_fields(holder):
        if name in _UNMUTATED:
            continue
        children: list[tuple[int | None, Any]] = (
            list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        )
        for index, child in children:
            if not isinstance(child, ast.AST) or _left_alone(holder, child):
                continue
            inner = scope.inside(child)
            yield _Place(holder, name, index), child, inner
            if isinstance(child, _Function | ast.ClassDef):
                yield from _walk_definition(child, inner)
            else:
                yield from _walk(child, inner)


def _walk_definition(
    node: _Function | ast.ClassDef, scope: _Scope
) -> Iterator[tuple[_Place, ast.AST, _Scope]]:
    """Walk a definition: defaults are evaluated outside it."""
    if not isinstance(node, ast.ClassDef):
        yield from _walk(node.args, replace(scope, names=(*scope.names, node.name)))
    # The same list of statements, so that what is put there is put into the definition.
    yield from _walk(ast.Module(node.body, []), scope.named(node))


def _left_alone(holder: ast.AST, node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return isinstance(holder, ast.JoinedStr | ast.Expr)
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return True
    called = (
        node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else None
    )
    if isinstance(called, ast.Name) and called.id in _TYPES:
        return True
    # Guards against a fault of the code itself, which there should be none of.
    if isinstance(holder, ast.keyword) and holder.arg == "strict":
        return True
    # The wording of an exception.
    return isinstance(holder, ast.Raise) and isinstance(node, ast.Call) and all(map(_worded, node.args))


def _worded(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))

"""The uses in Python, by the syntax tree: of modules, types and keyword arguments, with what guards them."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace

from harness.matrix.interface import Interface, Name, interfaces
from harness.scan.conditions import UNREAD, Condition
from harness.scan.guards import Guards
from harness.scan.types import ExpressionKind, Scope, Types, key_of
from harness.scan.uses import Found, Remark, Use, by_name, plugin_named

#: A file that has none of these in it imports no TensorRT: torch_tensorrt is another library.
_SPEAKS = re.compile(r"\btensorrt\b(?!\.git)|\btrt\b|\btrtexec\b|\bTRT")
#: With its value or not; others are options of many programs.
_OPTION = re.compile(r"(--(?:[a-z]+[A-Z]\w*|[a-z]+\d+|best|calib|workspace))(?:=|\s|$)")
#: Errors that a name that is not there raises.
_ABSENCES = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError"})
Behind = tuple[Condition, ...]
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def python(text: str, path: str) -> Found:
    """Return the uses in a Python file, or the remark that it is none."""
    if not _SPEAKS.search(text):
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        return [Remark(path, line, f"does not parse as Python: {getattr(error, 'msg', None) or error}")]
    try:
        return [*_Walk(tree, path, text).uses()]
    except RecursionError:
        return [Remark(path, 1, "is nested too deeply to be read")]


class _Walk:
    """One walk over a file."""

    def __init__(self, tree: ast.Module, path: str, text: str) -> None:
        self.text = text
        self.tree = tree
        self.path = path
        self.interface: Interface = interfaces()["python"]
        self.types = Types(tree, self.interface)
        nodes = [*ast.walk(tree)] if self.types.has_module or "trtexec" in text else []
        self.guards = Guards(nodes, self.types)
        #: By function the guards of each call of it, and the function that each use is in.
        self.calls: dict[str, list[Behind]] = {}
        self.within: dict[Use, str] = {}
        calls = [each for each in nodes if isinstance(each, ast.Call)]
        self.called = {each.func for each in calls}
        self.functions = [each for each in nodes if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
        self.own_options = {part for each in calls if "add_" in key_of(each.func) for part in each.args}

    def uses(self) -> Iterator[Use]:
        """Yield the uses, each with the guards of the calls of its function."""
        if not self.types.has_module and "trtexec" not in self.text:
            return
        for use in [*self._block(self.tree.body, self.types.module, (), "")]:
            yield replace(use, callers=tuple(self.calls.get(self.within.get(use, ""), ())))

    def _block(self, body: list[ast.stmt], scope: Scope, behind: Behind, function: str) -> Iterator[Use]:
        for statement in body:
            yield from self._statement(statement, scope, behind, function)
            # What follows `if version >= 10: return` is of the other versions.
            if isinstance(statement, ast.If) and isinstance(statement.body[-1], _LEAVING):
                test = self.guards.of(statement.test)
                behind = (*behind, test.negated()) if test else behind

    def _statement(self, node: ast.AST, scope: Scope, behind: Behind, function: str) -> Iterator[Use]:
        """Yield the uses in a node and below it."""
        if not isinstance(node, ast.ClassDef):
            scope = self.types.scopes.get(node, scope)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            function = function if isinstance(node, ast.ClassDef) else node.name
            behind = (*behind, *filter(None, map(self.guards.of, node.decorator_list)))
        for use in self._here(node, scope, behind):
            self.within[use] = function
            yield use
        if isinstance(node, ast.Call) and (called := key_of(node.func)):
            self.calls.setdefault(called.rpartition(".")[2], []).append(behind)
        for part, guards in self._parts(node, behind):
            if isinstance(part, list):
                yield from self._block(part, scope, guards, function)
            else:
                yield from self._statement(part, scope, guards, function)

    def _parts(self, node: ast.AST, behind: Behind) -> Iterator[tuple[list[ast.stmt] | ast.AST, Behind]]:
        """Yield what is below a node: blocks, and single nodes, each with its guards."""
        test = (
            self.guards.of(node.test)
            if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert))
            else None
        )
        absent = _caught(node) if isinstance(node, ast.Try) else frozenset[str]()
        known: tuple[Condition, ...] = ()
        for field, value in ast.iter_fields(node):
            guards = behind
            if test and field in ("body", "orelse", "test"):
                guards = (*behind, test if field != "orelse" else test.negated())
            elif field == "body" and "AttributeError" in absent:
                guards = (*behind, UNREAD)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value, guards
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.excepthandler) and absent & _ABSENCES:
                    yield child, (*behind, UNREAD)
                elif isinstance(child, ast.AST):
                    yield child, (*guards, *known)
                    if isinstance(node, ast.BoolOp) and (first := self.guards.of(child)):
                        known = (*known, first if isinstance(node.op, ast.And) else first.negated())

    def _here(self, node: ast.AST, scope: Scope, behind: Behind) -> Iterator[Use]:
        """Yield the uses that a node itself is."""
        if isinstance(node, ast.Attribute):
            if name := self.types.name(node, scope):
                yield self._use(node, name, behind)
            elif name := self._by_name(node, scope):
                yield self._use(node, name, behind, sure=False)
        elif isinstance(node, ast.ImportFrom) and node.module in ("tensorrt", "tensorrt.plugin"):
            prefix = node.module.partition("tensorrt.")[2]
            some = (self.interface.names.get(f"{prefix}.{each.name}".lstrip(".")) for each in node.names)
            yield from (self._use(node, each, behind) for each in some if each)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = plugin_named(node.value) or self._option(node)
            if name:
                yield self._use(node, name, behind, sure=name.kind == "plugin")
        elif isinstance(node, ast.Call):
            yield from self._called(node, scope, behind)

    def _called(self, node: ast.Call, scope: Scope, behind: Behind) -> Iterator[Use]:
        if isinstance(node.func, ast.Attribute) and (name := self.types.name(node.func, scope)):
            given = {each.arg for each in node.keywords}
            full = name.full if name.full in self.interface.arguments else f"{name.full}.__init__"
            for argument in self.interface.arguments.get(full, ()):
                if argument.full.rpartition("(")[2].rstrip("=)") in given:
                    yield self._use(node, argument, behind)
        if key_of(node.func) == "len" and len(node.args) == 1:
            kind = self.types.of(node.args[0], scope)
            found = self.interface.member(kind.name, "__len__") if kind and kind.what == "instance" else None
            yield from [self._use(node, found, behind)] if found else []
        if key_of(node.func) == "getattr" and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):  # noqa: PLR2004
            read = ast.copy_location(ast.Attribute(node.args[0], str(node.args[1].value), ast.Load()), node)
            if name := self.types.name(read, scope):
                yield self._use(node, name, behind)

    def _option(self, node: ast.Constant) -> Name | None:
        """Return the option of trtexec that a string begins with, where file and function are about it."""
        found = _OPTION.match(str(node.value)) if "trtexec" in self.text else None
        if not found or node in self.own_options:
            return None
        around = [each for each in self.functions if each.lineno <= node.lineno <= (each.end_lineno or 0)]
        inner = max(around, key=lambda each: each.lineno, default=None)
        speaks = inner is None or _SPEAKS.search(ast.get_source_segment(self.text, inner) or "")
        return interfaces()["trtexec"].names.get(found[1]) if speaks else None

    def _by_name(self, node: ast.Attribute, scope: Scope) -> Name | None:
        """Return the name that an attribute of unknown type can be alone, or is by the variable before it."""
        before = key_of(node.value)
        if self.types.of(node.value, scope) or before.partition(".")[0] in self.types.imports:
            return None
        usual = self.types.usual(node.value)
        if usual and (found := self.types.member(ExpressionKind("instance", usual), node.attr)):
            return found
        if before == "self" or node.attr in self.types.defined:
            return None
        # Settings of a program's own have the names of the builder's.
        found = by_name(self.interface, node.attr)
        given = isinstance(node.ctx, ast.Store) and found and found.owner.endswith(("Layer", "Tensor"))
        return found if given or node in self.called else None

    def _use(self, node: ast.expr | ast.stmt, name: Name, behind: Behind, *, sure: bool = True) -> Use:
        line, column = node.lineno, node.col_offset
        if isinstance(node, ast.Attribute):
            line, column = node.end_lineno or line, (node.end_col_offset or 0) - len(node.attr)
        return Use(self.path, line, column + 1, name, behind, sure)


def _caught(node: ast.Try) -> frozenset[str]:
    """Return the names of the errors that a `try` handles."""
    types = [each.type for each in node.handlers if each.type is not None]
    some = [part for each in types for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
    return frozenset(key_of(each).rpartition(".")[2] for each in some)

"""The uses in Python, by the syntax tree: of modules, types and keyword arguments, with what guards them."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.matrix.interface import Interface, Name, interfaces
from harness.scan.types import MODULE, ExpressionKind, Scope, Types, key_of
from harness.scan.uses import SIGNS, UNREAD, Condition, Found, Remark, Use, by_name, decoded, plugin_named

_SIGNS: Mapping[type[ast.cmpop], str] = {
    ast.GtE: ">=", ast.Gt: ">", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_OF_TENSORRT = re.compile(
    r"(?:trt|tensorrt|nvinfer)\w*?(?:ver|major|minor)|ver\w*(?:trt|tensorrt)", re.IGNORECASE
)
#: Calls that give a version in another form.
_KEEPING = re.compile(
    r"int|float|str|tuple|list|map|\w*[Vv]ersion\w*|parse|r?split|strip|r?partition|join|match|group|replace"
)
_VERSION = re.compile(r"^\s*(?:tensorrt)?\s*(?P<sign>[<>=!]=?)?\s*v?(?P<numbers>\d{1,2}(?:\.\d+)*)\.?\s*$")


class Guards:
    """The tests of one file of Python; `answers` are the variables that keep the answer of one."""

    def __init__(self, nodes: Sequence[ast.AST], types: Types) -> None:
        self.types = types
        self.versions: set[str] = set()
        self.answers: dict[str, Condition] = {}
        assigned = [node for node in nodes if isinstance(node, ast.Assign)]
        for _ in range(2):
            for node in assigned:
                self._assigned(node)

    def _assigned(self, node: ast.Assign) -> None:
        names = {*map(_last_name, node.targets)} - {""}
        test = (
            self.of(node.value)
            if isinstance(node.value, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Call)
            else None
        )
        if test:
            self.answers.update(dict.fromkeys(names, test))
        elif self._is_version(node.value) and all(map(_keeps, ast.walk(node.value))):
            self.versions |= names

    def of(self, node: ast.AST) -> Condition | None:
        """Return the test of the version that an expression is, None if it is none."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.of(operand)
                return inner.negated() if inner else None
            case ast.BoolOp(op=joined, values=values):
                some = [*filter(None, map(self.of, values))]
                alone = isinstance(joined, ast.And) and len(some) == 1
                return (some[0] if alone else UNREAD) if some else None
            case ast.Compare():
                return self._compared(node)
            case ast.Call():
                return self._called(node)
        return self.answers.get(_last_name(node))

    def _compared(self, node: ast.Compare) -> Condition | None:
        if len(node.ops) != 1 or not self._is_version(node.left):
            right = len(node.ops) == 1 and self._is_version(node.comparators[0])
            return UNREAD if right or any(map(self._is_version, ast.walk(node.left))) else None
        sign, numbers = _SIGNS.get(type(node.ops[0]), ""), _numbers(node.comparators[0])
        return Condition(sign, numbers) if sign and numbers else UNREAD

    def _called(self, node: ast.Call) -> Condition | None:
        name, called = _last_name(node.func), node.func
        words = [*filter(None, map(_text_of, node.args))]
        if name == "hasattr":
            return self._asks_for_a_name(node, words)
        found = next(filter(None, map(_VERSION.match, words)), None)
        if name == "startswith" and isinstance(called, ast.Attribute) and self._is_version(called.value):
            return Condition("==", _split(found["numbers"])) if found else UNREAD
        if found and (_OF_TENSORRT.search(name) or any(map(self._is_version, node.args))):
            known = found["sign"] in SIGNS
            return Condition(found["sign"], _split(found["numbers"])) if known else UNREAD
        return None

    def _asks_for_a_name(self, node: ast.Call, words: Iterable[str]) -> Condition | None:
        """Return that a `hasattr` asks an object of TensorRT, or for a name of its interface, None if it does not."""
        known = not interfaces()["python"].by_bare.keys().isdisjoint(words)
        of_it = self.types.of(node.args[0], self.types.module)
        return UNREAD if of_it or (known and key_of(node.args[0]) != "self") else None

    def _is_version(self, node: ast.AST) -> bool:
        """Tell whether an expression is TensorRT's version, or made of it."""
        return any(map(self._names_version, ast.walk(node)))

    def _names_version(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            # version("tensorrt"), of importlib.metadata and others
            return self.types.of(node, self.types.module) == MODULE and "version" in key_of(node.func)
        key = key_of(node)
        name = key.rpartition(".")[2]
        if name == "__version__" and isinstance(node, ast.Attribute):
            return self.types.of(node.value, self.types.module) == MODULE or "trt" in key or "tensorrt" in key
        return name in self.versions or bool(_OF_TENSORRT.search(name))


def _keeps(node: ast.AST) -> bool:
    """Tell whether a part of an expression leaves a version what it is, in another form."""
    called = key_of(node.func) if isinstance(node, ast.Call) else ""
    last = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else called
    return not isinstance(node, ast.JoinedStr) and (
        not isinstance(node, ast.Call) or bool(_KEEPING.fullmatch(last))
    )


def _split(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part)[:3]


def _numbers(node: ast.AST) -> tuple[int, ...]:
    """Return the version that one side of a comparison writes; () if it is not written there."""
    match node:
        case ast.Call(args=[one]):
            return _numbers(one)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            some = [getattr(each, "value", None) for each in parts]
            numbers = tuple(each for each in some if isinstance(each, int))
            return numbers[:3] if len(numbers) == len(some) else ()
        case ast.Constant(value=int() as number):
            return decoded(number)
        case ast.Constant(value=str() | float() as written):
            found = _VERSION.match(str(written))
            return _split(found["numbers"]) if found else ()
    return ()


def _last_name(node: ast.AST) -> str:
    return key_of(node).rpartition(".")[2]


def _text_of(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


#: A file that has none of these in it imports no TensorRT: torch_tensorrt is another library.
_SPEAKS = re.compile(r"\btensorrt\b(?!\.git)|\btrt\b|\btrtexec\b|\bTRT")
#: With its value or not; others are options of many programs.
_OPTION = re.compile(r"(--(?:[a-z]+[A-Z]\w*|[a-z]+\d+|best|calib|workspace))(?:=|\s|$)")
#: Errors that a name that is not there raises.
_ABSENCES = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError"})
Behind = tuple[Condition, ...]
#: The parts of a statement that its own test guards.
_TESTED = frozenset({"test", "body", "orelse"})
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
        for field, value in ast.iter_fields(node):
            guards = (*behind, *self._test_of(node, field))
            children = value if isinstance(value, list) else [value]
            if children and isinstance(children[0], ast.stmt):
                yield children, guards
            else:
                yield from ((child, guards) for child in children if isinstance(child, ast.AST))

    def _test_of(self, node: ast.AST, field: str) -> Behind:
        """Return the test that a field of a node stands behind, () without one."""
        if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)) and field in _TESTED:
            test = self.guards.of(node.test)
            return () if test is None else (test.negated() if field == "orelse" else test,)
        if isinstance(node, ast.Try):
            absent = {"body": frozenset({"AttributeError"}), "handlers": _ABSENCES}.get(field, frozenset())
            return (UNREAD,) if absent & _caught(node) else ()
        return ()

    def _here(self, node: ast.AST, scope: Scope, behind: Behind) -> Iterator[Use]:
        """Yield the uses that a node itself is."""
        match node:
            case ast.Attribute():
                sure = self.types.name(node, scope)
                if name := sure or self._by_name(node, scope):
                    yield self._use(node, name, behind, sure=bool(sure))
            case ast.ImportFrom(module="tensorrt" | "tensorrt.plugin" as module):
                prefix = module.partition("tensorrt.")[2]
                names = [f"{prefix}.{each.name}".lstrip(".") for each in node.names]
                some = filter(None, map(self.interface.names.get, names))
                yield from (self._use(node, each, behind) for each in some)
            case ast.Constant(value=str() as text):
                if name := plugin_named(text) or self._option(node):
                    yield self._use(node, name, behind, sure=name.kind == "plugin")
            case ast.Call():
                yield from (self._use(node, name, behind) for name in self._called(node, scope))

    def _called(self, node: ast.Call, scope: Scope) -> Iterator[Name]:
        """Yield the names that a call asks for: by keyword, by `len`, by `getattr`."""
        match node:
            case ast.Call(func=ast.Attribute() as called) if name := self.types.name(called, scope):
                arguments = self.interface.arguments
                full = name.full if name.full in arguments else f"{name.full}.__init__"
                of_it = {each.full.rpartition("(")[2].rstrip("=)"): each for each in arguments.get(full, ())}
                yield from (of_it[each.arg] for each in node.keywords if each.arg in of_it)
            case ast.Call(func=ast.Name(id="len"), args=[one]):
                kind = self.types.of(one, scope)
                if (
                    kind
                    and kind.what == "instance"
                    and (found := self.interface.member(kind.name, "__len__"))
                ):
                    yield found
            case ast.Call(func=ast.Name(id="getattr"), args=[one, ast.Constant(value=attribute)]):
                if name := self.types.name(ast.Attribute(one, str(attribute), ast.Load()), scope):
                    yield name

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

"""The types of expressions in one Python file, as far as they come from TensorRT: no flow, no other file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.matrix.interface import Interface, Name
from harness.scan.uses import older

_MODULE = re.compile(r"tensorrt(?:_bindings)?(?:\s*[<>=!~].*)?", re.DOTALL)
#: Other products, whose modules have attributes of the same names.
_OTHERS = re.compile(r"^(?:tensorflow|torch_tensorrt|tensorrt_rtx|tensorrt_llm|polygraphy)\b")
_ITSELF = frozenset({"tensorrt", "tensorrt_bindings", "tensorrt.tensorrt"})
_ROUNDS = 3
_BINDING = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.withitem, ast.Return)
Function = ast.FunctionDef | ast.AsyncFunctionDef
#: What variables are called, whose types no line of the file tells.
_USUAL = {
    "builder": "Builder", "config": "IBuilderConfig", "network": "INetworkDefinition", "layer": "ILayer",
    "engine": "ICudaEngine", "context": "IExecutionContext", "profile": "IOptimizationProfile", "parser": "OnnxParser",
    "runtime": "Runtime",
}  # fmt: skip
_USUALLY = re.compile(rf"(?:^|_)({'|'.join(_USUAL)})(?:_?\d|_[a-z])?_?$", re.IGNORECASE)


@dataclass(frozen=True)
class ExpressionKind:
    """What an expression is: the "module", a "class" or an "instance" of one; a "call" gives an instance."""

    what: str
    name: str = ""


MODULE = ExpressionKind("module")


@dataclass
class Scope:
    """The names of a function, a class's `self` or the module, each with what it was last seen to be."""

    above: Scope | None = None
    known: dict[str, ExpressionKind] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)

    def find(self, key: str) -> ExpressionKind | None:
        """Return what a name is, here or above; None for an unknown one and one of another kind."""
        if key in self.known:
            return self.known[key]
        return None if key in self.own or self.above is None else self.above.find(key)


def key_of(node: ast.AST) -> str:
    """Return "self.engine" of such an expression, "" of what is no name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := key_of(node.value)):
        return f"{before}.{node.attr}"
    return ""


class Types:
    """The types of a file's expressions, found once."""

    def __init__(self, tree: ast.Module, interface: Interface) -> None:
        self.interface = interface
        self.module = Scope()
        self.scopes: dict[ast.AST, Scope] = {}
        self.returns: dict[str, ExpressionKind] = {}
        #: Names that the file gives its own functions, classes and attributes.
        self.defined: set[str] = set()
        self.imports: set[str] = set()
        self._binding: list[tuple[ast.AST, Scope, Scope, str]] = []
        self._gather(tree, self.module, self.module, "")
        for _ in range(_ROUNDS):
            self._bind_all()
            scopes = (self.module, *self.scopes.values())
            #: The file imports TensorRT; else nothing in it is of a type of it.
            self.has_module = any(
                kind.what in ("module", "class") for each in scopes for kind in each.known.values()
            )
            if not self.has_module:
                break

    def of(self, node: ast.AST | None, scope: Scope) -> ExpressionKind | None:
        """Return what an expression is, None if that is not known or not of TensorRT."""
        match node:
            case ast.Name():
                return scope.find(node.id)
            case ast.Attribute():
                return (scope.find(key) if (key := key_of(node)) else None) or self._attribute(node, scope)
            case ast.Call():
                return self._called(node, scope)
        return None

    def name(self, node: ast.Attribute, scope: Scope) -> Name | None:
        """Return the name of the interface that an attribute is, if the type before it is known."""
        before = self.of(node.value, scope)
        return self.member(before, node.attr) if before else None

    def usual(self, node: ast.AST) -> str:
        """Return the class that a variable's name lets expect, "" for none."""
        found = _USUALLY.search(key_of(node).rpartition(".")[2])
        return _USUAL[found[1].lower()] if found else ""

    def member(self, before: ExpressionKind, attribute: str) -> Name | None:
        """Return the name that an attribute of such an expression is."""
        if before.what == "module":
            path = f"{before.name}.{attribute}".lstrip(".")
            return self.interface.names.get(path)
        found = self.interface.member(before.name, attribute) if before.what != "call" else None
        return older().get(attribute) if found is None and before.name == "Builder" else found

    def _attribute(self, node: ast.Attribute, scope: Scope) -> ExpressionKind | None:
        before = self.of(node.value, scope)
        if before is None:
            return None
        if before == MODULE and node.attr == "plugin":
            return ExpressionKind("module", "plugin")
        found = self.member(before, node.attr)
        if found is None:
            return None
        if found.gives:
            is_call = f"{found.full}" in self.interface.names and found.gives != found.owner
            return ExpressionKind("instance" if is_call else "class", found.gives)
        return (
            ExpressionKind("class", found.full)
            if before.what == "module" and found.bare[:1].isupper()
            else None
        )

    def _called(self, node: ast.Call, scope: Scope) -> ExpressionKind | None:
        called = node.func
        if any(
            isinstance(each, ast.Constant) and _MODULE.fullmatch(str(each.value)) for each in node.args[:1]
        ):
            return MODULE
        kind = self.of(called, scope)
        if kind:
            return ExpressionKind("instance", kind.name) if kind.what in ("class", "instance") else None
        own = key_of(called)
        return self.returns.get(own.rpartition(".")[2]) if own.count(".") == own.startswith("self.") else None

    def _gather(self, node: ast.AST, scope: Scope, own: Scope, function: str) -> None:
        """Note what binds names below a node, each with its scope; `own` has the class's `self`."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                above = Scope(scope, own.known, own.own) if own is not scope else scope
                inner = self.scopes[child] = Scope(above)
                self._binding.append((child, inner, scope, function))
                self._gather(child, inner, own, getattr(child, "name", function))
            elif isinstance(child, ast.ClassDef):
                inner = self.scopes[child] = Scope(scope)
                self._binding.append((child, scope, inner, function))
                self._gather(child, scope, inner, function)
            else:
                if isinstance(child, _BINDING):
                    self._binding.append((child, scope, own, function))
                self._gather(child, scope, own, function)

    def _bind_all(self) -> None:
        """Take in all that was noted, once."""
        results: dict[str, set[ExpressionKind | None]] = {}
        for node, scope, own, function in self._binding:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    self._function(node, scope, own, results)
                case ast.ClassDef():
                    self._class(node, scope, own)
                case ast.Return(value=value):
                    results.setdefault(function, set()).add(self.of(value, scope))
                case ast.Import() | ast.ImportFrom():
                    self._imported(node, scope)
                case _:
                    for target, kind in self._bound(node, scope):
                        self._bind(target, kind, scope, own)
        for name, kinds in results.items():
            known = [*filter(None, kinds)]
            if len(known) == 1:
                self.returns[name] = known[0]

    def _class(self, node: ast.ClassDef, scope: Scope, own: Scope) -> None:
        """Let the `self` of a class be of the class of TensorRT that it derives from."""
        self.defined.add(node.name)
        for kind in (self.of(base, scope) for base in node.bases):
            if kind and kind.what == "class":
                own.known["self"] = ExpressionKind("instance", kind.name)

    def _function(
        self,
        node: Function | ast.Lambda,
        inner: Scope,
        scope: Scope,
        results: dict[str, set[ExpressionKind | None]],
    ) -> None:
        arguments = node.args
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            kind = self._annotated(each.annotation, scope)
            if kind or each.arg != "self":
                inner.own.add(each.arg)
            if kind:
                inner.known[each.arg] = kind
        if isinstance(node, Function):
            self.defined.add(node.name)
            results.setdefault(node.name, set()).add(self._annotated(node.returns, scope))

    def _bound(self, node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, ExpressionKind | None]]:
        """Yield each target that a node binds, with what to."""
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, self.of(value, scope)) for target in targets)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                yield target, self._annotated(annotation, scope) or self.of(value, scope)
            case ast.withitem(optional_vars=ast.AST() as target, context_expr=value):
                yield target, self.of(value, scope)

    def _bind(self, target: ast.AST, kind: ExpressionKind | None, scope: Scope, own: Scope) -> None:
        key = key_of(target)
        if not key:
            return
        place = own if key.startswith("self.") else scope
        if isinstance(target, ast.Attribute):
            self.defined.update([target.attr] if key_of(target.value) in ("self", "cls") else [])
        else:
            place.own.add(key)
        if kind:
            place.known[key] = kind

    def _imported(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        module = node.module or "" if isinstance(node, ast.ImportFrom) else None
        for each in node.names:
            name = each.asname or each.name.partition(".")[0]
            kind = self._import(module, each.name, name, whole=bool(each.asname))
            if each.name == "*":
                # What another module imports under its usual name comes along.
                if not _OTHERS.match(module or ""):
                    scope.known.setdefault("trt", MODULE)
            elif kind:
                scope.known[name] = kind
            else:
                self.imports.add(name)
                if module is not None:
                    scope.known.pop(name, None)

    def _import(self, module: str | None, full: str, name: str, *, whole: bool) -> ExpressionKind | None:
        """Return what an import binds a name to: `full` of a module, or a module itself if that is None."""
        if module is None:
            if full.partition(".")[0] != "tensorrt":
                return None
            return ExpressionKind("module", "plugin") if whole and "." in full else MODULE
        if module in _ITSELF:
            found = self.interface.names.get(full)
            if found is None:
                return ExpressionKind("call")
            return (
                ExpressionKind("class", full) if full[:1].isupper() else ExpressionKind("call", found.gives)
            )
        return MODULE if full == name in ("trt", "tensorrt") and not _OTHERS.match(module) else None

    def _annotated(self, node: ast.AST | None, scope: Scope) -> ExpressionKind | None:
        """Return the class of an annotation: alone, or in Optional."""
        if isinstance(node, ast.Subscript) and key_of(node.value).rpartition(".")[2] == "Optional":
            return self._annotated(node.slice, scope)
        if isinstance(node, ast.BinOp):
            return self._annotated(node.left, scope) or self._annotated(node.right, scope)
        kind = self.of(node, scope)
        return ExpressionKind("instance", kind.name) if kind and kind.what == "class" else None

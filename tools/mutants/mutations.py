"""The ways in which a piece of syntax is broken: a node -> the nodes that may stand in its place.

What is only wording (parts of f-strings, texts of exceptions), what is for readers (docstrings, annotations) and what
only types need is left alone.
"""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=ast.AST)

_COMPARES: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
#: Calls that give back much the same as they got.
_POLISH = {"strip", "lstrip", "rstrip", "lower", "upper", "casefold"}
_NO_NUMBERS = (ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.ListComp)


def members(tree: ast.AST) -> dict[str, list[str]]:
    """Return the constants that a module names of each class, as in `Class.CRASHED`."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and _is_member(node):
            found[node.value.id].add(node.attr)
    return {name: sorted(attributes) for name, attributes in found.items()}


def _is_member(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id[:1].isupper() and node.attr.isupper()


def replacements(node: ast.AST, known: dict[str, list[str]]) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node; `known` are the module's `members`."""
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and _is_member(node):
            others = known[node.value.id]
            other = others[(others.index(node.attr) + 1) % len(others)]
            if other != node.attr:
                yield _with(node, attr=other)
        return
    broken = _BREAKERS.get(type(node))
    if broken is not None:
        yield from broken(node)


def _with(node: _Node, **changed: Any) -> _Node:  # noqa: ANN401  (fields of any node)
    made = copy.copy(node)
    for name, value in changed.items():
        setattr(made, name, value)
    return made


def _without(items: list[Any]) -> Iterator[list[Any]]:
    for index in range(len(items)):
        yield items[:index] + items[index + 1 :]


def _compare(node: ast.Compare) -> Iterator[ast.AST]:
    for index, operator in enumerate(node.ops):
        for other in _COMPARES[type(operator)]:
            yield _with(node, ops=[*node.ops[:index], other(), *node.ops[index + 1 :]])
        right = node.comparators[index]
        if isinstance(operator, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List):
            for fewer in _without(right.elts):
                less = _with(right, elts=fewer)
                yield _with(
                    node, comparators=[*node.comparators[:index], less, *node.comparators[index + 1 :]]
                )


def _boolean(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    for fewer in _without(node.values):
        yield _with(node, values=fewer) if len(fewer) > 1 else fewer[0]


def _unary(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not | ast.USub):
        yield node.operand


def _binary(node: ast.BinOp) -> Iterator[ast.AST]:
    sides = (node.left, node.right)
    if not any(isinstance(side, _NO_NUMBERS) or _is_text(side) for side in sides):
        other = _ARITHMETIC.get(type(node.op))
        if other is not None:
            yield _with(node, op=other())
    yield from sides


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    others: tuple[object, ...] = ()
    if isinstance(value, bool):
        others = (not value,)
    elif isinstance(value, int):
        others = (value + 1, value - 1)
    elif isinstance(value, float):
        others = (value * 2, value / 2) if value else (1.0,)
    elif isinstance(value, str):
        others = ("",) if value else ("mutant",)
    elif isinstance(value, bytes):
        others = (b"",) if value else (b"mutant",)
    for other in others:
        yield _with(node, value=other)


def _true_or_false(node: ast.If) -> Iterator[ast.AST]:
    if not isinstance(node.test, ast.Constant):
        yield _with(node, test=ast.Constant(True))
        yield _with(node, test=ast.Constant(False))


def _either(node: ast.IfExp) -> Iterator[ast.AST]:
    yield node.body
    yield node.orelse


def _never(node: ast.While) -> Iterator[ast.AST]:
    if not isinstance(node.test, ast.Constant):
        yield _with(node, test=ast.Constant(False))


def _return(node: ast.Return) -> Iterator[ast.AST]:
    if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield _with(node, value=ast.Constant(None))


def _dropped(_: ast.stmt) -> Iterator[ast.AST]:
    yield ast.Pass()


def _expression(node: ast.Expr) -> Iterator[ast.AST]:
    if not isinstance(node.value, ast.Constant):
        yield ast.Pass()


def _assigned(node: ast.Assign) -> Iterator[ast.AST]:
    if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
        yield ast.Pass()


def _call(node: ast.Call) -> Iterator[ast.AST]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in _OPPOSITES:
        yield _with(node, func=ast.Name(_OPPOSITES[name], ast.Load()))
    if name in {"min", "max"} and len(node.args) > 1:
        yield from (each for each in node.args if not isinstance(each, ast.Starred))
    if name in {"sorted", "reversed"}:
        yield _with(node, func=ast.Name("list", ast.Load()), keywords=[])
    if isinstance(node.func, ast.Attribute) and node.func.attr in _POLISH and not node.args:
        yield node.func.value
    for index, keyword in enumerate(node.keywords):
        if keyword.arg not in {None, "strict"}:
            yield _with(node, keywords=node.keywords[:index] + node.keywords[index + 1 :])


def _unfiltered(node: ast.comprehension) -> Iterator[ast.AST]:
    for fewer in _without(node.ifs):
        yield _with(node, ifs=fewer)


def _no_round(node: ast.For) -> Iterator[ast.AST]:
    yield _with(node, iter=ast.Tuple([], ast.Load()))


def _uncaught(node: ast.ExceptHandler) -> Iterator[ast.AST]:
    if not isinstance(node.body[-1], ast.Raise):
        yield _with(node, body=[ast.Raise()])


def _slice(node: ast.Slice) -> Iterator[ast.AST]:
    for name in ("lower", "upper", "step"):
        if getattr(node, name) is not None:
            yield _with(node, **{name: None})


def _match(node: ast.Match) -> Iterator[ast.AST]:
    if len(node.cases) > 1:
        for fewer in _without(node.cases):
            yield _with(node, cases=fewer)


def _set(node: ast.Set) -> Iterator[ast.AST]:
    if len(node.elts) > 1:
        for fewer in _without(node.elts):
            yield _with(node, elts=fewer)


def _dict(node: ast.Dict) -> Iterator[ast.AST]:
    # An entry whose key is a constant is lost as well when the constant changes.
    for index, key in enumerate(node.keys):
        if not isinstance(key, ast.Constant):
            keys, values = [*node.keys], [*node.values]
            del keys[index], values[index]
            yield _with(node, keys=keys, values=values)


_BREAKERS: dict[type[ast.AST], Any] = {
    ast.Compare: _compare,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Constant: _constant,
    ast.If: _true_or_false,
    ast.IfExp: _either,
    ast.While: _never,
    ast.Return: _return,
    ast.Expr: _expression,
    ast.Assign: _assigned,
    ast.AugAssign: _dropped,
    ast.Raise: _dropped,
    ast.Continue: _dropped,
    ast.Break: _dropped,
    ast.Delete: _dropped,
    ast.Call: _call,
    ast.comprehension: _unfiltered,
    ast.For: _no_round,
    ast.ExceptHandler: _uncaught,
    ast.Slice: _slice,
    ast.Match: _match,
    ast.Set: _set,
    ast.Dict: _dict,
}

"""Tests of the version in code: on which versions what stands behind one is reached."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence

from harness.matrix.interface import interfaces
from harness.scan.conditions import SIGNS, UNREAD, Condition, decoded
from harness.scan.types import MODULE, Types, key_of

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
#: Names of flags and functions that answer whether it is some version.
_ANSWER = re.compile(
    r"(?:trt|tensorrt|(?<![a-z])rt)_?(?:v_?)?\d+|(?:trt|tensorrt)_(?:ge|gt|le|lt)_|legacy_?(?:trt|api)|^_?is_?v?\d+",
    re.IGNORECASE,
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
        names = {key_of(each).rpartition(".")[2] for target in node.targets for each in _parts(target)} - {""}
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
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.of(node.operand)
            return inner.negated() if inner else None
        if isinstance(node, ast.BoolOp):
            some = [each for each in map(self.of, node.values) if each]
            return (some[0] if isinstance(node.op, ast.And) and len(some) == 1 else UNREAD) if some else None
        if isinstance(node, ast.Compare):
            return self._compared(node)
        if isinstance(node, ast.Call):
            return self._called(node)
        name = key_of(node).rpartition(".")[2]
        return self.answers.get(name) or (UNREAD if self._answers(name) else None)

    def _answers(self, name: str) -> bool:
        return bool(_ANSWER.search(name)) and name not in interfaces()["python"].by_bare

    def _compared(self, node: ast.Compare) -> Condition | None:
        if len(node.ops) != 1 or not self._is_version(node.left):
            right = len(node.ops) == 1 and self._is_version(node.comparators[0])
            return UNREAD if right or any(map(self._is_version, ast.walk(node.left))) else None
        sign, numbers = _SIGNS.get(type(node.ops[0]), ""), _numbers(node.comparators[0])
        return Condition(sign, numbers) if sign and numbers else UNREAD

    def _called(self, node: ast.Call) -> Condition | None:
        name = key_of(node.func).rpartition(".")[2]
        words = [
            each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        if name == "hasattr":
            known = (
                any(word in interfaces()["python"].by_bare for word in words)
                and key_of(node.args[0]) != "self"
            )
            return UNREAD if known or self.types.of(node.args[0], self.types.module) else None
        if (
            isinstance(node.func, ast.Attribute)
            and name == "startswith"
            and self._is_version(node.func.value)
        ):
            found = _VERSION.match(words[0]) if words else None
            return Condition("==", _split(found["numbers"])) if found else UNREAD
        found = next(filter(None, map(_VERSION.match, words)), None)
        asks = _OF_TENSORRT.search(name) or any(map(self._is_version, node.args))
        if asks and found and found["sign"] in SIGNS:
            return Condition(found["sign"], _split(found["numbers"]))
        return UNREAD if self._answers(name) or (asks and found) else None

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


def _parts(target: ast.AST) -> Iterable[ast.AST]:
    return target.elts if isinstance(target, ast.Tuple) else [target]


def _split(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part)[:3]


def _numbers(node: ast.AST) -> tuple[int, ...]:
    """Return the version that one side of a comparison writes; () if it is not written there."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return _numbers(node.args[0])
    if isinstance(node, (ast.Tuple, ast.List)):
        some = [
            each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, int)
        ]
        return tuple(some[:3]) if len(some) == len(node.elts) else ()
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return decoded(node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, float)):
        found = _VERSION.match(str(node.value))
        return _split(found["numbers"]) if found else ()
    return ()

"""Holds a graph against NVIDIA's operator tables: is it blocked or restricted on a TensorRT, without a run; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx

from harness.case.model import effective_name
from harness.known.restrictions import KEPT, Use, uses
from harness.matrix import Target
from harness.matrix.operators import Importer, OperatorTable, operator_tables, restrictions, tables_around
from harness.words import Word

#: Types of the tables that block where a row lacks them, by the tables' words. INT64 and DOUBLE are cast, and INT8 is
#: not named from 10.0 on.
_LISTED: Mapping[int, str] = {
    onnx.TensorProto.BFLOAT16: "BF16",
    onnx.TensorProto.FLOAT8E4M3FN: "FP8",
    onnx.TensorProto.FLOAT4E2M1: "FP4",
    onnx.TensorProto.INT4: "INT4",
    onnx.TensorProto.UINT8: "UINT8",
}
#: Further types in the tables' lists; a type outside of all lists blocks everywhere.
_FREE = frozenset(
    getattr(onnx.TensorProto, name)
    for name in ("UNDEFINED", "FLOAT", "FLOAT16", "DOUBLE", "INT8", "INT32", "INT64", "BOOL")
)
_OWN = ("", "ai.onnx")
#: Domains whose operators no parser of TensorRT imports; of any other a plugin may be meant.
_FOREIGN = ("ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "com.microsoft")
_FUNCTION = "local function"


class State(Word):
    """The gist of a static answer, the first that applies.

    BLOCKED: NVIDIA's table lacks the importer or the type, or has a restriction that the graph breaks.
    REPORTED: the graph holds a pattern that is claimed to fail.
    RESTRICTED: the table restricts the operator, and the graph does not decide whether it complies.
    UNKNOWN: there is no table, or two tables disagree.
    CLEAR: the tables hold no objection, which is no promise.
    """

    BLOCKED = "blocked"
    REPORTED = "reported"
    RESTRICTED = "restricted"
    UNKNOWN = "unknown"
    CLEAR = "clear"


@dataclass(frozen=True)
class Finding:
    """An objection to a model; for a blocked one `first` is the first table without its operator."""

    state: State
    node: str | None = None
    operator: str | None = None
    restriction: str | None = None
    first: str | None = None

    def worded(self, more: str = "") -> str:
        """Return the finding in words; `more` goes behind its node."""
        where = " ".join(filter(None, (self.operator, repr(self.node) if self.node else ""))) + more
        since = f"; first taken in the table of {self.first}" if self.first else ""
        return ": ".join(filter(None, (where, f"{self.restriction or ''}{since}")))


#: The gravest finding against a model, or that it is clear, with the releases of the tables that agree on it.
TabledAnswer = tuple[Finding, tuple[str, ...]]


@dataclass(frozen=True)
class Static:
    """The static answer for a model on a target; `findings` are all that lead to it, the gravest first.

    remark: the model's opset is above the table's highest, which by itself does not block the model.
    elsewhere: reports about the same version on another platform, without effect on the answer.
    """

    findings: tuple[Finding, ...] = ()
    remark: str = ""
    elsewhere: tuple[Finding, ...] = ()

    @property
    def gravest(self) -> Finding:
        """Return the first finding, or that the model is clear."""
        return self.findings[0] if self.findings else Finding(State.CLEAR)

    @property
    def state(self) -> State:
        """Return the state of the gravest finding."""
        return self.gravest.state


class StaticModel:
    """A model held against every table; `unread` says why it was not, in words."""

    def __init__(self, model: onnx.ModelProto | None, *, plugins: bool = False, unread: str = "") -> None:
        opsets = model.opset_import if model else ()
        self.opset = max((each.version for each in opsets if each.domain in _OWN), default=0)
        self._unread = unread
        its = tuple(uses(model, effective_name)) if model else ()
        self._answers = {
            table.release: tuple(_judged(use, table, plugins=plugins) for use in its)
            for table in operator_tables()
        }

    def on(self, target: Target) -> tuple[Finding, ...]:
        """Return the findings of NVIDIA's tables about the model on a TensorRT; () for another engine."""
        before, after = tables_around(target.version)
        if not target.traits.tabled:
            words = f"NVIDIA's tables are not of {target.traits.product}"
            return (Finding(State.UNKNOWN, "", "", words),)
        if self._unread:
            return (Finding(State.UNKNOWN, "", "", self._unread),)
        if before is None:
            words = f"the first table is of {operator_tables()[0].release}"
            return (Finding(State.UNKNOWN, "", "", words),)
        pairs = zip(self._answers[before.release], self._answers[(after or before).release], strict=True)
        found = (_between(*pair, before, after) for pair in pairs)
        return tuple(dict.fromkeys(each for each in found if each))

    def drawn_on(self, target: Target) -> Finding | None:
        """Return the gravest finding of the tables if it is drawn: blocked or restricted."""
        first = next(iter(ranked(self.on(target))), None)
        return first if first and first.state in (State.BLOCKED, State.RESTRICTED) else None

    def by_tables(self) -> tuple[TabledAnswer, ...]:
        """Return each table's findings about the model, the oldest first; tables that agree are joined."""
        found: dict[Finding, list[str]] = {}
        for release, answers in self._answers.items():
            findings = (
                [Finding(State.UNKNOWN, "", "", self._unread)] if self._unread else filter(None, answers)
            )
            gravest = next(iter(ranked(findings)), Finding(State.CLEAR, "", "", ""))
            found.setdefault(gravest, []).append(release)
        return tuple((finding, tuple(releases)) for finding, releases in found.items())

    def remark(self, target: Target) -> str:
        """Return a sentence if the opset is above the highest in the target's table, else ""."""
        tables = [each for each in tables_around(target.version) if each]
        highest = max((each.opset for each in tables), default=0)
        if not target.traits.tabled or self.opset <= highest:
            return ""
        return f"opset {self.opset} is above {highest}, the highest that the table names; that alone blocks nothing"


def _judged(use: Use, table: OperatorTable, *, plugins: bool) -> Finding | None:
    state, words = against(use, table, plugins=plugins)
    if state is State.CLEAR:
        return None
    first = None
    if state is State.BLOCKED:
        later = operator_tables()[operator_tables().index(table) + 1 :]
        free = (each.release for each in later if against(use, each, plugins=plugins)[0] is not State.BLOCKED)
        first = next(free, None)
    return Finding(state, use.name, use.node.op_type, words, first)


def against(use: Use, table: OperatorTable, *, plugins: bool = False) -> tuple[State, str]:
    """Return the verdict of a table on a node, and why in words, "" for none."""
    importer = table.importers.get(use.operator)
    if use.operator == _FUNCTION:
        return (
            (State.CLEAR, "") if importer else (State.BLOCKED, "no importer of a function of the model's own")
        )
    if use.node.domain not in _OWN:
        if use.node.domain.startswith(_FOREIGN) and not plugins and importer is None:
            return State.BLOCKED, f"no importer of an operator of {use.node.domain}"
        return State.UNKNOWN, f"an operator of {use.node.domain}, which needs a plugin"
    if importer is None:
        # An operator outside of ONNX may be a plugin, TensorRT's own too.
        if onnx.defs.has(use.operator) or any(use.operator in each.importers for each in operator_tables()):
            return State.BLOCKED, "no importer"
        return State.UNKNOWN, "needs a plugin, for ONNX has no such operator"
    return _restricted(use, importer)


def _restricted(use: Use, importer: Importer) -> tuple[State, str]:
    """Return the verdict of the types and restrictions of an importer on a node."""
    lacking = [kind for kind in _kinds(use) if kind not in importer.types]
    if lacking:
        return State.BLOCKED, f"not in {lacking[0]}"
    kept = {name: KEPT[name](use) for name in importer.restrictions}
    for state, answer in ((State.BLOCKED, False), (State.RESTRICTED, None)):
        broken = [restrictions()[name] for name, each in kept.items() if each is answer]
        if broken:
            return state, "; ".join(broken)
    return State.CLEAR, ""


def _kinds(use: Use) -> Iterable[str]:
    """Yield the types of a node's tensors that a table must list.

    The rows of QuantizeLinear and DequantizeLinear list the types of the first input alone.
    """
    quantises = use.operator in {"QuantizeLinear", "DequantizeLinear"}
    for at, name in enumerate((*use.node.input, *use.node.output)):
        kind = use.scope.types.get(name, onnx.TensorProto.UNDEFINED)
        # A UINT8 image goes through an Identity: 8.6.1, 10.6.0 and TensorRT for RTX were measured to take it.
        if kind == onnx.TensorProto.UINT8 and use.operator == "Identity":
            continue
        if kind in _LISTED and (at == 0 or not quantises):
            yield _LISTED[kind]
        elif kind not in _LISTED and kind not in _FREE:
            yield onnx.TensorProto.DataType.Name(kind)


def _between(
    one: Finding | None, other: Finding | None, before: OperatorTable, after: OperatorTable | None
) -> Finding | None:
    """Return the finding on a node between two tables, or beyond the last."""
    if after is None:
        # Beyond the last table an importer stays, and a missing one may have come.
        words = f"the last table is of {before.release}: {one.restriction}" if one else ""
        return Finding(State.UNKNOWN, one.node, one.operator, words) if one else None
    if (one and one.state) == (other and other.state):
        return one
    found = one or other
    assert found is not None  # noqa: S101  (one of them is, for they differ)
    answers = (each.restriction if each else "nothing against it" for each in (one, other))
    words = "; ".join(
        f"{table.release}: {answer}" for table, answer in zip((before, after), answers, strict=True)
    )
    return Finding(State.UNKNOWN, found.node, found.operator, words)


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings, the gravest first."""
    return tuple(sorted(findings, key=lambda finding: list(State).index(finding.state)))

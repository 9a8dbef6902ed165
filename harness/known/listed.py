"""Holds a graph against NVIDIA's operator tables: is it blocked or restricted on a TensorRT, without a run; pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import onnx
from onnx.inliner import inline_local_functions
from packaging.version import Version

from harness.case.graph_reader import Extents, GraphReader, attribute, inferred, name_at, subgraphs
from harness.case.model import effective_name
from harness.matrix import Target
from harness.matrix import operators as tabled
from harness.matrix.operators import Fact, Importer, OperatorTable, operator_tables, tables_around
from harness.words import Word

#: A tensor's dimensions; None for a dimension that is not fixed.
Shape = tuple[int | None, ...]
#: Whether a restriction is kept; None if the graph does not decide.
Answer = bool | None
#: Attributes of Resize that the tables restrict; of its roundings they name all that ONNX has.
_RESIZED = {
    "mode": ("nearest", "linear"),
    "coordinate_transformation_mode": (
        "half_pixel",
        "pytorch_half_pixel",
        "tf_half_pixel_for_nn",
        "asymmetric",
        "align_corners",
    ),
}
_MOST_K = 3840


@dataclass(frozen=True)
class OperatorUse:
    """A node in its graph: `operator` by the table's name, `name` by the engine's."""

    node: onnx.NodeProto
    scope: GraphReader
    operator: str
    name: str
    _kept: dict[str, Answer] = field(default_factory=dict, repr=False, compare=False)

    def keeps(self, condition: str) -> Answer:
        """Tell whether it keeps a restriction or a condition, by its name in operators.tsv."""
        if condition not in self._kept:
            self._kept[condition] = KEPT[condition](self)
        return self._kept[condition]

    def attribute(self, name: str, default: object = None) -> object:
        """Return an attribute's value; text as str."""
        return attribute(self.node, name, default)

    def listed(self, name: str) -> list[object]:
        """Return an attribute that is a list; () if it is left out."""
        value = self.attribute(name)
        return list(value) if isinstance(value, list | tuple) else []

    def given(self, index: int) -> str:
        """Return the name of an input; "" if it is left out."""
        return name_at(self.node.input, index)

    def shape(self, index: int = 0) -> Shape | None:
        """Return the dimensions of an input, None if the rank is unknown."""
        return _fixed(self.scope.shapes.get(self.given(index)))

    def kind(self, index: int) -> int | None:
        """Return the element type of an input, None if it is unknown."""
        return self.scope.types.get(self.given(index))

    def constant(self, index: int) -> Answer:
        """Return True if an input is a constant or left out; None if nodes compute it from other tensors."""
        name = self.given(index)
        if not name or name in self.scope.constants:
            return True
        return False if name in self.scope.inputs else None

    def decided(self, index: int) -> bool:
        """Tell whether constants and sizes alone decide an input: the engine knows it before it runs."""
        waiting, seen = [self.given(index)], set[str]()
        while waiting:
            name = waiting.pop()
            maker = self.scope.producer(name)
            if name in seen or name in self.scope.constants:
                continue
            seen.add(name)
            if maker is None or any(subgraphs(maker)):
                return False
            waiting += [] if maker.op_type in {"Shape", "Size"} else filter(None, maker.input)
        return True

    def values(self, index: int) -> np.ndarray | None:
        """Return a constant input's values, None if they are not in the graph."""
        return self.scope.value(self.given(index))


#: A restriction or a condition of the tables.
Condition = Callable[[OperatorUse], Answer]


def _fixed(found: Extents | None) -> Shape | None:
    if found is None:
        return None
    return tuple(each if isinstance(each, int) and each >= 0 else None for each in found)


def _all(*answers: Answer) -> Answer:
    return False if False in answers else None if None in answers else True


def _einsum(use: OperatorUse) -> Answer:
    terms = str(use.attribute("equation", "")).partition("->")[0].replace(" ", "").split(",")
    if any("." in term or len(set(term)) < len(term) for term in terms):
        return False
    sizes: dict[str, set[int | None]] = {}
    for at, term in enumerate(terms):
        for letter, size in zip(term, use.shape(at) or (None,) * len(term), strict=False):
            sizes.setdefault(letter, set()).add(size)
    return _all(*(len(size) < 2 or (None if len(size - {None}) < 2 else False) for size in sizes.values()))  # noqa: PLR2004


def _halves(found: list[object]) -> bool:
    """Tell whether both halves of a list are the same."""
    return found[: len(found) // 2] == found[len(found) // 2 :]


def _branches(use: OperatorUse, *, broadcast: bool) -> Answer:
    if use.values(0) is not None:
        # Importers take the branch that a stored condition says, and no other.
        return True
    answer = _both_branches(use, broadcast=broadcast)
    # TensorRT for RTX was measured to build an If of unlike ranks whose condition sizes decide; 8.6.1 refuses it.
    return None if answer is False and not broadcast and use.decided(0) else answer


def _both_branches(use: OperatorUse, *, broadcast: bool) -> Answer:
    named = use.attribute("then_branch"), use.attribute("else_branch")
    graphs = [graph for graph in named if isinstance(graph, onnx.GraphProto)]
    if len(graphs) < len(named):
        return None
    answers: list[Answer] = []
    scopes = [GraphReader(graph, use.scope) for graph in graphs]
    for one, two in zip(*(graph.output for graph in graphs), strict=False):
        shapes = _fixed(scopes[0].shapes.get(one.name)), _fixed(scopes[1].shapes.get(two.name))
        answers += [one.name != two.name, _alike(*shapes, broadcast=broadcast)]
    return _all(*answers)


def _loop_slices(use: OperatorUse) -> bool:
    """Tell whether all ends of Slices inside a Loop are stored."""
    bodies = [GraphReader(body, use.scope) for body in subgraphs(use.node)]
    slices = [(body, node) for body in bodies for node in body.nodes if node.op_type == "Slice"]
    return all(body.constants.issuperset(filter(None, node.input[1:3])) for body, node in slices)


def _alike(one: Shape | None, two: Shape | None, *, broadcast: bool) -> Answer:
    if one is None or two is None:
        return None
    if not broadcast:
        return len(one) == len(two)
    pairs = zip(reversed(one), reversed(two), strict=False)
    return _all(*(len({*pair}) == 1 or (None if None in pair else 1 in pair) for pair in pairs))


def _loop_shapes(use: OperatorUse) -> Answer:
    """Tell whether a Loop gathers nothing, and its body is declared to hand on the sizes that it takes."""
    body = next(iter(subgraphs(use.node)), onnx.GraphProto())
    shapes = GraphReader(body, use.scope).shapes
    came, went = (
        [_fixed(shapes.get(each.name)) for each in ends] for ends in (body.input[2:], body.output[1:])
    )
    return True if came == went and all(shape is not None and None not in shape for shape in came) else None


def _resize_axes(use: OperatorUse) -> Answer:
    axes, shape = use.attribute("axes"), use.shape()
    if not isinstance(axes, list) or not use.given(2):
        return True
    return None if shape is None else axes == list(range(len(shape)))


def _limit(use: OperatorUse) -> Answer:
    # Before opset 10 K is an attribute.
    k = use.attribute("k", use.values(1))
    # The tables say "less than"; 8.6.1, 10.6.0 and TensorRT for RTX were measured to take the limit itself.
    return None if k is None else bool(np.all(np.asarray(k) <= _MOST_K))


def _along_axis(use: OperatorUse, usual: int) -> int | None:
    axis, shape = use.attribute("axis", usual), use.shape()
    if shape is None or not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return None
    return shape[axis]


def _real(use: OperatorUse) -> Answer:
    shape = use.shape()
    return None if not shape or shape[-1] is None else len(shape) < 3 or shape[-1] == 1  # noqa: PLR2004


def _parts_alike(use: OperatorUse) -> Answer:
    many, length = use.attribute("num_outputs"), _along_axis(use, 0)
    return length % many == 0 if isinstance(many, int) and many and length is not None else not many or None


def _axes_all(use: OperatorUse) -> Answer:
    axes, shape = use.values(1), use.shape()
    if not use.given(1) or use.shape(1) == (0,):
        return True
    if axes is None or shape is None:
        return False if axes is None else None
    return len({int(each) % len(shape) for each in axes.ravel()}) == len(shape)


def _axes_or_sizes(use: OperatorUse) -> Answer:
    extents, source = use.scope.shapes.get(use.given(0)), use.scope.producer(use.given(0))
    # The engine knows how many sizes a shape has, also where shape inference does not know them.
    if use.listed("axes") or use.given(1) or (source and source.op_type == "Shape"):
        return True
    # A name that shape inference made up may stand for a size that the engine knows.
    named = (isinstance(each, str) and not each.startswith("unk__") for each in extents or ())
    return False if any(named) else _static(use)


def _static(use: OperatorUse) -> Answer:
    shape = use.shape()
    return True if shape is not None and None not in shape else None


# The forms that most conditions have.


def _typed(index: int, *wanted: int) -> Condition:
    """Ask that an input is left out or of one of these types."""

    def kept(use: OperatorUse) -> Answer:
        kind = use.kind(index)
        return not use.given(index) or (None if kind is None else kind in wanted)

    return kept


def _ranks(wanted: Collection[int], *places: int) -> Condition:
    """Ask that those of these inputs that are given have one of some numbers of dimensions."""

    def kept(use: OperatorUse) -> Answer:
        shapes = (use.shape(index) for index in places if use.given(index))
        return _all(*(None if shape is None else len(shape) in wanted for shape in shapes))

    return kept


def _constants(*places: int) -> Condition:
    return lambda use: _all(*map(use.constant, places))


def _zeros(*names: str) -> Condition:
    return lambda use: not any(use.attribute(name, 0) for name in names)


def _among(name: str, *wanted: object) -> Condition:
    """Ask that an attribute has one of some values, by default the first."""
    return lambda use: use.attribute(name, wanted[0]) in wanted


def _without(ends: str, start: int, stop: int | None = None) -> Condition:
    """Ask that a node has none of its inputs or outputs from one on."""
    return lambda use: not any(getattr(use.node, ends)[start:stop])


def _zero(use: OperatorUse) -> Answer:
    """Tell whether the third input is zero throughout, or left out."""
    values = use.values(2)
    return not use.given(2) or (None if values is None else not np.any(values.astype(np.float32)))


#: By name in operators.tsv: whether a use keeps a restriction or a condition.
KEPT: Mapping[str, Condition] = {
    "attention-attributes": _zeros("qk_matmul_output_mode", "softcap"),
    "attention-outputs": _without("output", 1),
    "attention-rank": _ranks({4}, 0, 1, 2, 3),
    "axes-all": _axes_all,
    "axes-or-sizes": _axes_or_sizes,
    "branches-alike": lambda use: use.values(0) is not None or _both_branches(use, broadcast=False),
    "branches-broadcast": lambda use: _branches(use, broadcast=True),
    "branches-rank": lambda use: _branches(use, broadcast=False),
    "cache-axis": _among("axis", -2),
    "cache-rank": _ranks({4}, 0, 1),
    # Slice and Pad take the axes as the fourth input, others as the second.
    "constant-axes": lambda use: use.constant(3 if use.operator in {"Slice", "Pad"} else 1),
    "constant-axis": _constants(1),
    "constant-depth": _constants(1),
    "constant-frames": _constants(1, 2),
    "constant-k": _constants(1),
    "constant-scale": _constants(1, 2),
    "dilations-ones": lambda use: set(use.listed("dilations")) <= {1},
    "directions-alike": lambda use: (
        use.attribute("direction", "forward") != "bidirectional" or _halves(use.listed("activations"))
    ),
    "einsum-plain": _einsum,
    "first-output": _without("output", 1),
    "k-limit": _limit,
    "layout-zero": _zeros("layout"),
    "loop-shapes": _loop_shapes,
    "loop-slices": _loop_slices,
    "no-antialias": _zeros("antialias"),
    "no-cache": _without("input", 4),
    "no-indices": _without("output", 1, 2),
    "no-input-forget": _zeros("input_forget"),
    "no-reduction": _among("reduction", "none"),
    "no-training-mode": _zeros("training_mode"),
    "norm-one-or-two": _among("p", 2, 1),
    "remainder-of-integers": lambda use: (
        bool(use.attribute("fmod", 0)) or _typed(0, onnx.TensorProto.INT32, onnx.TensorProto.INT64)(use)
    ),
    "no-training": lambda use: False if use.constant(2) is False else _zero(use),
    "noop-without-effect": lambda use: bool(
        not use.attribute("noop_with_empty_axes", 0) or use.listed("axes") or use.given(1)
    ),
    "whole-shape": lambda use: not use.attribute("start", 0) and use.attribute("end") is None,
    "parts-alike": _parts_alike,
    "pads-alike": lambda use: _halves(use.listed("pads")),
    "plain-value": lambda use: (
        not {"sparse_value", "value_string", "value_strings"} & {item.name for item in use.node.attribute}
    ),
    "pool-rank": _ranks({3, 4, 5}, 0),
    "position-int64": _typed(3, onnx.TensorProto.INT64),
    "rank-3-to-4": _ranks({3, 4}, 0),
    "rank-3-to-5": _ranks({3, 4, 5}, 0),
    "rank-4": _ranks({4}, 0),
    "real-input": _real,
    "reduction-left-out": _among("reduction", None),
    "resize-axes": _resize_axes,
    "resize-modes": lambda use: all(
        use.attribute(name, known[0]) in known for name, known in _RESIZED.items()
    ),
    "resize-policy": _among("keep_aspect_ratio_policy", "stretch"),
    "seed-ignored": lambda use: None if use.attribute("seed") is not None else True,
    "sorted": _among("sorted", 1),
    "static-axis": lambda use: None if _along_axis(use, -1) is None else True,
    # Importer of 8.5 and 8.6: the values of an FP16 scale are read as FP32.
    "scale-fp32": lambda use: use.kind(1) != onnx.TensorProto.FLOAT16,
    "static-shape": _static,
    "zero-point-zero": _zero,
}


def uses(model: onnx.ModelProto, name_of: Callable[[onnx.NodeProto], str]) -> Iterator[OperatorUse]:
    """Yield every node of a model that its graph runs, those of branches, loops and local functions too."""
    functions = {(each.domain, each.name) for each in model.functions}
    for node in model.graph.node:
        if (node.domain, node.op_type) in functions:
            yield OperatorUse(node, GraphReader(onnx.GraphProto()), "local function", name_of(node))
    whole = inline_local_functions(model) if functions else model
    yield from uses_in(GraphReader(inferred(whole)), name_of)


def uses_in(scope: GraphReader, name_of: Callable[[onnx.NodeProto], str]) -> Iterator[OperatorUse]:
    """Yield every node that a graph runs, those of branches and loops too."""
    for node in scope.nodes:
        yield OperatorUse(node, scope, node.op_type, name_of(node))
        for graph in _run_by(node, scope):
            yield from uses_in(GraphReader(graph, scope), name_of)


def _run_by(node: onnx.NodeProto, scope: GraphReader) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that a node runs, of an If whose condition is stored the branch that is taken alone."""
    condition = scope.value(node.input[0]) if node.op_type == "If" else None
    if condition is None or condition.size != 1:
        yield from subgraphs(node)
    else:
        taken = attribute(node, "then_branch" if condition.all() else "else_branch")
        yield from [taken] if taken is not None else []


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
#: 8.6.1, 10.6.0 and TensorRT for RTX were measured to take a UINT8 image to an Identity, and to refuse an INT32 bias.
_FREES = {
    "Identity": _FREE | {onnx.TensorProto.UINT8},
    "DequantizeLinear": _FREE - {onnx.TensorProto.INT32},
}
_OWN = ("", "ai.onnx")
#: Domains whose operators no parser of TensorRT imports; of any other a plugin may be meant.
_FOREIGN = ("ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "com.microsoft")
_FUNCTION, _NO_IMPORTER = "local function", "no importer"


class State(Word):
    """The gist of a static answer, the first that applies.

    BLOCKED: NVIDIA's table lacks the importer or the type, or has a restriction that the graph breaks.
    REPORTED: the graph holds a pattern that is claimed to fail.
    IGNORED: it builds, and the importer does not obey an attribute, by its source: numbers are wrong in silence.
    RESTRICTED: the table restricts the operator, and the graph does not decide whether it complies.
    UNKNOWN: there is no table, or two tables disagree.
    CLEAR: the tables hold no objection, which is no promise.
    """

    BLOCKED = "blocked"
    REPORTED = "reported"
    IGNORED = "ignored"
    RESTRICTED = "restricted"
    UNKNOWN = "unknown"
    CLEAR = "clear"


@dataclass(frozen=True)
class Objection:
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


class Dropped(Objection):
    """An objection that something is not read: what comes of it is seen by reading the model so."""


@dataclass(frozen=True)
class Static:
    """The static answer for a model on a target; `findings` are all that lead to it, the gravest first.

    remark: the model's opset is above the table's highest, which by itself does not block the model.
    """

    findings: tuple[Objection, ...] = ()
    remark: str = ""

    @property
    def gravest(self) -> Objection:
        """Return the first finding, or that the model is clear."""
        return self.findings[0] if self.findings else Objection(State.CLEAR)

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
        self._uses = tuple(uses(model, effective_name)) if model else ()
        self._plugins = plugins
        self._answers: dict[tuple[int, str, tuple[Fact, ...]], Objection] = {}

    def on(self, target: Target) -> tuple[Objection, ...]:
        """Return the findings of NVIDIA's tables about the model on a TensorRT; () for another engine."""
        before, after = tables_around(target.version)
        unread = "" if target.traits.tabled else f"NVIDIA's tables are not of {target.traits.product}"
        unread = unread or self._unread
        if unread or before is None:
            words = unread or f"the first table is of {operator_tables()[0].release}"
            return (Objection(State.UNKNOWN, "", "", words),)
        version = ".".join(map(str, Version(target.version).release[:2]))
        one = tuple(self._against(before, version))
        other = one if after is None or after is before else self._against(after, version)
        found = (_between(*pair, before, after, version) for pair in zip(one, other, strict=True))
        return tuple(dict.fromkeys(each for each in found if each.state is not State.CLEAR))

    def _against(self, table: OperatorTable, version: str) -> Iterator[Objection]:
        """Yield the finding of a table on each node, with the facts that a version has beside the table's release."""
        for at, use in enumerate(self._uses):
            key = at, table.release, _facts(table.release, version).get(use.operator, ())
            if key not in self._answers:
                self._answers[key] = _judged(use, table, version, plugins=self._plugins)
            yield self._answers[key]

    def drawn_on(self, target: Target) -> Objection | None:
        """Return the gravest finding of the tables if it is drawn: blocked, ignored or restricted."""
        first = next(iter(ranked(self.on(target))), None)
        return first if first and first.state in (State.BLOCKED, State.IGNORED, State.RESTRICTED) else None

    def remark(self, target: Target) -> str:
        """Return a sentence if the opset is above the highest in the target's table, else ""."""
        tables = [each for each in tables_around(target.version) if each]
        highest = max((each.opset for each in tables), default=0)
        if not target.traits.tabled or self.opset <= highest:
            return ""
        return f"opset {self.opset} is above {highest}, the highest that the table names; that alone blocks nothing"


@cache
def _facts(release: str, version: str) -> Mapping[str, tuple[Fact, ...]]:
    """Return by operator the facts of a release's importers that a version has, or the release itself."""
    (table,) = (each for each in operator_tables() if each.release == release)
    releases = Version(version or release), Version(release)
    found = ((name, each.facts) for name, each in table.importers.items() if each.facts)
    return {name: tuple(fact for fact in facts if fact.holds(*releases)) for name, facts in found}


def _judged(use: OperatorUse, table: OperatorTable, version: str, *, plugins: bool) -> Objection:
    state, words = against(use, table, version, plugins=plugins)
    first = None
    if state is State.BLOCKED:
        later = operator_tables()[operator_tables().index(table) + 1 :]
        free = (each.release for each in later if against(use, each, plugins=plugins)[0] is not State.BLOCKED)
        first = next(free, None)
    dropped = state is State.IGNORED or (state is State.RESTRICTED and _is_dropped(use, table, version))
    return (Dropped if dropped else Objection)(state, use.name, use.node.op_type, words, first)


def _is_dropped(use: OperatorUse, table: OperatorTable, version: str) -> bool:
    """Tell whether nothing restricts a node but what its importer does not read."""
    importer = table.importers[use.operator]
    facts = _facts(table.release, version).get(use.operator, ())
    other = [fact.condition for fact in facts if fact.state != State.IGNORED]
    return all(use.keeps(name) for name in (*importer.restrictions, *other))


def against(
    use: OperatorUse, table: OperatorTable, version: str = "", *, plugins: bool = False
) -> tuple[State, str]:
    """Return the verdict of a table on a node, and why in words, "" for none; `version` is the engine's."""
    importer, domain = table.importers.get(use.operator), use.node.domain
    if use.operator == _FUNCTION:
        return (
            (State.CLEAR, "") if importer else (State.BLOCKED, "no importer of a function of the model's own")
        )
    if domain not in _OWN:
        if domain.startswith(_FOREIGN) and not plugins and importer is None:
            return State.BLOCKED, f"no importer of an operator of {domain}"
        return State.UNKNOWN, f"an operator of {domain}, which needs a plugin"
    if importer:
        return _restricted(use, importer, _facts(table.release, version).get(use.operator, ()))
    # An operator outside of ONNX may be a plugin, TensorRT's own too.
    if onnx.defs.has(use.operator) or any(use.operator in each.importers for each in operator_tables()):
        return State.BLOCKED, _NO_IMPORTER
    return State.UNKNOWN, "needs a plugin, for ONNX has no such operator"


def _restricted(use: OperatorUse, importer: Importer, facts: Iterable[Fact]) -> tuple[State, str]:
    """Return the verdict of the types and restrictions of an importer on a node, with the facts of a release."""
    for kind in _kinds(use):
        if kind not in importer.types:
            return State.BLOCKED, f"not in {kind}"
    rows = [(State.BLOCKED, name, tabled.restrictions()[name]) for name in importer.restrictions]
    rows += [(State(fact.state), fact.condition, f"{fact.words} ({fact.link})") for fact in facts]
    found: dict[State, list[str]] = {}
    for state, name, words in rows:
        if not (kept := use.keeps(name)):
            found.setdefault(state if kept is False else State.RESTRICTED, []).append(words)
    worst = min(found, key=list(State).index, default=State.CLEAR)
    return worst, "; ".join(found.get(worst, ()))


def _kinds(use: OperatorUse) -> Iterable[str]:
    """Yield the types of a node's tensors that a table must list.

    The rows of QuantizeLinear and DequantizeLinear list the types of the first input alone.
    """
    quantises = use.operator in {"QuantizeLinear", "DequantizeLinear"}
    free = _FREES.get(use.operator, _FREE)
    for at, name in enumerate((*use.node.input, *use.node.output)):
        kind = use.scope.types.get(name, onnx.TensorProto.UNDEFINED)
        if kind in free:
            continue
        if kind not in _LISTED:
            yield onnx.TensorProto.DataType.Name(kind)
        elif at == 0 or not quantises:
            yield _LISTED[kind]


def _between(
    one: Objection, other: Objection, before: OperatorTable, after: OperatorTable | None, version: str
) -> Objection:
    """Return the finding on a node of a version between two tables, or beyond the last."""
    came = tabled.imported_since(one.operator or "") if one.restriction == _NO_IMPORTER else ""
    if came and Version(version) < Version(came):
        return replace(one, first=None, restriction=f"{_NO_IMPORTER} before {came}")
    if came and after:
        return other
    if one.state is (other.state if after else State.CLEAR):
        return one
    if after:
        sides = ((before, one), (after, other))
        said = (f"{table.release}: {each.restriction or 'nothing against it'}" for table, each in sides)
        return Objection(State.UNKNOWN, one.node, one.operator, "; ".join(said))
    # Beyond the last table an importer stays, and a missing one may have come.
    since = f"{came} imports it, and " if came else ""
    words = f"{since}the last table is of {before.release}: {one.restriction}"
    return Objection(State.UNKNOWN, one.node, one.operator, words)


def ranked(findings: Iterable[Objection]) -> tuple[Objection, ...]:
    """Return findings, the gravest first."""
    return tuple(sorted(findings, key=lambda finding: list(State).index(finding.state)))

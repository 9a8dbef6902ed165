"""Tells of a model on a target without running it, by NVIDIA's operator tables and claims about its patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from harness.case import Case, Expectation, load_cases
from harness.case.model import effective_name
from harness.errors import HandledError, described
from harness.judge.cell import Judged, describe_recipe
from harness.matrix import Matrix, Platform, Target
from harness.matrix.operators import Importer, OperatorTable, operator_tables, restrictions, tables_around
from harness.models.check import ran
from harness.models.matches import Known, Match
from harness.models.own.model import OwnModel
from harness.models.restrictions import KEPT, Use, uses
from harness.plan import Cell, claims_about
from harness.run.child import ChildFailed, stream
from harness.run.prepared import memory_for
from harness.words import GOOD, PREDICATE, SHOWS_NO_FAILURE, WHEN_RUN, Basis, Class, Word

#: Types of the tables that block where a row lacks them, by the tables' words. INT64 and DOUBLE are cast, and INT8 is
#: not named from 10.0 on.
_LISTED: Mapping[int, str] = {
    onnx.TensorProto.BFLOAT16: "BF16",
    onnx.TensorProto.FLOAT8E4M3FN: "FP8",
    onnx.TensorProto.FLOAT4E2M1: "FP4",
    onnx.TensorProto.INT4: "INT4",
    onnx.TensorProto.UINT8: "UINT8",
}
#: What the tables' lists of types have besides; any other type is in none of them, and blocks everywhere.
_FREE = frozenset(
    getattr(onnx.TensorProto, name)
    for name in ("UNDEFINED", "FLOAT", "FLOAT16", "DOUBLE", "INT8", "INT32", "INT64", "BOOL")
)
_OWN = ("", "ai.onnx")
#: Domains whose operators no parser of TensorRT imports; of any other a plugin may be meant.
_FOREIGN = ("ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "com.microsoft")
_FUNCTION = "local function"
#: Seconds that reading a graph may take; of the real models at hand none took one.
_SECONDS = 20.0
#: Platforms of which one's reports are told on the other: one version of TensorRT is built apart for each.
_PLATFORMS: Mapping[Platform, str] = {"linux/amd64": "x86-64", "jetson": "Jetson"}


class State(Word):
    """The gist of a static answer, the first that applies.

    BLOCKED: NVIDIA's table has no importer, not the type, or a restriction that the graph breaks. REPORTED: a failure
    is claimed of a pattern that the graph holds. RESTRICTED: the table restricts, and the graph does not decide.
    UNKNOWN: no table, or two that disagree. CLEAR: nothing is known against it, which is no promise.
    """

    BLOCKED = "blocked"
    REPORTED = "reported"
    RESTRICTED = "restricted"
    UNKNOWN = "unknown"
    CLEAR = "clear"


@dataclass(frozen=True)
class Finding:
    """One thing that speaks against a model; `first` is the first table without it, where it is blocked."""

    state: State
    node: str
    operator: str
    restriction: str
    first: str | None = None


#: What tables say of a model, the gravest finding or that it is clear, with the releases of these tables.
TabledAnswer = tuple[Finding, tuple[str, ...]]


@dataclass(frozen=True)
class Static:
    """The static answer for a model on a target; `findings` are all that lead to it, the gravest first.

    `remark` says that the model's opset is above what a table names, which blocks nothing by itself. `elsewhere` is
    reported of the same version on another platform, and leads to nothing here.
    """

    state: State
    findings: tuple[Finding, ...] = ()
    remark: str = ""
    elsewhere: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, str | None]:
        """Return the answer by its first finding, as `check --json` has it."""
        found = self.findings[0] if self.findings else None
        return {
            "state": str(self.state),
            "node": found.node if found else None,
            "operator": found.operator if found else None,
            "restriction": found.restriction if found else None,
            "first": found.first if found else None,
        }


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
        """Return the findings of NVIDIA's tables on the model on a TensorRT; none of another engine."""
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

    def by_tables(self) -> tuple[TabledAnswer, ...]:
        """Return what each table says of the model, tables that say the same together, the oldest first."""
        found: dict[Finding, list[str]] = {}
        for release, answers in self._answers.items():
            findings = (
                [Finding(State.UNKNOWN, "", "", self._unread)] if self._unread else filter(None, answers)
            )
            gravest = next(iter(_ranked(findings)), Finding(State.CLEAR, "", "", ""))
            found.setdefault(gravest, []).append(release)
        return tuple((finding, tuple(releases)) for finding, releases in found.items())

    def remark(self, target: Target) -> str:
        """Return the sentence that the opset is above the highest that the target's table names; "" where it is not."""
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
        # What is no operator of ONNX may be a plugin, TensorRT's own too.
        known = _is_known(use.operator)
        return (
            (State.BLOCKED, "no importer")
            if known
            else (State.UNKNOWN, "needs a plugin, for ONNX has no such operator")
        )
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


def _is_known(operator: str) -> bool:
    return onnx.defs.has(operator) or any(operator in table.importers for table in operator_tables())


def _kinds(use: Use) -> Iterable[str]:
    """Yield the types of a node's tensors that block where a table lacks them.

    A row of QuantizeLinear and DequantizeLinear names those of the first input.
    """
    quantises = use.operator in {"QuantizeLinear", "DequantizeLinear"}
    for at, name in enumerate((*use.node.input, *use.node.output)):
        kind = use.scope.types.get(name, onnx.TensorProto.UNDEFINED)
        if kind in _LISTED and (at == 0 or not quantises):
            yield _LISTED[kind]
        elif kind not in _LISTED and kind not in _FREE:
            yield onnx.TensorProto.DataType.Name(kind)


def _between(
    one: Finding | None, other: Finding | None, before: OperatorTable, after: OperatorTable | None
) -> Finding | None:
    """Return the finding on a node between two tables, or beyond the last."""
    if after is None:
        # Beyond the last table an importer stays; what was lacking may have come.
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


def patterns(cases: Sequence[Case] | Path, matrix: Matrix) -> tuple[Known | None, str]:
    """Return the patterns of the cases, or None and the sentence on why their folder cannot be read."""
    try:
        return Known(load_cases(cases) if isinstance(cases, Path) else cases, list(matrix)), ""
    except HandledError as error:
        line = f"no hints at what is known to fail: {described(error)}; --cases names another folder"
        return None, line


def static_answers(
    models: Sequence[OwnModel], judged: Sequence[Judged], patterns: Known | None
) -> Mapping[tuple[str, str], Static]:
    """Return the answer for each model and target, by variant and target; `patterns` are None where no cases are."""
    found = {}
    tabled = any(each.cell.target.traits.tabled for each in judged)
    for model in models:
        data, plugins = model.variant.model_bytes(), bool(model.variant.recipe.libraries)
        (held,) = read_models([data], plugins=plugins) if tabled else (StaticModel(None),)
        graph = onnx.load_model_from_string(data)
        matches = patterns.matches(graph) if patterns else ()
        for each in judged:
            if each.cell.variant.name == model.variant.name:
                claimed = () if each.outcome.ran else matches
                target = each.cell.target
                claims = (one for match in claimed for one in _reported(match, each, target))
                ranked = _ranked((*held.on(target), *claims))
                state = ranked[0].state if ranked else State.CLEAR
                remark, elsewhere = held.remark(target), tuple(_elsewhere(claimed, each))
                found[model.variant.name, target.name] = Static(state, ranked, remark, elsewhere)
    return found


def _ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: list(State).index(finding.state)))


def read_models(models: Sequence[bytes], *, plugins: bool = False) -> Iterator[StaticModel]:
    """Yield models held against the tables, read in bounded children: functions in functions may grow without end."""
    left = list(models)
    while left:
        try:
            memory = memory_for(max(map(len, left)))
            for each in stream(_held, left, plugins, seconds=_SECONDS, memory_mib=memory):
                yield each
                del left[0]
        except ChildFailed as error:
            if left:
                yield StaticModel(None, unread=f"the process that read the graph {error}")
                del left[0]


def _held(models: Sequence[bytes], plugins: bool) -> Iterator[StaticModel]:  # noqa: FBT001
    yield from (StaticModel(onnx.load_model_from_string(data), plugins=plugins) for data in models)


def _elsewhere(matches: Sequence[Match], each: Judged) -> Iterator[Finding]:
    """Yield failures of the same version on other platforms, of patterns of which nobody says anything on this one."""
    target = each.cell.target
    needs = replace(target.needs, compute_capability="")
    others = {
        name: replace(target, platform=platform, needs=needs)
        for platform, name in _PLATFORMS.items()
        if platform != target.platform
    }
    for match in () if ran(each) else matches:
        if not claims_about(Cell("", match.case, match.variant, target)):
            for name, other in others.items():
                for one in _reported(match, each, other):
                    yield replace(one, restriction=f"on {name} {one.restriction}")


def _reported(match: Match, each: Judged, target: Target) -> Iterator[Finding]:
    """Yield the failure that is claimed, or was measured, of a pattern on a target, for each place of it."""
    claim = _surest(match, each, target)
    if claim is None:
        return
    link = claim.source.url if claim.source and claim.basis is not Basis.MEASURED else ""
    said = " ".join(filter(None, (PREDICATE[claim.outcome], f"({claim.provenance})", link)))
    recipe = describe_recipe(match.variant.recipe)
    name = f"{match.case.name}.{match.variant.name} ({match.variant.title}; {recipe})"
    for place in match.places:
        yield Finding(State.REPORTED, place[0], "", f"{said}: {name}")


def _surest(match: Match, each: Judged, target: Target) -> Expectation | None:
    """Return the claim to tell about a target, None where there is none."""
    if ran(each) and each.classification.cls not in GOOD:
        return None
    bad = WHEN_RUN if ran(each) else frozenset(Class) - SHOWS_NO_FAILURE
    cell = Cell("", match.case, match.variant, target)
    claims = sorted(claims_about(cell), key=lambda claim: claim.basis is not Basis.MEASURED)
    # A measured good ending speaks against a reported failure, but shows nothing of a run.
    surest = [claim for claim in claims if claim.outcome in bad] if ran(each) else claims[:1]
    return next((claim for claim in surest if claim.outcome in bad), None)

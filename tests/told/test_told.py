"""What `check` tells of the models of all measured cells of TensorRT, without an engine, agrees with the measurement.

A cell's model goes the way of a user's file, with all that `check` has an option for. What works is not told a failure;
a failure is told, a lost precision and wrong numbers too, each with a node that the measurement blames.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from unittest import mock

import onnx
import pytest
import yaml

from harness.case import Calibrator, Case, Variant, load_cases, measured
from harness.case.graph_reader import subgraphs
from harness.case.model import effective_name
from harness.judge.cell import Judged, judge_cell
from harness.judge.verdict import accepted_ms
from harness.known.listed import State, Static
from harness.matrix import load_matrix
from harness.models import static
from harness.models.deciding import Patterns, TooWide
from harness.models.matches import Shape
from harness.models.own.model import OwnModel, Wanted, own_case, own_model
from harness.plan import Cell, all_cells
from harness.record.outcome import Outcome, Stamps
from harness.share.submission import read
from harness.words import GOOD, Class, Verdict
from tests.told.variations import KINDS, renamed

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]
CASES = load_cases(TOP / "cases")
VARIANTS = {f"{case.name}.{variant.name}": (case, variant) for case in CASES for variant in case}
MATRIX = load_matrix(TOP / "matrix.yaml")
TARGETS = ("trt86", "trt106")
TOLD = (State.BLOCKED, State.REPORTED, State.IGNORED)
#: Cells that need something that `check` has no option for.
NO_OPTION: Mapping[str, str] = {
    **dict.fromkeys(
        (name for name, (_, variant) in VARIANTS.items() if variant.recipe.plugin),
        "the formats that this project's own plugin takes, which no model tells",
    ),
    **dict.fromkeys(
        (f"instance_norm.calibrator-{fault}" for fault in ("host-pointer", "float64", "non-contiguous")),
        "a calibrator that is wrong on purpose",
    ),
    "instance_norm.fp16-native": "a parser's flag, without which the same graph was measured to give wrong numbers",
}


@dataclass(frozen=True)
class Truth:
    """The measured end of a variant on a target, the same on every GPU, and the nodes to blame."""

    variant: str
    target: str
    cls: Class
    nodes: tuple[str, ...]

    @property
    def works(self) -> bool:
        return self.cls in GOOD


@cache
def truths() -> Mapping[tuple[str, str], Truth]:
    """Return the measured cells that can be asked for; those in which two GPUs disagree are none."""
    found: dict[tuple[str, str], list[Truth]] = {}
    for each in measured.read(TOP / "cases" / measured.FILE).measured:
        for (case, variant), result in each.cells.items() if each.target in TARGETS else ():
            name = f"{case}.{variant}"
            truth = Truth(name, each.target, result.cls, result.nodes)
            found.setdefault((name, each.target), []).append(truth)
    alike = {cell: seen[0] for cell, seen in found.items() if len({each.works for each in seen}) == 1}
    return {cell: truth for cell, truth in alike.items() if truth.variant not in NO_OPTION}


def drawn(everything: bool) -> list[str]:
    """Return the variants that fail on a target and a drawn tenth of the others, or all of them."""
    names = sorted({name for name, _ in truths()})
    bad = {truth.variant for truth in truths().values() if not truth.works}
    tenth = random.Random(61).sample(names, len(names) // 10)  # noqa: S311
    return [name for name in names if everything or name in bad or name in tenth]


@cache
def patterns() -> Patterns:
    return Patterns(CASES)


def own(variant: Variant, model: onnx.ModelProto) -> OwnModel:
    """Return a variant's model as a user has it who gives the options of its recipe."""
    recipe = variant.recipe
    found = own_model(model, "m.onnx", Wanted(typing=recipe.typing, flags=recipe.flags), name="m")
    if not recipe.calibrator:
        return found
    flags = tuple(dict.fromkeys((*found.variant.recipe.flags, "INT8")))
    mine = replace(found.variant.recipe, flags=flags, calibrator=Calibrator("entropy"))
    return replace(found, variant=replace(found.variant, recipe=mine))


def not_run(case: Case, target: str) -> Judged:
    cell = Cell(f"model.m-{target}", case, case.variants[0], MATRIX.target(target))
    return judge_cell(cell, Outcome(cell.id, case.name, "m", target, "not_run", "no GPU", stamps=Stamps()))


def answers(name: str, model: onnx.ModelProto, patterns: Patterns) -> Mapping[str, Static]:
    """Return what is told of a model with a variant's options, by target."""
    mine = own(VARIANTS[name][1], model)
    judged = [not_run(own_case([mine]), target) for target in TARGETS]
    # The child that reads a stranger's model costs more than the answer.
    with mock.patch.object(static, "held_against", lambda data, plugins: next(static._held(data, plugins))):
        found = static.static_answers([mine], judged, patterns)
    return {each.cell.target.name: found[each.cell.id] for each in judged}


@cache
def told(name: str) -> Mapping[str, Static]:
    """Return what is told of a variant's own model, by target."""
    return answers(name, model_of(name), patterns())


def model_of(name: str) -> onnx.ModelProto:
    return onnx.load_model_from_string(VARIANTS[name][1].model_bytes())


def wrong(known: Mapping[str, bool], answers: Mapping[str, Static]) -> list[str]:
    """Return the targets on which a model is told otherwise than known: whether it works, by target."""
    return [
        f"{target}: {'works' if works else 'fails'}, told {answers[target].gravest.worded()[:150] or 'clear'}"
        for target, works in known.items()
        if (answers[target].state in TOLD) is works
    ]


def test_few_cells_cannot_be_asked_for() -> None:
    assert sum(each.target in TARGETS and name in NO_OPTION for each, name in _cells()) <= 40


def _cells() -> Iterator[tuple[measured.Measured, str]]:
    seen = set()
    for each in measured.read(TOP / "cases" / measured.FILE).measured:
        for case, variant in each.cells:
            if (each.target, case, variant) not in seen:
                seen.add((each.target, case, variant))
                yield each, f"{case}.{variant}"


def ids(everything: bool) -> list[object]:
    """Return the variants as parameters; in the fast suite those that fail and a tenth."""
    fast = set(drawn(everything=False))
    return [
        pytest.param(name, marks=() if name in fast else pytest.mark.long)
        for name in drawn(everything=everything)
    ]


@pytest.mark.parametrize("name", ids(everything=True))
def test_a_cells_own_model_is_told_as_measured(name: str) -> None:
    known = {target: truth.works for (variant, target), truth in truths().items() if variant == name}
    assert wrong(known, told(name)) == []


@pytest.mark.parametrize("name", ids(everything=True))
def test_what_is_told_names_a_node_that_the_measurement_blames(name: str) -> None:
    shape = Shape(model_of(name))
    for target, answer in told(name).items():
        truth = truths().get((name, target))
        if truth is None or not truth.nodes or truth.works:
            continue
        # A node that makes a constant is blamed for the one that reads it.
        read = (shape.place_of.get(node) for node in truth.nodes)
        blamed = {shape.nodes[at].name for at in read if at is not None} | {*truth.nodes}
        named = {each.node for each in answer.findings if each.state in TOLD}
        assert named & blamed, f"{target}: blamed {sorted(blamed)}, told {sorted(map(str, named))}"


def every_node(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield effective_name(node)
        for inner in subgraphs(node):
            yield from every_node(inner)


@pytest.mark.parametrize("name", ids(everything=True))
def test_names_of_nodes_and_tensors_decide_nothing(name: str) -> None:
    model = model_of(name)
    other = renamed(model)
    names = dict(zip(every_node(other.graph), every_node(model.graph), strict=True))
    for target, answer in answers(name, other, patterns()).items():
        assert [(str(each.state), names.get(str(each.node), each.node)) for each in answer.findings] == [
            (str(each.state), each.node) for each in told(name)[target].findings
        ]


VARIATIONS = yaml.safe_load((Path(__file__).parent / "variations.yaml").read_text())


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if at % 6 == 0 else pytest.mark.long)
        for at, name in enumerate(VARIATIONS)
        if name.rpartition(".")[0] not in NO_OPTION
    ],
)
def test_a_measured_variation_is_told_as_its_original(name: str) -> None:
    """Another batch, other sizes or channels, a Relu in front: built on both versions, none of them is a case."""
    variant, _, kind = name.rpartition(".")
    made = KINDS[kind](model_of(variant))
    assert made is not None
    known = {target: Class(cls) in GOOD for target, cls in VARIATIONS[name].items()}
    found = wrong(known, answers(variant, made, patterns()))
    assert bool(found) is (name in OTHERWISE), found


#: Variations that end otherwise than their original, or that no measured failure is alike.
OTHERWISE = {
    "attention.qkv-shared-mark-v.batch": "wrong numbers on 10.6.0 in a batch of two, with an inner tensor marked",
    "exporters.nms.spatial": "the reshape behind NonMaxSuppression no longer fits; the original works on 10.6.0",
    "fp16_group_conv.group4-3d.relu": "TF32 where another build of the original took FP16",
    "quantised_attention.int8-half.relu": "a Relu in front mends the numbers on 10.6.0",
}


def test_most_variations_are_told_rightly() -> None:
    assert len(OTHERWISE) <= 0.02 * sum(map(len, VARIATIONS.values()))


#: Patterns that lie in a graph that works on the target, and nothing that a model tells parts them.
TOO_WIDE = {
    ("instance_norm.calibrator-host-pointer", "trt86"),
    ("instance_norm.calibrator-host-pointer", "trt106"),
}


def test_no_pattern_is_like_a_graph_that_works() -> None:
    wide = {
        (pattern.id, target)
        for target in TARGETS
        for pattern in patterns().every
        if pattern.failure(MATRIX.target(target))
        and isinstance(patterns().deciding(pattern, MATRIX.target(target)), TooWide)
    }
    assert wide == TOO_WIDE


#: Graphs that work, and that a pattern would be told of if they were not known: controls that alone part it.
ALONE = {
    ("depthwise_qdq.qdq-group32", "trt86"),
    ("depthwise_qdq.qdq-group32", "trt106"),
    ("instance_norm.fp16-native", "trt86"),
    ("instance_norm.qdq-5d-plugin", "trt86"),
    ("instance_norm.qdq-5d-plugin", "trt106"),
    ("mish.swish-tail-identity", "trt86"),
    ("norms.layernorm-scale-small", "trt86"),
    ("norms.layernorm-scale-small", "trt106"),
    ("turing.vit-int8", "trt86"),
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_graph_that_works_is_told_no_failure_even_if_it_were_unknown(target: str) -> None:
    """Each graph is withheld from the patterns in turn."""
    column, found = MATRIX.target(target), set()
    for each in patterns().every:
        if each.works(column) and not each.variant.recipe.plugin:
            others = patterns().without(each)
            recipe = own(each.variant, model_of(each.id)).variant.recipe
            if any(
                match.claim.outcome is not Class.API_REMOVED
                for match in others.matches(each.shape, recipe, column)
            ):
                found.add((each.id, target))
    assert found == {each for each in ALONE if each[1] == target}


ARCHIVES = sorted((TOP / "reports" / "published" / "evidence").glob("*.jsonl.xz"))


def test_the_evidence_of_both_columns_is_there() -> None:
    assert sum(path.stat().st_size for path in ARCHIVES) < 5e6
    cells = {record.cell for path in ARCHIVES for record in read(path).records}
    assert {cell.rpartition("-")[2] for cell in cells} == {"trt86", "trt106"}


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_a_record_is_judged_as_it_was_accepted(path: Path) -> None:
    archive = read(path)
    assert archive.faults == ()
    cells = {cell.id: cell for cell in all_cells(load_matrix(TOP / "matrix.yaml"), load_cases(TOP / "cases"))}
    accepted = {each.place: each.cells for each in measured.read(TOP / "cases" / measured.FILE).measured}
    for record in archive.records:
        judged = judge_cell(cells[record.cell], record)
        assert record.stamps.recipe_sha256 == cells[record.cell].variant.recipe.sha256()
        place = record.target, "9.0", record.stamps.environment["gpu"]
        result = accepted[place][record.case, record.variant]
        assert (record.cell, judged.classification.cls, judged.signature) == (record.cell, *result[:2])
        assert (judged.classification.unverified, accepted_ms(result.cls, record)) == (
            result.untold,
            result.ms,
        )
        assert judged.judgement.verdict is not Verdict.REGRESSED
        assert archive.log(str(record.log_sha256))

"""Which ways round a cell are named: those that were measured to help, of the same operator, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.compare.step import tried_elsewhere, ways_round
from harness.known.model import Advice, GraphView, Known, NodeView, VariantView
from harness.words import Basis, Class, Precision, Role
from tests.compare.handmade import FP16, INT8, known, target, variant

pytestmark = pytest.mark.unit

WORKING, FAILING = known(Class.OK), known(Class.CRASHED)
REPORTED = known(Class.OK, basis=Basis.REPORTED, evidence=True)
UNKNOWN = known(None)

Entry = tuple[VariantView, Known]


def row(
    name: str, cell: Known, of: str | None = None, role: Role = Role.REPRODUCER, case: str = "c"
) -> Entry:
    return replace(variant(name), case=case, role=role, counterpart=of), cell


def of_first(rows: list[Entry], *proofs: str) -> tuple[str, ...]:
    """Return the workarounds of the first variant."""
    return ways_round({found.id: (found, cell) for found, cell in rows}, *rows[0], proofs).ids


def remedy(name: str, cell: Known, of: str | None = "v") -> Entry:
    return row(name, cell, of, Role.WORKAROUND)


V = row("v", FAILING)


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        ([V], ()),
        ([V, remedy("a", WORKING)], ("c.a",)),
        ([V, remedy("a", WORKING), remedy("b", WORKING), remedy("d", WORKING)], ("c.a", "c.b")),
        ([V, remedy("a", REPORTED), remedy("b", WORKING)], ("c.b",)),
        ([V, remedy("a", REPORTED), remedy("b", FAILING)], ("c.a",)),
        ([V, remedy("a", known(Class.BUILT))], ("c.a",)),
        ([V, remedy("a", FAILING), remedy("b", FAILING)], ()),
        ([V, remedy("a", FAILING), remedy("b", UNKNOWN)], ()),
        ([V, remedy("a", FAILING)], ()),
        # A control, and a remedy for another problem, is no workaround.
        (
            [
                V,
                row("a", WORKING, "v", Role.CONTROL),
                remedy("b", WORKING, "other"),
                remedy("d", WORKING, None),
            ],
            (),
        ),
        ([V, row("a", WORKING, "v", Role.WORKAROUND, case="d")], ()),
    ],
)
def test_workarounds_that_hold_are_named(rows: list[Entry], ids: tuple[str, ...]) -> None:
    """Two at most, measured ones before those claimed to."""
    assert of_first(rows) == ids


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        # A twin shares the workarounds of its counterpart, and of that one's counterpart.
        ([row("t", FAILING, "v"), V, remedy("a", WORKING)], ("c.a",)),
        ([row("u", FAILING, "t"), row("t", FAILING, "v"), V, remedy("a", WORKING)], ("c.a",)),
        ([row("u", FAILING, "t"), row("t", FAILING, "v"), V, remedy("a", WORKING, "t")], ("c.a",)),
        # A control of a workaround is helped by the workaround.
        ([row("t", FAILING, "a"), V, remedy("a", WORKING)], ("c.a",)),
        ([row("t", FAILING, "a"), remedy("a", WORKING, None)], ("c.a",)),
        # A workaround that fails is no help to itself, but the others of its variant are.
        ([remedy("a", FAILING), V], ()),
        ([remedy("a", FAILING), V, remedy("b", WORKING)], ("c.b",)),
        # Two that are read against each other, and one against something that is not there.
        ([row("t", FAILING, "v"), row("v", FAILING, "t"), remedy("a", WORKING)], ("c.a",)),
        ([row("t", FAILING, "gone"), remedy("a", WORKING, "gone")], ()),
    ],
)
def test_what_helps_its_counterpart_helps_a_variant(rows: list[Entry], ids: tuple[str, ...]) -> None:
    assert of_first(rows) == ids


def about(name: str, cell: Known, *operators: str, case: str = "c", **wanted: Precision) -> Entry:
    """Return a variant whose graph has these operators beside the convolutions that it wants in a precision."""
    plain = replace(variant(name, **wanted), case=case)
    nodes = tuple(NodeView(f"n{at}", operator, (), ()) for at, operator in enumerate(operators))
    return replace(plain, graph=GraphView(plain.graph.nodes + nodes)), cell


def said_at(place: str) -> Known:
    """Return a failure whose cause is at an operator."""
    return known(Class.PARSE_FAILED, diagnosis=Advice("id", "title", "cause", "advice", place=place))


def test_a_proof_of_the_advice_is_named_after_the_workarounds() -> None:
    """Also of another case; each once, and never the variant itself or one that is not there."""
    first, other = about("v", FAILING, a=INT8), about("p", WORKING, case="d", a=INT8)
    proofs = ("c.v", "d.p", "c.a", "d.gone")
    assert of_first([first, other], *proofs) == ("d.p",)
    helps = about("a", WORKING, a=INT8)
    assert of_first(
        [first, other, (replace(helps[0], counterpart="v", role=Role.WORKAROUND), WORKING)], *proofs
    ) == ("c.a", "d.p")
    assert of_first([first, (other[0], FAILING), remedy("a", FAILING)], *proofs) == ()


def test_a_proof_of_another_operator_or_type_is_none() -> None:
    """A quantised convolution stood for Attention, for a norm, and for a convolution in FP8."""
    conv = about("p", WORKING, case="d", a=INT8)
    assert of_first([about("v", FAILING, a=INT8), conv], "d.p") == ("d.p",)
    assert of_first([about("v", FAILING, a=Precision.FP8), conv], "d.p") == ()
    assert of_first([about("v", said_at("Attention node '/n'"), "Attention", "MatMul"), conv], "d.p") == ()
    assert of_first([about("v", FAILING, "RMSNormalization"), conv], "d.p") == ()
    assert of_first([about("v", FAILING, "QLinearConv"), about("p", WORKING, "Conv", case="d")], "d.p") == (
        "d.p",
    )


def test_an_operator_written_out_is_known_by_its_counterpart() -> None:
    """The proof itself has no Swish; the variant that it is read against has."""
    parts, whole = about("p", WORKING, "Sigmoid", "Mul"), about("v", said_at("Swish"), "Swish", "Add")
    assert of_first([whole, parts], "c.p") == ()
    assert of_first([(replace(whole[0], counterpart="p"), whole[1]), parts], "c.p") == ("c.p",)


def test_a_workaround_of_what_works_there_is_no_help_against_another_trouble() -> None:
    """Q/DQ behind the activation stood for channels that have no kernel, beside a counterpart that works."""
    assert of_first([row("w", FAILING, "v"), row("v", WORKING), remedy("a", WORKING)]) == ()


def test_what_was_tried_elsewhere_alone_is_said_so() -> None:
    """And nothing that failed on any version."""
    rows = [V, remedy("a", UNKNOWN), remedy("b", UNKNOWN), remedy("d", UNKNOWN)]
    column = {found.id: (found, cell) for found, cell in rows}
    assert ways_round(column, *V) == ((), "")
    targets = [target("one", "8.6"), target("two", "10.6"), target("new", "11.0")]
    tried = [
        (rows[0][0], (FAILING, FAILING, FAILING)),
        (rows[1][0], (FAILING, WORKING, UNKNOWN)),
        (rows[2][0], (known(Class.API_REMOVED), WORKING, UNKNOWN)),
        (rows[3][0], (REPORTED, UNKNOWN, UNKNOWN)),
    ]
    elsewhere = tried_elsewhere(targets, tried)["tensorrt_rtx"]
    assert elsewhere == {"c.b": ("10.6",)}
    assert ways_round(column, *V, (), elsewhere) == (("c.b",), "tried on 10.6 alone")
    reported = {**column, "c.a": (rows[1][0], REPORTED)}
    assert ways_round(reported, *V, (), elsewhere) == (("c.a",), "reported")


@pytest.mark.parametrize("cls", [Class.OK, Class.BUILT, None])
def test_nothing_is_named_where_a_cell_works_or_nothing_is_known(cls: Class | None) -> None:
    assert of_first([row("v", known(cls)), remedy("a", WORKING)]) == ()


def test_a_twin_with_its_precision_in_the_graph_is_a_help_where_a_call_is_gone() -> None:
    twin = row("t", WORKING, "v", Role.TWIN)
    assert of_first([row("v", known(Class.API_REMOVED)), twin]) == ("c.t",)
    assert of_first([V, twin]) == ()


def test_a_variant_that_gives_up_the_narrow_type_is_no_help_where_that_is_lost() -> None:
    lost = replace(variant("v", a=INT8)), known(Class.PRECISION_LOST)
    assert of_first([lost, remedy("a", WORKING)]) == ()
    half = about("a", WORKING, a=FP16)[0]
    assert of_first([lost, (replace(half, role=Role.WORKAROUND, counterpart="v"), WORKING)]) == ()
    other = about("b", WORKING, a=INT8)[0]
    assert of_first([lost, (replace(other, role=Role.WORKAROUND, counterpart="v"), WORKING)]) == ("c.b",)

"""What a version does not have yet, by tables and signatures: a type, an operator or a call that came later; pure.

Such a failure is no fault of the version, and a later version that has it mends none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from packaging.version import Version

from harness.engines import ENGINES
from harness.judge.names import since
from harness.judge.signatures import load_signatures
from harness.known.model import Known, TargetView, VariantView, Yet
from harness.layers.datatype import precision_of
from harness.matrix.operators import operator_tables, tables_around
from harness.words import CLASSES, Basis, Class, Engine

#: The signatures of a parser that refuses a type and an operator; the graph and the tables tell which.
_TYPE, _OPERATOR = ("initializer-refused", "initializer-of-later-type"), "no-importer"


def not_yet(cell: Known, variant: VariantView, target: TargetView) -> Yet | None:
    """Return what a cell failed for that its version does not have yet, as far as sources tell; None else.

    Only engines whose operators are tabled are told so. A cell that failed for another cause lacks nothing.
    """
    if not ENGINES[Engine(target.engine)].tabled or cell.stands is None:
        return None
    if CLASSES[cell.stands].breaks != "builds":
        return None
    every = (
        each for each in _lacking(cell, variant, target) if Version(each.since) > Version(target.version)
    )
    return max(every, key=lambda each: Version(each.since), default=None)


def _lacking(cell: Known, variant: VariantView, target: TargetView) -> Iterator[Yet]:
    """Yield what a refused graph holds that came with some version."""
    signature = cell.signature or ""
    since_of = _types(variant) if signature in _TYPE else {}
    # Of a report without a cause too: no graph is read without an importer.
    if signature == _OPERATOR or (not signature and cell.stands is Class.PARSE_FAILED):
        since_of |= _operators(variant, target)
    if cell.basis is Basis.LISTED and cell.static and cell.static.restriction == "no importer":
        operator = cell.static.operator or ""
        since_of[operator] = since(operator)
    if came := _came().get(signature):
        yield came
    yield from (Yet(what, release) for what, release in since_of.items() if release)


def _types(variant: VariantView) -> dict[str, str]:
    """Return the types of a graph, each with the first table that has it."""
    kinds = {precision_of(each.split(" ")[0]) for each in variant.graph.types.values()}
    return {name: _first_of(name) for name in sorted(str(kind).upper() for kind in kinds)}


def _operators(variant: VariantView, target: TargetView) -> dict[str, str]:
    """Return the operators of a graph that a version has no importer of, each with the first release that has."""
    before, _ = tables_around(target.version)
    every = (node.op for node in variant.graph.nodes if before and node.op not in before.importers)
    return {name: since(name) for name in every}


@cache
def _came() -> Mapping[str, Yet]:
    return {each.id: Yet(**each.came) for each in load_signatures() if each.came}


@cache
def _first_of(kind: str) -> str:
    """Return the first of NVIDIA's tables in which an importer takes a type, "" for a type that none names."""
    tables = operator_tables()
    return next(
        (each.release for each in tables if any(kind in it.types for it in each.importers.values())), ""
    )

"""Cells: every variant on every target, in the order of the report.

Also the claims that hold in a cell, the targets that reproduce a claimed failure, the cells that do not apply, and
the choice of one cell by its id or of some by an expression as pytest's -k takes it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from packaging.version import Version

from harness.case import Case, Expectation, Recipe, Typing, Variant
from harness.errors import HandledError
from harness.matrix import Matrix, Target
from harness.text import did_you_mean, listed
from harness.words import PREDICATE, SHOWS_NO_FAILURE, Basis, Class


@dataclass(frozen=True)
class Cell:
    """One variant on one target; `id` is `case.variant-target`, also its pytest id, and is never taken apart.

    `earlier` are the targets of an earlier version of the same engine, platform, GPU generation and provider.
    """

    id: str
    case: Case
    variant: Variant
    target: Target
    earlier: tuple[str, ...] = ()

    @cached_property
    def claims(self) -> tuple[Expectation, ...]:
        """Return the claims that stand in it on any GPU."""
        return claims_about(self)

    @cached_property
    def inapplicable(self) -> str | None:
        """Return why it does not apply to its target, or None if it is to be run.

        A removed API is not decided here: it is run, and the agent reports which name is missing.
        """
        return _inapplicable_because(self)


def all_cells(matrix: Matrix, cases: Iterable[Case]) -> tuple[Cell, ...]:
    """Return all cells, ordered by case, variant and target, each as its source lists them.

    The targets of an untrusted case are untrusted. Raises HandledError if two cells would have one id.
    """
    earlier = {target.name: _earlier(matrix, target) for target in matrix}
    usual = tuple(matrix)
    untrusted = tuple(each if each.untrusted else replace(each, untrusted=True) for each in usual)
    cells = {}
    for case in cases:
        for variant in case:
            for target in untrusted if case.untrusted else usual:
                cell_id = f"{case.name}.{variant.name}-{target.name}"
                if cell_id in cells:
                    raise HandledError(f"two cells are called {cell_id}; rename a variant or a target")
                cells[cell_id] = Cell(cell_id, case, variant, target, earlier[target.name])
    return tuple(cells.values())


def _earlier(matrix: Matrix, target: Target) -> tuple[str, ...]:
    return tuple(
        other.name
        for other in matrix
        if series(other) == series(target) and Version(other.version) < Version(target.version)
    )


def series(target: Target) -> tuple[object, ...]:
    """Return the key of targets whose versions make one row."""
    return target.engine, target.platform, target.compute_capability, target.provider


def claims_about(cell: Cell, compute_capability: str | None = None) -> tuple[Expectation, ...]:
    """Return the claims that stand in this cell on a GPU of this compute capability; None is any, "" is none.

    A claim about a sibling, from a source without versions, or about a GPU that the target does not run on (a GeForce
    is no Jetson) never stands. Without a compute capability the one that the target builds for counts, if declared. A
    claim that a build needs a GPU does not stand on a machine that has one.
    """
    target = cell.target
    return tuple(
        expectation
        for expectation in cell.variant.expectations
        if expectation.engine is target.engine
        and expectation.stands
        and not (compute_capability and expectation.outcome is Class.NEEDS_GPU_TO_BUILD)
        and expectation.covers(
            target=target.name,
            engine=target.engine,
            version=target.version,
            platform=target.platform,
            compute_capability=compute_capability or target.compute_capability or compute_capability,
        )
        and (
            expectation.compute_capability is None
            or target.needs.compute_capability_fits(expectation.compute_capability)
        )
    )


def failed_before(cell: Cell, compute_capability: str | None = None) -> str:
    """Return the place of a measured failure of the variant on this target or an earlier version of it, or "".

    On a GPU, a measurement without one or on one of the same compute capability counts.
    """
    here = (None, compute_capability or cell.target.compute_capability)
    found = [
        claim
        for claim in cell.variant.expectations
        if claim.compute_capability in here and _shows_failure(claim, cell)
    ]
    if not found:
        return ""
    last = max(found, key=_measured_on)
    return f"{last.note}: {PREDICATE[last.outcome]}"


def _shows_failure(claim: Expectation, cell: Cell) -> bool:
    if claim.basis is not Basis.MEASURED or claim.outcome in SHOWS_NO_FAILURE:
        return False
    if not (claim.versions or "").startswith("==") or claim.engine is not cell.target.engine:
        return False
    if {cell.target.name, *cell.earlier}.isdisjoint(claim.targets):
        return False
    return _measured_on(claim) <= Version(cell.target.version)


def _measured_on(claim: Expectation) -> Version:
    return Version((claim.versions or "").removeprefix("=="))


def reproduced_on(
    cells: Iterable[Cell], seen: Mapping[str, Collection[Class]] | None = None
) -> tuple[str, ...] | None:
    """Return the targets on which a variant was measured to fail as claimed; None without a claim of a failure.

    `cells` are those of the variant, `seen` the classes that were measured in each, beside the accepted ones.
    """
    found = []
    claimed = False
    for cell in cells:
        failures = {
            claim.outcome for claim in cell.claims if claim.basis is not Basis.MEASURED
        } - SHOWS_NO_FAILURE
        measured = {claim.outcome for claim in cell.claims if claim.basis is Basis.MEASURED}
        claimed = claimed or bool(failures)
        if not failures.isdisjoint({*measured, *(seen or {}).get(cell.id, ())}):
            found.append(cell.target.name)
    return tuple(found) if claimed else None


def reproduced_said(targets: Collection[str] | None) -> str:
    """Return the targets of `reproduced_on` in words; "" where nobody claims a failure."""
    if targets is None:
        return ""
    return f"on {', '.join(targets)}" if targets else "nowhere yet"


def _inapplicable_because(cell: Cell) -> str | None:
    recipe, traits = cell.variant.recipe, cell.target.traits
    if recipe.libraries and not traits.takes_plugins:
        names = ", ".join(library.name for library in recipe.libraries)
        return f"{traits.product} takes no plugins of TensorRT's, and this recipe asks for those of {names}"
    if not traits.graph_alone:
        return None
    lacking = _outside_the_graph(recipe)
    if not lacking:
        return None
    reason = (
        f"{traits.product} takes precision from the graph alone, and this recipe asks for {listed(lacking)}"
    )
    twin = _same_graph(cell.case, cell.variant)
    return f"{reason}; {cell.case.name}.{twin.name} is the same graph without that" if twin else reason


def _outside_the_graph(recipe: Recipe) -> list[str]:
    """Name the requests of a recipe that the graph does not hold."""
    lacking = []
    if recipe.typing is Typing.WEAK:
        lacking.append(f"weak typing ({', '.join(recipe.flags)})" if recipe.flags else "weak typing")
    if recipe.calibrator:
        lacking.append(f"{recipe.calibrator.kind} calibration")
    if recipe.parser_flags:
        lacking.append(f"parser flags ({', '.join(name for name, _ in recipe.parser_flags)})")
    if recipe.mark_outputs:
        lacking.append("inner tensors marked as outputs")
    if recipe.plugin:
        lacking.append(f"the plugin {recipe.plugin.op}")
    return lacking


def _same_graph(case: Case, variant: Variant) -> Variant | None:
    """Find the variant that builds the same bytes and has no wish beside the graph."""
    return next(
        (
            other
            for other in case
            if not _outside_the_graph(other.recipe)
            and (mine := _model_hash(variant))
            and _model_hash(other) == mine
        ),
        None,
    )


def _model_hash(variant: Variant) -> str:
    """Return the hash of a model, "" if it cannot be built."""
    try:
        return variant.model_sha256()
    except HandledError:
        return ""


def find(cells: Sequence[Cell], cell_id: str) -> Cell:
    """Return a cell by its id; raises HandledError, with the nearest id, for an unknown one."""
    by_id = {cell.id: cell for cell in cells}
    if cell_id not in by_id:
        raise HandledError(f"there is no cell {cell_id!r}; {did_you_mean(cell_id, by_id)}")
    return by_id[cell_id]


_WORD = re.compile(r"[()]|[\w:+\-.\[\]\\/]+|\S")
_NAME = re.compile(r"[\w:+\-.\[\]\\/]+")


def select(cells: Iterable[Cell], expression: str) -> tuple[Cell, ...]:
    """Return the cells whose id matches an expression of names, `and`, `or`, `not` and parentheses.

    As for pytest's -k, a name matches every id that contains it, in capitals or not, so "rtx17" takes
    "rtx17-sm75" along, and an empty expression matches everything. Raises HandledError for an expression that cannot
    be read. Not by pytest's own reader, which is private to it; a test holds this one to its answers.
    """
    if not expression.strip():
        return tuple(cells)
    tree, names = _read(expression)
    return tuple(cell for cell in cells if _holds(tree, cell.id, names))


def emptied_by(cells: Iterable[Cell], expression: str) -> str:
    """Return a sentence on the part of an expression that leaves no cell, "" if none does so alone.

    That is a part joined by `and`, without which there are some: "not ort", of a case called export.
    """
    tree, names = _read(expression)
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    every = [(cell, [_holds(part, cell.id, names) for part in parts]) for cell in cells]
    for at in reversed(range(len(parts))):
        left = [(cell, held[at]) for cell, held in every if all(held[:at] + held[at + 1 :])]
        if left and not any(held for _, held in left):
            word = _worded(parts[at], names)
            return f"{word!r} takes away all {len(left)} that are left without it, {left[0][0].id} for one"
    return ""


def _worded(part: ast.expr, names: list[str]) -> str:
    """Return a part of an expression as it was written."""
    return re.sub(r"name(\d+)", lambda found: names[int(found[1])], ast.unparse(part))


def _read(expression: str) -> tuple[ast.expr, list[str]]:
    """Return an expression as a tree, and its names by their numbers."""
    names: list[str] = []
    words: list[str] = []
    for word in _WORD.findall(expression):
        if _is_name(word):
            # Ids hold no capitals: the names of cases, variants and targets must not.
            names.append(word.lower())
            words.append(f"name{len(names) - 1}")
        else:
            words.append(word)
    try:
        tree = ast.parse(" ".join(words), mode="eval").body
        _holds(tree, "", names)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise HandledError(
            f"expression {expression!r} cannot be read; write it like 'mish and not trt86'"
        ) from None
    return tree, names


def taken_along(cells: Iterable[Cell], expression: str, alone: str = "--target") -> str:
    """Return a sentence if a target's name in an expression also selected other targets, else "".

    `alone` is the option that takes one target.
    """
    targets = dict.fromkeys(cell.target.name for cell in cells)
    for word in filter(_is_name, _WORD.findall(expression)):
        along = [name for name in targets if word.lower() in name and word.lower() != name]
        if word.lower() in targets and along:
            return f"-k {word} takes {', '.join(along)} along; {alone} {word.lower()} is that one alone"
    return ""


def _is_name(word: str) -> bool:
    return bool(_NAME.fullmatch(word)) and word not in ("and", "or", "not")


def _holds(node: ast.expr, cell_id: str, names: Sequence[str]) -> bool:
    """Tell whether an expression of Python over `name0`, `name1` ... matches an id; raises ValueError for any other."""
    if isinstance(node, ast.Name):
        return names[int(node.id.removeprefix("name"))] in cell_id
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _holds(node.operand, cell_id, names)
    if isinstance(node, ast.BoolOp):
        # Each part is looked at, so that an odd one is refused whatever the others are.
        parts = [_holds(value, cell_id, names) for value in node.values]
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    raise ValueError(ast.dump(node))

"""A judged cell in plain text: why it failed, what the engine said, how to see it again."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from harness.words import GOOD, UNJUDGED, Class

if TYPE_CHECKING:
    from harness.case import Recipe
    from harness.judge.cell import Judged
    from harness.record.outcome import Outcome

_MOST_MESSAGES = 8
_WIDEST = 300
#: What finished and is not as it should be says so itself; there is no text of the engine's to know again.
_FINISHED = GOOD | UNJUDGED | {Class.PRECISION_LOST, Class.INACCURATE}


def explain(judged: Judged, matrix: str = "", cases: str = "") -> str:
    """Return what a failed test prints: verdict, diagnosis, offending messages, recipe, the next command.

    `matrix` and `cases` are named in the command where they are not the usual ones.
    """
    cell = judged.cell
    lines = [
        f"{judged.classification.cls} ({judged.judgement.verdict}): {headline(judged)}",
        f"  cell     {cell.id}: {cell.variant.title}",
        f"  claim    {claim(judged)}",
        f"  why      {judged.classification.reason[:_WIDEST]}",
    ]
    lines += [f"  {line}" for line in complaints(judged)]
    lines += [
        f"  recipe   {describe_recipe(cell.variant.recipe)}",
        "  again    " + shlex.join(pytest_command(cell.id, matrix, cases)),
    ]
    lines.append("  more     " + shlex.join(["trt-compat", "show", cell.id, *_named(matrix, cases)]))
    return "\n".join(lines)


def headline(judged: Judged) -> str:
    """Return why a cell failed, in one line: the known cause and its place, else the reason of its class.

    Where the engine finished and no cause is known it is the verdict's sentence.
    """
    found = judged.diagnosis
    if found:
        return f"{found.title}, at {found.place}" if found.place else found.title
    if judged.classification.cls in _FINISHED:
        return judged.judgement.sentence
    return f"no known signature: {judged.classification.reason[:_WIDEST]}"


def claim(judged: Judged) -> str:
    """Return how a cell stands to what is claimed of it, without the reason that it failed for."""
    return judged.judgement.sentence.removesuffix(f": {judged.classification.reason}")


def complaints(judged: Judged) -> list[str]:
    """Return the diagnosis and what the engine complained of; messages only of a cell that failed."""
    lines = []
    if judged.diagnosis:
        lines += [
            f"known as {judged.diagnosis.id}: {judged.diagnosis.title}",
            f"place    {judged.diagnosis.place or 'the record does not tell'}",
            f"cause    {judged.diagnosis.cause}",
            f"advice   {judged.diagnosis.advice}",
        ]
        if judged.diagnosis.skipped_tactic:
            lines.append(f"last     {judged.diagnosis.skipped_tactic[:_WIDEST]}")
        lines += [f"see      {link}" for link in judged.diagnosis.links]
    said = _offending(judged.outcome) if judged.failed else []
    if said:
        lines.append("messages")
        lines += [f"  {' '.join(line.split())[:_WIDEST]}" for line in said[:_MOST_MESSAGES]]
    return lines


def _offending(outcome: Outcome) -> list[str]:
    said = [
        f"[{message.severity}] {message.text}"
        for message in outcome.messages
        if message.severity in ("INTERNAL_ERROR", "ERROR")
    ]
    said += [f"[parser] {error.node or error.operator}: {error.text}" for error in outcome.parser_errors]
    return said or outcome.native_output.strip().splitlines()[-_MOST_MESSAGES:]


def pytest_command(cell_id: str, matrix: str = "", cases: str = "") -> list[str]:
    """Return the command that runs one cell again; `matrix` and `cases` are named where they are not the usual ones."""
    return ["pytest", f"{matrix or 'matrix.yaml'}::{cell_id}", *_named("", cases)]


def _named(matrix: str, cases: str) -> list[str]:
    # pytest takes a file or folder behind a blank for one of tests.
    return [f"--{name}={path}" for name, path in (("matrix", matrix), ("cases", cases)) if path]


def describe_recipe(recipe: Recipe) -> str:
    """Return a recipe in one line."""
    parts = [f"{recipe.typing} typing"]
    if recipe.flags:
        parts.append("flags " + "+".join(recipe.flags))
    if recipe.calibrator:
        fault = f", wrong on purpose: {recipe.calibrator.fault}" if recipe.calibrator.fault else ""
        own = f" with {recipe.calibrator.batches} own batches" if recipe.calibrator.data else ""
        parts.append(f"{recipe.calibrator.kind} calibrator{own}{fault}")
    parts += [f"{name} {'on' if on else 'off'}" for name, on in recipe.parser_flags]
    if recipe.mark_outputs:
        parts.append("outputs marked: " + ", ".join(recipe.mark_outputs))
    if recipe.plugin:
        parts.append(f"plugin {recipe.plugin.op} accepting {recipe.plugin.formats}")
    if recipe.libraries:
        parts.append("plugins of " + ", ".join(library.name for library in recipe.libraries))
    parts += [f"profile {profile.input} {profile.minimum}..{profile.maximum}" for profile in recipe.profiles]
    if recipe.workspace_mib is not None:
        parts.append(f"workspace {recipe.workspace_mib} MiB")
    return "; ".join(parts)

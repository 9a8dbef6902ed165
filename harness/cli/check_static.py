"""What `check` says of targets without running them, and how `--json` has it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.errors import HandledError
from harness.models.check import ran
from harness.models.static import State
from harness.text import clip, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from harness.judge.cell import Judged
    from harness.models.own import OwnModel
    from harness.models.static import Finding, Static

_MOST_KINDS = 6
_WIDEST = 300
_HEAD = "not run; by NVIDIA's operator tables (docs/operators.md of onnx-tensorrt) and what is measured or reported:"


def static_lines(
    models: Sequence[OwnModel], judged: Sequence[Judged], answers: Mapping[tuple[str, str], Static]
) -> Iterator[str]:
    """Yield a line for each group of targets with one answer, and what leads to it, for what did not run here.

    Of an engine that was built and not run only what is claimed of running is said.
    """
    groups: dict[tuple[str, State, tuple[str, ...]], list[str]] = {}
    labels = {model.variant.name: model.label for model in models}
    for each in judged:
        key = each.cell.variant.name, each.cell.target.name
        found = answers[key]
        wanted = State.REPORTED if ran(each) else found.state
        findings = [one for one in found.findings if one.state is wanted]
        if each.outcome.ran or (ran(each) and not findings):
            continue
        lines = (*_kinds(findings), *filter(None, ["" if ran(each) else found.remark]))
        groups.setdefault((labels[key[0]], wanted, lines), []).append(key[1])
    if groups:
        yield _HEAD
    for (label, state, lines), targets in groups.items():
        many = f"{label}: " if len(models) > 1 else ""
        clear = ", which is no promise that it builds" if state is State.CLEAR else ""
        yield f"  {many}{state:<10} {', '.join(targets)}{clear}"
        yield from (f"    {line}" for line in lines)


def _kinds(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line for each kind of finding, with its first node and how many more there are."""
    kinds: dict[tuple[str, str, str | None], list[str]] = {}
    for each in findings:
        kinds.setdefault((each.operator, each.restriction, each.first), []).append(each.node)
    for (operator, restriction, first), nodes in list(kinds.items())[:_MOST_KINDS]:
        more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        where = " ".join(filter(None, (operator, repr(nodes[0]) if nodes[0] else ""))) + more
        since = f"; first taken in the table of {first}" if first else ""
        yield clip(" ".join(visible(": ".join(filter(None, (where, restriction + since)))).split()), _WIDEST)
    if len(kinds) > _MOST_KINDS:
        yield f"and {len(kinds) - _MOST_KINDS} kinds more"


def write_static(source: Path, goal: Path, answers: Mapping[tuple[str, str], Static]) -> None:
    """Write results.json with the static answer of each cell; raises HandledError where that cannot be."""
    data = json.loads(source.read_bytes())
    for cell in data["cells"]:
        cell["static"] = answers[cell["variant"], cell["target"]].to_json()
    try:
        goal.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise HandledError(f"--json {goal}: cannot be written ({error.strerror})") from error

"""What a check tried beyond its models as they are: plain data in a file beside its report, and rows that show it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema

from harness.bounded import SMALL, parse_json, read_bytes
from harness.errors import HandledError
from harness.text import clip
from harness.words import PREDICATE, Class, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Beside a report, as records are: what a report is made of and cannot be made again of the records.
_SCHEMA = Path(__file__).parent / "further.schema.json"
FURTHER = "further.json"
_MOST_NAMES, _WIDEST = 4, 240


class Row(NamedTuple):
    """A line of the table: what was asked of which target, what it is about, and the answer."""

    model: str
    target: str
    question: str
    about: str
    answer: str


def further_beside(folder: Path) -> tuple[dict[str, Any], ...]:
    """Return what `further.json` in a reports folder holds, nothing where there is none; raises HandledError."""
    path = folder / FURTHER
    if not path.exists():
        return ()
    try:
        entries = parse_json(read_bytes(path, SMALL))
    except (OSError, ValueError) as error:
        raise HandledError(f"{path}: cannot be read ({error}); run the check again") from error
    fault = next(iter(_validator().iter_errors(entries)), None)
    if fault is not None:
        raise HandledError(f"{path}: {fault.json_path}: {fault.message[:200]}; run the check again")
    try:
        further_rows(entries)
    except OverflowError as error:
        raise HandledError(
            f"{path}: holds a number that is too large to be shown; run the check again"
        ) from error
    return tuple(entries)


def further_text(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of `further.json`."""
    return json.dumps(entries, indent=1, sort_keys=True) + "\n"


def further_rows(entries: Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
    """Return entries as rows of a table, in their order."""
    return tuple(
        Row(entry["model"], entry["target"], *words)
        for entry in entries
        for key, told in _TOLD.items()
        if entry[key] is not None
        for words in told(entry[key])
    )


def further_schema() -> dict[str, Any]:
    """Return the JSON Schema of what a check tried further."""
    found: dict[str, Any] = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    return found


def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(further_schema())


def _blockers(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for each in found["found"]:
        where = f"{each['operator'] or 'a fused region'}: {_names(each['nodes'])}"
        where += "" if each["named"] else " (one of these: the engine names none)"
        cut = "after a cut: " if each["after_cut"] else ""
        why = f"{each['signature']}: {each['title']}" if each["signature"] else each["reason"]
        yield "blockers", where, _short(f"{cut}{why}{'. ' if each['advice'] else ''}{each['advice']}")
    if found["cut_as_well"]:
        yield "blockers", _names(found["cut_as_well"]), "cut as well: what they read has no known shape"
    yield "blockers", "in the end", _short(found["end"])


def _ladder(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    rungs = {"as_it_is": "as it is", "without_qdq": "without Q/DQ", "in_fp16": "in FP16"}
    for key, name in rungs.items():
        yield "ladder", name, _became(found[key]) if found[key] else "cannot be made"
    yield "ladder", "is quantisation at fault?", found["at_fault"]


def _left(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    if found["became"] is None:
        yield "left in floating point", "every quantised node", "does not help"
        return
    least = "; none of them can be spared" if found["least"] else ""
    helps = "helps" if found["helps"] else "does not help"
    about = f"{len(found['nodes'])} of {len(found['of'])} quantised nodes: {_names(found['nodes'])}"
    yield "left in floating point", about, f"{helps}: {_became(found['became'])}{least}"


def _workarounds(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for each in found["tried"]:
        about = f"{each['name']}: {each['title']}"
        if not each["gain"]:
            yield "workarounds", about, f"in vain: {_became(each['became'])}"
            continue
        best = " (the best)" if each["name"] == found["best"] else ""
        costs = f"costs {each['costs']}; {_outputs(each)}"
        yield "workarounds", about, _short(f"{_became(each['became'])}: {each['gain']}{best}; {costs}")
    if not found["tried"]:
        yield "workarounds", "all that are known", "nothing to change"


#: In the order in which they are asked.
_TOLD = {"blockers": _blockers, "ladder": _ladder, "leave_float": _left, "workarounds": _workarounds}


def _became(found: Mapping[str, Any]) -> str:
    kept = (
        f", {said(found['precision']).upper()} {found['kept']}/{found['wanted']}" if found["wanted"] else ""
    )
    cause = f" ({found['signature']})" if found["signature"] else ""
    return f"{PREDICATE[Class(found['class'])]}{cause}{kept}"


def _outputs(found: Mapping[str, Any]) -> str:
    if found["uncompared"] or not found["outputs"]:
        return f"outputs not compared: {found['uncompared'] or 'none'}"
    worst = max(
        found["outputs"], key=lambda each: (not each["shape_matches"], each["not_finite"], each["max_rel"])
    )
    if not worst["shape_matches"]:
        return f"output {worst['output']!r} has another shape"
    if worst["max_abs"] == 0 and not worst["not_finite"]:
        return "all outputs the same"
    return f"outputs off by {worst['max_rel']:.2g} at most, cosine {worst['cosine']:.6f}"


def _names(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - _MOST_NAMES} more" if len(nodes) > _MOST_NAMES else ""
    return ", ".join(nodes[:_MOST_NAMES]) + more


def _short(text: str) -> str:
    return clip(" ".join(text.split()), _WIDEST)

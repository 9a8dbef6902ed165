"""The answer as text, JSON, SARIF and Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from harness import __version__
from harness.scan.judged import ScanFinding, precision_advice, reach
from harness.scan.uses import Found

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "gone": "The version has no such name any more",
    "new": "The lowest version has no such name yet",
    "package": "Another TensorRT than the one that is asked about may be installed",
    "unread": "The file cannot be read",
}


@dataclass(frozen=True)
class ScanAnswer:
    """What was found, and how it is asked about: `row` tells by target whether the code can run there."""

    found: Found = field(repr=False)
    findings: Sequence[ScanFinding]
    files: int
    highest: str
    row: Mapping[str, bool]
    guarded: bool = False

    @property
    def shown(self) -> list[ScanFinding]:
        """Return the findings that are listed."""
        return [each for each in self.findings if self.guarded or not each.guarded]

    @property
    def said(self) -> list[str]:
        """Return the sentences below the list."""
        breaks = [each for each in self.findings if each.breaks]
        guarded = sum(each.guarded for each in self.findings)
        places = len({each.path for each in breaks})
        count = f"{_counted(len(breaks), 'use')} in {_counted(places, 'file')}" if breaks else "nothing"
        verb = "break" if len(breaks) > 1 else "breaks"
        lines = [f"{count} {verb}; {guarded} more guarded; {_counted(self.files, 'file')} read"]
        if self.row:
            fine, not_fine = (
                " ".join(name for name, runs in self.row.items() if runs is on) for on in (True, False)
            )
            lines += [
                f"runs on: {fine or 'none of the targets'}",
                *([f"not on: {not_fine}"] if not_fine else []),
            ]
        return [*lines, *reach(self.found, self.highest), *precision_advice(self.findings)]


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def text(answer: ScanAnswer) -> str:
    """Return one line a use, then what it comes to."""
    return "\n".join([*map(_line, answer.shown), *([""] if answer.shown else []), *answer.said])


def _line(each: ScanFinding) -> str:
    name = f"{each.name} " if each.name else ""
    notes = [*(["guarded"] if each.guarded else []), *([] if each.sure else ["by its name"])]
    aside = f" ({', '.join(notes)})" if notes else ""
    parts = [
        f"{each.path}:{each.line}: {name}{each.text}{aside}",
        f"instead: {each.instead}" if each.instead else "",
        each.link,
    ]
    return "; ".join(filter(None, parts))


def as_json(answer: ScanAnswer) -> str:
    """Return one object with all findings."""
    whole = {
        "to": answer.highest, "files": answer.files, "targets": dict(answer.row),
        "findings": [asdict(each) for each in answer.shown], "said": answer.said,
    }  # fmt: skip
    return json.dumps(whole, indent=1)


def sarif(answer: ScanAnswer) -> str:
    """Return SARIF 2.1.0: what breaks is an error, what is guarded or by a name alone less."""
    rules = [
        {"id": f"trt-compat/{kind}", "shortDescription": {"text": words}} for kind, words in _RULES.items()
    ]
    driver = {"name": "trt-compat scan", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": [_result(each) for each in answer.shown]}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=1)


def _result(each: ScanFinding) -> dict[str, Any]:
    words = f"{each.name} {each.text}".strip() + (f". Instead: {each.instead}" if each.instead else "")
    level = "note" if each.guarded else "error" if each.breaks and each.sure else "warning"
    path, _, cell = each.path.partition("#")
    place: dict[str, Any] = {"artifactLocation": {"uri": path}}
    if not cell:
        place["region"] = {"startLine": each.line, "startColumn": each.column}
    return {
        "ruleId": f"trt-compat/{each.kind}",
        "level": level,
        "message": {"text": f"{words}. {each.link}".rstrip(". ")},
        "locations": [{"physicalLocation": place}],
    }


def markdown(answer: ScanAnswer) -> str:
    """Return a table, for a pull request or a job's summary."""
    return "\n".join(_table(answer))


def _table(answer: ScanAnswer) -> Iterator[str]:
    if answer.shown:
        yield "| place | name | | instead |"
        yield "| --- | --- | --- | --- |"
    for each in answer.shown:
        page = f" ([NVIDIA]({each.link}))" if each.link.startswith("https:") else ""
        name = f"`{each.name}`" if each.name else ""
        cells = (f"{each.path}:{each.line}", name, each.text, each.instead + page)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""
    yield from (f"- {line}" for line in answer.said)


FORMATS: Mapping[str, Callable[[ScanAnswer], str]] = {
    "text": text,
    "json": as_json,
    "sarif": sarif,
    "markdown": markdown,
}

"""What versions make of the uses in code, and the answer as text, JSON, SARIF and Markdown; pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from harness import __version__
from harness.judge.names import named
from harness.matrix.interface import Name, interfaces, numbers
from harness.scan.uses import Found, Remark, Use

#: Signatures of what 11 wants in the model: the precision that code asked the builder for.
_PRECISION = frozenset({"weak-typing-removed", "implicit-int8-removed"})
#: NVIDIA has pages of its own for their names.
_CPP = frozenset({"c++", "c++ parser"})
_TYPED = numbers("11.0.0")
PRECISION_PAGE = "https://docs.nvidia.com/deeplearning/tensorrt/11.0.0/api/migration/tensorrt-10x-to-11x.html"
PRECISION_ADVICE = (
    "This code asks the builder for a precision, and TensorRT 11 takes types from the model: FP16 as types and Casts "
    "(ModelOpt's AutoCast writes them), INT8 and FP8 as Q/DQ nodes (ModelOpt's quantisation). `trt-compat convert` "
    "writes those that the old engine ran in, by its build log.\n"
    f"Without them the engine runs in FP32 and says nothing. How: {PRECISION_PAGE}"
)
Kind = Literal["gone", "new", "package", "unread"]


@dataclass(frozen=True)
class ScanFinding:
    """A place that a version breaks, or that wants a look.

    kind: the version lacks the name "gone" or "new"; "package" is about a version that is asked for; "unread" a file.
    changed: the version that took or brought the name, "" without one.
    breaks: it fails where the version is used; False too if it is guarded.
    """

    kind: Kind
    path: str
    line: int
    column: int
    name: str
    text: str
    changed: str = ""
    instead: str = ""
    link: str = ""
    guarded: bool = False
    sure: bool = True
    breaks: bool = True
    precision: bool = False


def judged(found: Found, lowest: str, highest: str) -> list[ScanFinding]:
    """Return what the versions from `lowest` (may be "") to `highest` lack of the uses, and what else to look at."""
    findings = []
    for each in found:
        if isinstance(each, Remark):
            findings.append(_remarked(each, highest))
            continue
        lacked = [(v, lacks) for v in (highest, lowest) if v and (lacks := each.name.lacking(numbers(v)))]
        reached = [(v, lacks) for v, lacks in lacked if each.reached(numbers(v))]
        if lacked:
            version, lacks = (reached or lacked)[0]
            findings.append(_lacked(each, lacks, version, guarded=not reached))
    return sorted(
        _once(filter(None, findings)), key=lambda each: (each.path, each.line, each.column, each.name)
    )


def _once(findings: Iterable[ScanFinding]) -> Iterator[ScanFinding]:
    """Yield each place once: of `CalibrationAlgoType.LEGACY_CALIBRATION` the whole alone."""
    some = list(dict.fromkeys(findings))
    owners = {(each.path, each.line, each.name.rpartition(".")[0]) for each in some if "." in each.name}
    return (each for each in some if (each.path, each.line, each.name) not in owners)


def _lacked(use: Use, lacking: str, version: str, *, guarded: bool) -> ScanFinding:
    name = use.name
    changed = name.changed(lacking, numbers(version))
    before = interfaces()[name.kind].before(changed)
    when = f"between {before} and {changed}" if _far(before, changed) else f"with {changed}"
    text = f"is gone {when}" if lacking == "gone" else f"is not in {version}, it comes {when}"
    instead, link, precision = _instead(name, changed) if lacking == "gone" else ("", "", False)
    return ScanFinding(
        kind="gone" if lacking == "gone" else "new",
        path=use.path, line=use.line, column=use.column, name=name.full, text=text, changed=changed,
        instead=instead, link=link, guarded=guarded, sure=use.sure, breaks=not guarded, precision=precision,
    )  # fmt: skip


def _far(before: str, after: str) -> bool:
    """Tell whether a whole major lies between two versions that were read one after the other."""
    return bool(before) and numbers(after)[0] - numbers(before)[0] > 1


def _instead(name: Name, gone: str) -> tuple[str, str, bool]:
    """Return what replaces a name, the page or file that says so, and whether it asks for a precision."""
    row = named(name.full.replace(".k", ".")) or named(name.bare) or named(name.owner)
    if row and row.since.partition(".")[0] == gone.partition(".")[0] and row.signature != "name-not-yet":
        page = row.url.replace("python-api-reference", "c-api-reference")
        link = row.url if name.kind not in _CPP else page if page != row.url else ""
        return row.now, link, row.signature in _PRECISION
    where = (
        f"NVIDIA's {'documentation of the call' if name.where == 'docstring' else name.where}"
        if name.said
        else ""
    )
    return name.said, where, False


def _remarked(remark: Remark, highest: str) -> ScanFinding | None:
    """Return what a remark is of a version; None where the place asks for that major."""
    if remark.version:
        if numbers(remark.version)[0] == numbers(highest)[0]:
            return None
        remark = replace(remark, text=f"{remark.text}, and {highest} is asked about")
    kind: Kind = "unread" if remark.text.startswith(("does not parse", "is nested", "cannot")) else "package"
    return ScanFinding(
        kind, remark.path, remark.line, 1, "", remark.text, instead=remark.instead, breaks=False
    )


def runs_on(found: Found, versions: Sequence[str]) -> list[str]:
    """Return the versions that lack nothing that the code uses where they get."""
    uses = {replace(each, path="", line=0, column=0) for each in found if isinstance(each, Use)}
    return [
        v
        for v in versions
        if not any(each.name.lacking(numbers(v)) and each.reached(numbers(v)) for each in uses)
    ]


def reach(found: Found, highest: str) -> list[str]:
    """Return a sentence for each kind of names that is not known of a version."""
    said = []
    for kind in sorted({each.name.kind for each in found if isinstance(each, Use)}):
        versions = interfaces()[kind].versions
        if numbers(versions[-1])[:2] < numbers(highest)[:2]:
            said.append(f"names of {kind} are known up to {versions[-1]}: {highest} may lack more of them")
        elif numbers(highest)[0] not in {numbers(each)[0] for each in versions}:
            said.append(f"names of {kind} are not known of {highest}: it may lack what the next major lacks")
    return said


def precision_advice(findings: Iterable[ScanFinding]) -> list[str]:
    """Return two lines on what 11 wants instead of what the code asks of precision; [] if it asks nothing."""
    asks = any(each.precision and each.breaks and numbers(each.changed) >= _TYPED for each in findings)
    return PRECISION_ADVICE.splitlines() if asks else []


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
        places = [each.path for each in self.findings if each.breaks]
        count = (
            f"{_counted(len(places), 'use')} in {_counted(len({*places}), 'file')}" if places else "nothing"
        )
        guarded = sum(each.guarded for each in self.findings)
        breaks = f"{count} break{'' if len(places) > 1 else 's'}"
        lines = [f"{breaks}; {guarded} more guarded; {_counted(self.files, 'file')} read"]
        return [*lines, *self._runs(), *reach(self.found, self.highest), *precision_advice(self.findings)]

    def _runs(self) -> Iterator[str]:
        """Yield the targets on which the code can run, and on which not, if that was asked."""
        fine, others = (
            " ".join(name for name, runs in self.row.items() if runs is on) for on in (True, False)
        )
        if self.row:
            yield f"runs on: {fine or 'none of the targets'}"
        if others:
            yield f"not on: {others}"


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

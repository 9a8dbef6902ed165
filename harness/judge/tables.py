"""The whole explanation of a log: by signatures, and of lines that none knows by the tables of messages and of parts.

The page has the signatures alone: the tables are the command's, and those of harness.explain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from harness.judge.anatomy import general, speaker, tables, take_apart
from harness.judge.findings import SEE_ABOVE, Explanation, Finding, explained, line_of
from harness.judge.logs import Said, read_log
from harness.judge.messages import Match, known_message, load_groups

#: Signatures that only repeat what the engine says: the parts of the line say more.
_ECHOES = frozenset({"usage-error", "builder-assertion"})
#: Signatures of lines that follow from others: who speaks tells where to look, if the others are not in the log.
_FOLLOWERS = frozenset({"follows-a-failure", "engine-not-loaded"})
#: The findings that are told by the parts of a line alone, of the engine and of its parser.
_BY_PARTS = ("engine-stopped", "parser-stopped")
#: Modules of a traceback that tell who raised; messages before one in which they are looked for.
_MODULES = re.compile(
    r"site-packages/(torch_tensorrt|polygraphy|onnxruntime|tensorrt_llm)\b|(torch/onnx)/", re.ASCII
)
_RAISERS = {
    "torch_tensorrt": "torch-tensorrt",
    "onnxruntime": "ort",
    "tensorrt_llm": "tensorrt-llm",
    "torch/onnx": "torch-onnx",
}
_BEFORE = 40
#: A line that tells of a fault, and one of Python's source, in a traceback.
_FAULT = re.compile(r"[Ee]rror|[Ff]ail|[Cc]annot|[Ii]nvalid")
_SOURCE = ("raise ", "return ", "assert ")
#: Findings of one group that are told one by one; characters of a message in a text; warnings that are looked up.
_MOST_ALIKE, _MOST_SAID, _MOST_WARNINGS = 3, 200, 2000
_ORDER = ("failure", "warning", "harmless")


def explain(log: str | Iterable[str], version: str = "") -> Explanation:
    """Return the explanation of a log, or of a line of one; `version` is TensorRT's, if the log does not name it."""
    said = read_log(re.split(r"\r\n|\n|\r", log) if isinstance(log, str) else log)
    found = explained(said, version)
    findings = [
        _with_parts(said, each) if found.causes else _of_follower(said, each) for each in found.findings
    ]
    known, left = _by_tables(said, found)
    every = sorted([*findings, *known], key=lambda each: _ORDER.index(each.kind))
    return Explanation(tuple(every), left, found.version)


def _with_parts(said: Said, finding: Finding) -> Finding:
    """Return a finding that only echoes the engine with what the parts of its line mean."""
    apart = take_apart(finding.message, said.heads.get(finding.message, ""))
    parts = general(apart) if finding.id in _ECHOES else None
    if parts is None:
        return finding
    cause = parts.cause if apart.condition else f"{finding.cause} {parts.cause}"
    return replace(finding, title=parts.title, cause=cause, advice=parts.advice)


def _of_follower(said: Said, finding: Finding) -> Finding:
    """Return what a line that follows from others means, if no other is in the log and its tool is known."""
    match = _match(said, finding.message) if finding.id in _FOLLOWERS else None
    if match is None or match.meaning.fault or match.meaning.follows:
        return finding
    return _of_message(said, finding.message, match)


def _by_tables(said: Said, found: Explanation) -> tuple[list[Finding], tuple[str, ...]]:
    """Return findings for lines that no signature knows, and the lines that the tables do not know either."""
    told: dict[str, list[Finding]] = {}
    left = dict.fromkeys(text for text in found.unknown if not text.startswith(_SOURCE))
    for text in (*left, *_warnings(said, found)):
        made = _of_line(said, text)
        if made is None:
            continue
        left.pop(text, None)
        same = told.setdefault(made.id, [])
        if len(same) < _MOST_ALIKE and made.cause not in (each.cause for each in same):
            same.append(made)
        else:
            same[0] = replace(same[0], others=same[0].others + 1)
    every = (each for same in told.values() for each in same)
    return [_after(found, each) for each in every], tuple(left)


def _after(found: Explanation, finding: Finding) -> Finding:
    """Return what was told of parts alone as a consequence, if it stands behind a cause that is known."""
    causes = [each.where for each in found.causes]
    if finding.id not in _BY_PARTS or not causes or finding.where < min(causes):
        return finding
    return replace(finding, kind="harmless", advice=SEE_ABOVE)


def _warnings(said: Said, found: Explanation) -> Iterator[str]:
    """Yield the warnings of a log that no finding is of."""
    known = {each.message for each in found.findings}
    warned = (text.strip() for severity, text in said.order if severity == "WARNING")
    yield from islice(dict.fromkeys(text for text in warned if text not in known), _MOST_WARNINGS)


def _who(said: Said, text: str) -> str:
    """Return who says a text: by its own words, else by the modules of the traceback before it."""
    who = speaker(text, said.heads.get(text, ""))
    if who or said.severities.get(text):
        return who
    order = [each.strip() for _, each in said.order]
    at = order.index(text) if text in order else 0
    lines = (each.replace("\\", "/") for each in order[max(0, at - _BEFORE) : at])
    modules = [match[1] or match[2] for each in lines for match in _MODULES.finditer(each)]
    return _RAISERS.get(modules[-1], modules[-1]) if modules else ""


def _match(said: Said, text: str) -> Match | None:
    who = _who(said, text)
    return (
        None
        if who and who not in load_groups().tools
        else known_message(text.replace("NvTensorRTRTX EP", "TensorRT EP"), who)
    )


def _of_line(said: Said, text: str) -> Finding | None:
    match = _match(said, text)
    if match is not None:
        return _of_message(said, text, match)
    if re.search(tables()["died"]["text"], text):
        return _of_death(said, text)
    apart = take_apart(text, said.heads.get(text, ""))
    says = apart.code or apart.condition or _FAULT.search(text)
    parts = general(apart) if says and said.severities.get(text) != "WARNING" else None
    name = _BY_PARTS[apart.speaker == "parser"]
    return _made(said, text, name, parts.title, parts.cause, parts.advice) if parts else None


def _of_message(said: Said, text: str, match: Match) -> Finding:
    tool, meaning = load_groups().tools[match.form.tool], match.meaning
    kind = "warning" if said.severities.get(text) == "WARNING" and match.kind == "failure" else match.kind
    cause = match.filled(meaning.cause)
    cause = (
        f"{cause} {tool} says: {' '.join(text.split())[:_MOST_SAID]}"
        if meaning.fault
        else f"{tool} says so ({meaning.phase}). {cause}"
    )
    name, title, advice = (
        meaning.id or f"{match.form.tool}-says",
        match.filled(meaning.title),
        match.filled(meaning.advice),
    )
    return replace(_made(said, text, name, title, cause, advice), kind=kind, harmless_where=meaning.harmless)


def _of_death(said: Said, text: str) -> Finding | None:
    """Return a finding for a program that died without a word, by the last milestone of the log."""
    died = tables()["died"]
    for milestone in died["milestones"]:
        if any(re.search(milestone["text"], each) for _, each in said.order):
            return _made(
                said, text, "process-died", f"The program died {milestone['when']}", died["cause"], died["do"]
            )
    return None


def _made(said: Said, text: str, name: str, title: str, cause: str, advice: str) -> Finding:  # noqa: PLR0913, PLR0917
    return Finding(name, title, cause, advice, line_of(said, text), "", "", "", "failure", text)

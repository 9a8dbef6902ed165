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
from harness.judge.messages import MatchedMessage, Meaning, groups, known_message

#: Signatures that only repeat what the engine says: the parts of the line say more.
_ECHOES = frozenset({"usage-error", "builder-assertion"})
#: Signatures of lines that follow from others: who speaks tells where to look, if the others are not in the log.
_FOLLOWERS = frozenset({"follows-a-failure", "engine-not-loaded"})
#: A line that tells of a fault.
_FAULT = re.compile(r"[Ee]rror|[Ff]ail|[Cc]annot|[Ii]nvalid|While parsing node")
#: Findings of one group told one by one; characters of a message told; warnings looked up; lines of a traceback.
_MOST_ALIKE, _MOST_SAID, _MOST_WARNINGS, _BEFORE = 3, 200, 2000, 40
_ORDER = ("failure", "warning", "harmless")


def explain(log: str | Iterable[str], version: str = "") -> Explanation:
    """Return the explanation of a log, or of a line of one; `version` is TensorRT's, if the log does not name it."""
    said = read_log(re.split(r"\r\n|\n|\r", log) if isinstance(log, str) else log)
    found = explained(said, version)
    findings = [_told_more(said, each, alone=not found.causes) for each in found.findings]
    known, left = _by_tables(said, found)
    every = sorted([*findings, *known], key=lambda each: _ORDER.index(each.kind))
    return Explanation(tuple(every), left, found.version)


def _told_more(said: Said, finding: Finding, *, alone: bool) -> Finding:
    """Return a finding that only echoes the engine, or that follows from lines not in the log, with what is known."""
    match = _match(said, finding.message) if alone and finding.id in _FOLLOWERS else None
    if match and not (match.meaning.fault or match.meaning.follows):
        return _of_message(said, finding.message, match)
    apart = take_apart(finding.message, said.heads.get(finding.message, ""))
    parts = general(apart) if finding.id in _ECHOES else None
    if parts is None:
        return finding
    cause = parts.cause if apart.condition else f"{finding.cause} {parts.cause}"
    return replace(finding, title=parts.title, cause=cause, advice=parts.advice)


def _by_tables(said: Said, found: Explanation) -> tuple[list[Finding], tuple[str, ...]]:
    """Return findings for lines that no signature knows, and the lines that the tables do not know either."""
    told: dict[str, list[Finding]] = {}
    left = dict.fromkeys(text for text in found.unknown if not re.match(r"(?:raise|return|assert) ", text))
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
    if finding.id.endswith("-stopped") and causes and finding.where >= min(causes):
        return replace(finding, kind="harmless", advice=SEE_ABOVE)
    return finding


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
    raised = "\n".join(order[max(0, at - _BEFORE) : at]).replace("\\", "/")
    places: dict[int, str] = {raised.rfind(place): who for place, who in tables()["modules"].items()}
    return (places | {-1: ""})[max(places)]


def _match(said: Said, text: str) -> MatchedMessage | None:
    who, text = _who(said, text), text.replace("NvTensorRTRTX EP", "TensorRT EP")
    return known_message(text, who) if not who or who in groups()["tools"] else None


def _of_line(said: Said, text: str) -> Finding | None:
    match = _match(said, text)
    if match is not None:
        return _of_message(said, text, match)
    apart = take_apart(text, said.heads.get(text, ""))
    says = apart.code or apart.condition or _FAULT.search(text)
    parts = general(apart) if says and said.severities.get(text) != "WARNING" else None
    return _made(said, text, parts) if parts else _of_death(said, text)


def _of_message(said: Said, text: str, match: MatchedMessage) -> Finding:
    tool, meaning = groups()["tools"][match.form.tool], match.meaning
    kind = meaning.kind or ("failure" if match.form.level == "E" else "warning")
    kind = "warning" if said.severities.get(text) == "WARNING" and kind == "failure" else kind
    cause = f"{tool} says so ({meaning.phase}). {meaning.cause}"
    if meaning.fault:
        cause = f"{meaning.cause} {tool} says: {' '.join(text.split())[:_MOST_SAID]}"
    title, cause, advice = map(match.filled, (meaning.title, cause, meaning.advice))
    return _made(said, text, replace(meaning, title=title, cause=cause, advice=advice, kind=kind))


def _of_death(said: Said, text: str) -> Finding | None:
    """Return a finding for a program that died without a word, by the last milestone of the log."""
    died = tables()["died"]
    lines = [each for _, each in said.order] if re.search(died["text"], text) else []
    reached = (row["when"] for row in died["milestones"] for each in lines if re.search(row["text"], each))
    when = next(reached, "")
    told = Meaning("process-died", f"The program died {when}", died["cause"], died["do"])
    return _made(said, text, told) if when else None


def _made(said: Said, text: str, told: Meaning) -> Finding:
    where, kind = line_of(said, text), told.kind or "failure"
    return Finding(told.id, told.title, told.cause, told.advice, where, told.harmless, "", "", kind, text)

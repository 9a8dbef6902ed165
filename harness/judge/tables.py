# ruff: noqa: E501  (patterns stand on one line)
"""The whole explanation of a log: by signatures, and of lines that none knows by the tables of messages and of parts.

tables/messages.tsv has the words of the open tools, which tools/messages.py cuts out of their sources, and
tables/groups.yaml what they mean. A line of the engine's is taken apart: who speaks, code, source file and function,
interface and method, condition, plugin or not; from that alone follows an answer that is true though general, by
tables/engine.yaml. The page has the signatures alone: the tables are the command's, and those of harness.explain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, filterfalse, islice
from pathlib import Path
from typing import Any, NamedTuple

from harness.document import read_document
from harness.judge.findings import SEE_ABOVE, Explanation, Finding, explained, fits, line_of
from harness.judge.logs import Said, read_log

FOLDER = Path(__file__).with_name("tables")
TABLE = FOLDER / "messages.tsv"
#: What is filled in, in a form.
HOLE = "{}"
#: Words in a row by which a form is looked up; words of one that is looked for whoever speaks; characters looked at.
_RUN, _ENOUGH, _LOOKED_AT = 3, 4, 2000


@dataclass(frozen=True)
class MessageForm:
    """A message as a tool's source has it, {} for what is filled in; `group` is what it means."""

    tool: str
    level: str
    group: str
    versions: str
    source: str
    form: str

    @cached_property
    def pieces(self) -> list[str]:
        """Return the fixed parts of the form."""
        return [" ".join(each.split()) for each in self.form.replace('"', "").split(HOLE) if each.strip()]

    @cached_property
    def length(self) -> int:
        """Return the number of fixed characters."""
        return sum(map(len, self.pieces))

    @property
    def short(self) -> bool:
        """Tell whether it has too few words to be known without its speaker."""
        return len(" ".join(self.pieces).split()) < _ENOUGH


@dataclass(frozen=True)
class Meaning:
    """What a message means; `fault`: the tool's own, `follows`: it has its cause before it."""

    id: str
    title: str
    cause: str
    advice: str
    tool: str = ""
    phase: str = ""
    kind: str = ""
    harmless: str = ""
    follows: bool = False
    fault: bool = False


@dataclass(frozen=True)
class MatchedMessage:
    """A message that is known: its form, its meaning and the values that were filled in."""

    form: MessageForm
    meaning: Meaning
    values: tuple[str, ...]

    def filled(self, text: str) -> str:
        """Return a text with {1}, {2} put in."""
        return re.sub(r"\{(\d)\}", lambda one: dict(enumerate(self.values, 1)).get(int(one[1]), "it"), text)


@lru_cache
def groups() -> dict[str, Any]:
    """Return groups.yaml, which is shipped tested: `tools` by name and `groups`."""
    return dict(read_document(FOLDER / "groups.yaml", start="").data)


@lru_cache
def meanings() -> dict[str, Meaning]:
    """Return the meanings by their ids."""
    own = Meaning.__dataclass_fields__
    return {
        row["id"]: Meaning(**{name: row[name] for name in row if name in own}) for row in groups()["groups"]
    }


@lru_cache
def load_forms() -> tuple[MessageForm, ...]:
    """Return the rows of the table."""
    return tuple(
        MessageForm(*line.split("\t")) for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]
    )


@lru_cache
def _index() -> dict[tuple[str, ...], list[MessageForm]]:
    """Return the forms by a run of words that each message of theirs has; a word beside a hole may go on."""
    index: dict[tuple[str, ...], list[MessageForm]] = {}
    for form in load_forms():
        runs = [part.split(" ")[at > 0 :] for at, part in enumerate(form.form.replace('"', "").split(HOLE))]
        ends = [*([None if run[-1:] == [""] else -1 for run in runs[:-1]]), None]
        whole = [[word for word in run[:end] if word] for run, end in zip(runs, ends, strict=True)]
        best = max(whole, key=lambda run: (min(len(run), _RUN), sum(map(len, run))))
        index.setdefault(tuple(best[:_RUN]), []).append(form)
    return index


def known_message(text: str, speaker: str = "") -> MatchedMessage | None:
    """Return the known message in a text, as it is or in quotes: that with the most words; `speaker` is a tool."""
    words = text[:_LOOKED_AT].replace('"', "").split()
    said = " ".join(words)
    tried = (form for form in _candidates(words) if form.tool == speaker or not (speaker or form.short))
    for form in sorted(tried, key=lambda form: -form.length):
        values = _values(form, said)
        if values is not None:
            return MatchedMessage(form, meanings()[form.group], values)
    return None


def _candidates(words: Sequence[str]) -> Iterator[MessageForm]:
    for size in range(_RUN, 0, -1):
        for at in range(len(words) - size + 1):
            yield from _index().get(tuple(words[at : at + size]), ())


def _values(form: MessageForm, text: str) -> tuple[str, ...] | None:
    """Return what stands between the pieces of a form, None unless all are there in their order."""
    values, at = [], 0
    for piece in form.pieces:
        found = text.find(piece, at)
        first = not at and not form.form.startswith(HOLE)
        if found < 0 or (first and text[found - 1 : found].isalnum()):
            return None
        values += [] if first else [text[at:found]]
        at = found + len(piece)
    return tuple(each.strip(" '\"`.") for each in (*values, text[at:]))


# ---- the parts of a line

_CODE = re.compile(r"Error Code:? (\d{1,2})\b|\AError\[(\d{1,2})\]|\A(\d{1,2}): ")
_PLACE = re.compile(
    r"\[(?P<file>\w+\.(?:cpp|cu|h|cc))::(?P<function>[\w:~<>]{1,200}?)(?:::\d+)?\]|at: [\w./]{0,200}?(?P<old>\w+\.(?:cpp|cu|h))::(?P<method>\w{1,80})::\d+|(?<![\w/.])(?P<plain>\w+\.(?:cpp|cu|h)):\d+"
)
_INTERFACE = re.compile(
    r"\b(?P<interface>I[A-Z]\w{2,60})::(?P<method>[a-z]\w{1,60})\b|\A(?P<free>createInfer\w{1,20})(?=:)|\((?P<said>[sg]et[A-Z]\w{1,60}) given "
)
_CONDITION = re.compile(
    r"condition: ([^\n]{1,300}?)(?:\s*\)?\s*(?: In \w+ at [^\n]*)?\Z|\n)|Assertion ([^\n]{1,300}?) failed|CHECK\(([^\n]{1,300}?)\) failed|: 0 \(([^\n]{1,200})\)\s*\Z"
)
#: The signs of a plugin in a layer's name, a runner or a message.
_PLUGIN = re.compile(r"PluginV\d|PLUGIN_V\d|\bplugin|Plugin\w*::|\w_TRT\b")


@dataclass(frozen=True)
class Anatomy:
    """The parts of a line, each "" where it has none."""

    speaker: str = ""
    code: int = 0
    file: str = ""
    function: str = ""
    interface: str = ""
    method: str = ""
    condition: str = ""
    plugin: bool = False


@lru_cache
def tables() -> dict[str, Any]:
    """Return engine.yaml, which is shipped tested, with its patterns compiled and its rows by name."""
    data: dict[str, Any] = dict(read_document(FOLDER / "engine.yaml", start="").data)
    data["methods"] = {name: row for row in reversed(data["methods"]) for name in row["methods"]}
    data["sources"] = {name: row for row in data["sources"] for name in row["files"]}
    for each in (*data["speakers"], *data["conditions"]):
        each |= {key: re.compile(each.get(key, "(?!)")) for key in ("head", "text", "match")}
    return data


def speaker(text: str, head: str = "") -> str:
    """Return who says a text that stands behind a head, "" if neither tells."""
    text = text[:_LOOKED_AT]
    who = (each for each in tables()["speakers"] if each["head"].search(head) or each["text"].search(text))
    return next((each["name"] for each in who), "")


def take_apart(text: str, head: str = "") -> Anatomy:
    """Return the parts of a line."""
    text = text[:_LOOKED_AT]
    place, of = _PLACE.search(text), _INTERFACE.search(text)
    return Anatomy(
        speaker(text, head),
        int(_captured(_CODE.search(text)) or 0),
        _captured(place, "file", "old", "plain"),
        _captured(place, "function", "method").rpartition("::")[2],
        _captured(of, "interface"),
        _captured(of, "method", "free", "said"),
        _captured(_CONDITION.search(text)).strip(),
        bool(_PLUGIN.search(text)),
    )


def _captured(match: re.Match[str] | None, *names: str) -> str:
    """Return the first that is there of some groups, or of all."""
    every = () if match is None else match.group(*names, 0)[:-1] if names else match.groups()
    return next(filter(None, every), "")


class _Rows(NamedTuple):
    """The rows that the parts of a line lead to, {} for none."""

    method: Mapping[str, str]
    failed: Mapping[str, str]
    source: Mapping[str, str]

    @property
    def own(self) -> Mapping[str, str]:
        """Return the row that tells most."""
        return self.failed or self.method

    @property
    def phase(self) -> str:
        """Return what the program was doing, "" if no row tells."""
        plugin = self.source.get("phase") == "plugin"
        return (self.source if plugin else self.method or self.source).get("phase", "")


def _rows(apart: Anatomy) -> _Rows:
    methods = tables()["methods"]
    names = (f"{apart.interface}.{apart.method}", apart.method, apart.function)
    method: Mapping[str, str] = next((methods[name] for name in names if name in methods), {})
    failed = (row for row in tables()["conditions"] if row["match"].search(apart.condition))
    return _Rows(method, next(failed, {}), tables()["sources"].get(apart.file, {}))


def general(apart: Anatomy) -> Meaning | None:
    """Return what the parts of a line of the engine's mean, None where they say too little."""
    rows, phases = _rows(apart), tables()["phases"]
    if apart.speaker not in ("engine", "parser", "") or not any(rows):
        return None
    own, phase = rows.own, rows.phase
    plugin = phase == "plugin" or (apart.plugin and not rows.method)
    return Meaning(
        "parser-stopped" if apart.speaker == "parser" else "engine-stopped",
        phase=phase,
        title=_title(apart, rows, phase),
        cause=_cause(apart, rows, own.get("means", "")),
        advice=(not plugin and own.get("do")) or phases["plugin" if apart.plugin else phase or "run"]["do"],
    )


def _title(apart: Anatomy, rows: _Rows, phase: str) -> str:
    where = f"{apart.interface}::{apart.method}".strip(":") or (apart.function if rows.method else "")
    stopped = f"TensorRT stopped in {where}" if where and phase != "plugin" else "TensorRT stopped"
    return f"{stopped}, {tables()['phases'][phase]['when']}" if phase else stopped


def _cause(apart: Anatomy, rows: _Rows, means: str) -> str:
    codes = tables()["codes"]
    coded = 0 < apart.code < len(codes) and not rows.own
    said = (
        f"It stopped in {rows.source['part']}." if rows.source and not apart.interface else "",
        means,
        f"The condition that failed: {apart.condition}." if apart.condition else "",
        f"Its code {apart.code} stands for {codes[apart.code]}." if coded else "",
    )
    return " ".join(filter(None, said))


# ---- the explanation

#: Signatures that only repeat what the engine says: the parts of the line say more.
_ECHOES = frozenset({"usage-error", "builder-assertion"})
#: Signatures of lines that follow from others: who speaks tells where to look, if the others are not in the log.
_FOLLOWERS = frozenset({"follows-a-failure", "engine-not-loaded"})
#: How Python says that the module itself lacks a name.
_LACKED = re.compile(r"module '(?:tensorrt|trt)[\w.]{0,40}' has no attribute '(?P<name>\w{1,80})'")
#: A line of source that a traceback shows.
_SOURCE = re.compile(r"(?:raise|return|assert) ")
#: The end of a traceback, a call in it, and the installed package that a file is of.
_RAISED = re.compile(
    r"(?P<kind>(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Za-z_]\w{0,60}(?:Error|Exception|Interrupt|Failed))(?:: |\Z)"
)
#: Calls in Python's own modules tell nothing of who raised.
_FRAME = re.compile(
    r'File "(?!<|[^"]{0,200}/(?:lib/python3[\d.]{1,4}|[Ll]ib)/(?:(?!site-|dist-)\w+/){0,3}\w+\.py")([^"]{1,400})", line \d+, in ([\w<>.]{1,100})'
)
_PACKAGE = re.compile(r"(?:site|dist)-packages/([\w-]{1,80})/|custom_nodes/([\w.-]{1,80})/")
#: A line that tells of a fault.
_FAULT = re.compile(r"[Ee]rror|[Ff]ail|[Cc]annot|[Ii]nvalid|While parsing node")
#: Findings of one group told one by one; characters of a message told; warnings looked up; lines of a traceback.
_MOST_ALIKE, _MOST_SAID, _MOST_WARNINGS, _BEFORE = 3, 200, 2000, 40
_LEAST_SHARE = 0.3
_ORDER = ("failure", "warning", "harmless")


def explain(log: str | Iterable[str], version: str = "") -> Explanation:
    """Return the explanation of a log, or of a line of one; `version` is TensorRT's, if the log does not name it."""
    said = read_log(re.split(r"\r\n|\n|\r", log) if isinstance(log, str) else log)
    found = explained(said, version)
    alone = not found.causes
    findings = [_told_more(said, each, found.version, alone=alone) for each in found.findings]
    known, left = _by_tables(said, found)
    every = sorted([*findings, *known], key=lambda each: _ORDER.index(each.kind))
    return Explanation(tuple(every), left, found.version)


def _told_more(said: Said, finding: Finding, version: str, *, alone: bool) -> Finding:
    """Return a finding that only echoes the engine, or that follows from lines not in the log, with what is known."""
    if name := _LACKED.search(finding.message):
        return _lacked(finding, name, version)
    match = _match(said, finding.message) if alone and finding.id in _FOLLOWERS else None
    if match and not (match.meaning.fault or match.meaning.follows):
        return _of_message(said, finding.message, match)
    apart = take_apart(finding.message, said.heads.get(finding.message, ""))
    parts = general(apart) if finding.id in _ECHOES else None
    if parts is None:
        return finding
    cause = parts.cause if apart.condition else f"{finding.cause} {parts.cause}"
    return replace(finding, title=parts.title, cause=cause, advice=parts.advice)


def _lacked(finding: Finding, name: re.Match[str], version: str) -> Finding:
    """Return what is told of a name that the module lacks, held against the version that the log names."""
    other = tables()["other_module"]
    if not finding.versions.startswith(">="):
        return finding
    if not version:
        title, cause = f"{name['name']} is not in this tensorrt", f"{finding.cause} {other['unless']}"
        return replace(finding, title=title, cause=cause)
    if fits(finding.versions, version):
        return finding
    title = f"{name['name']} is missing, and TensorRT {version} has it"
    return replace(finding, id="other-module", title=title, cause=other["cause"], advice=other["do"])


def _by_tables(said: Said, found: Explanation) -> tuple[list[Finding], tuple[str, ...]]:
    """Return findings for lines that no signature knows, and the lines that the tables do not know either."""
    told: dict[str, list[Finding]] = {}
    left = dict.fromkeys(filterfalse(_SOURCE.match, found.unknown))
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
    return [_after(found, each) for each in chain.from_iterable(told.values())], tuple(left)


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
    raised = "\n".join(_before(said, text)).replace("\\", "/")
    places: dict[int, str] = {raised.rfind(place): who for place, who in tables()["modules"].items()}
    return (places | {-1: ""})[max(places)]


def _before(said: Said, text: str) -> list[str]:
    """Return the lines before a text that may be of its traceback."""
    order = [each.strip() for _, each in said.order]
    at = order.index(text) if text in order else 0
    return order[max(0, at - _BEFORE) : at]


def _match(said: Said, text: str) -> MatchedMessage | None:
    who, text = _who(said, text), text.replace("NvTensorRTRTX EP", "TensorRT EP")
    match = known_message(text, who) if not who or who in groups()["tools"] else None
    # A few words in a long text of nobody known are blamed on no tool.
    stray = match and match.meaning.fault and not who and match.form.length < len(text) * _LEAST_SHARE
    return None if stray else match


def _of_line(said: Said, text: str) -> Finding | None:
    match = _match(said, text)
    if match is not None:
        return _of_message(said, text, match)
    apart = take_apart(text, said.heads.get(text, ""))
    says = apart.code or apart.condition or _FAULT.search(text)
    parts = general(apart) if says and said.severities.get(text) != "WARNING" else None
    return _made(said, text, parts) if parts else _of_death(said, text) or _of_caller(said, text)


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


def _of_caller(said: Said, text: str) -> Finding | None:
    """Return a finding for an exception that a program or a library around TensorRT raised itself."""
    raised = _RAISED.match(text)
    if raised is None:
        return None
    where, package = _last_call(said, text)
    row = next(row for row in tables()["raised"] if re.search(row["match"], raised["kind"]))
    if not (where or row.get("alone")):
        return None
    title = f"{package or 'The program'} itself stopped with {raised['kind'].rpartition('.')[2]}"
    return _made(
        said, text, Meaning(row.get("alone", "caller-stopped"), title, where + row["means"], row["do"])
    )


def _last_call(said: Said, text: str) -> tuple[str, str]:
    """Return the last call of the traceback before a text in words, and the package that it is of; "" for none."""
    frames = [frame for line in _before(said, text) for frame in _FRAME.findall(line.replace("\\", "/"))]
    if not frames:
        return "", ""
    file, function = frames[-1]
    package = _captured(_PACKAGE.search(file))
    of = f" of {package}" if package else ""
    return f"The last call is {function} in {file.rpartition('/')[2]}{of}. ", package


def _made(said: Said, text: str, told: Meaning) -> Finding:
    where, kind = line_of(said, text), told.kind or "failure"
    return Finding(told.id, told.title, told.cause, told.advice, where, told.harmless, "", "", kind, text)

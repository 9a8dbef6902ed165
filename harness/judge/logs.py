# ruff: noqa: E501, RUF001  (patterns and texts stand on one line)
"""A pasted log -> a record of the same words by speaker, as the harness keeps it when it runs a cell itself.

harness/report/static/explain.js does the same in the page; the patterns here are handed to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from harness.judge.complaints import NO_OPERATOR, PARSING, REASON
from harness.record.outcome import Message, Outcome, ParserError

SEVERITIES = {
    **dict.fromkeys(("V", "D", "VERBOSE", "DEBUG", "TRACE"), "VERBOSE"),
    **dict.fromkeys(("I", "INFO", "NOTICE"), "INFO"),
    **dict.fromkeys(("W", "WARN", "WARNING"), "WARNING"),
    **dict.fromkeys(("E", "C", "X", "!", "ERR", "ERROR", "CRITICAL"), "ERROR"),
    **dict.fromkeys(("F", "FATAL", "INTERNAL ERROR", "INTERNAL_ERROR"), "INTERNAL_ERROR"),
}
_WORD = r"(?P<severity>INTERNAL[ _]ERROR|[A-Za-z!][A-Za-z]{0,9})"
_BY = r"(?:TRT-LLM|TensorRT-LLM|TensorRT-RTX|T[Rr][Tt]|TensorRT|tensorrt|trtexec|NVINFER LOG|Torch-TensorRT[^\[\]]{0,60})"
#: The prefixes of a message, one after the other: TensorRT's loggers for C++ and Python, trtexec, Polygraphy, ONNX
#: Runtime, Triton, DeepStream, ROS, Python's logging, a user's logger, and quotations. A captured word that is no
#: severity makes no prefix.
PREFIXES = tuple(
    re.compile(text, re.ASCII)
    for text in (
        r"\A[ \t]*[>*•–-][ \t]+",
        r"\A[ \t]*\d{1,7}:(?=\[)",
        r"\A[ \t]*[\w.-]{1,40} +\|(?= )",
        r"\A[ \t]*(?P<severity>[VIWEF])\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d+ [^\s\]]{1,80}\] ?",
        r"\A[ \t]*\d{1,3}:\d\d:\d\d\.\d+ +\d+ +0x\w+ +" + _WORD + r" +\S{1,40} +\S{1,200}(?= )",
        r"\A[ \t]*\[?(?:\d{1,4}[-/]\d{1,2}[-/]\d{1,4}[-:T, ]{1,3})?\d{1,2}:\d\d:\d\d(?:[.,:]\d{1,9})?Z?,?\w{0,4}(?: +"
        + _WORD
        + r"(?=[ \t\]:]))?[ \t]*\]?",
        r"\A[ \t]*\[(?P<severity>[VIWEF]):onnxruntime:[^\]]{0,200}\]",
        r"\A[ \t]*\[" + _BY + r"(?:[ :|-]{1,3}" + _WORD + r")?\]:?",
        r"\A[ \t]*[\[(][ \t]*" + _WORD + r"[ \t]*[\])]:?",
        r"\A[ \t]*\[\d{6,12}(?:\.\d{1,9})?\]",
        r"\A[ \t]*\[[A-Za-z_][\w./-]{0,60}-\d{1,4}\](?= )",
        r"\A[ \t]*" + _WORD + r"[ \t]*:(?:[\w.]{1,40}:)?(?=\s)",
        r"\A[ \t]*(?:"
        + _WORD
        + r"[ \t]+"
        + _BY
        + r"|"
        + _BY
        + r"[ \t]+(?![Vv]ersion:)[A-Za-z]{4,8}(?=:))[ \t]*:(?=\s)",
    )
)
#: The mark of a quotation alone makes no message of a line.
_QUOTATION = PREFIXES[0]
#: An entry of this project's own logs, which holds no message of the engine's.
OWN_ENTRY = re.compile(
    r"\A\[(?P<kind>stamps|seen|left out|phase|end|missing|parser error|failed|native|harness|inspector|unavailable"
    r"|agent fault|calibration cache)\] ?",
    re.ASCII,
)
#: How ErrorCode of NvOnnxParser.h numbers them: a log has the number, the parser's list the name.
CODES = (
    "SUCCESS",
    "INTERNAL_ERROR",
    "MEM_ALLOC_FAILED",
    "MODEL_DESERIALIZE_FAILED",
    "INVALID_VALUE",
    "INVALID_GRAPH",
    "INVALID_NODE",
    "UNSUPPORTED_GRAPH",
    "UNSUPPORTED_NODE",
    "UNSUPPORTED_NODE_ATTR",
    "UNSUPPORTED_NODE_INPUT",
    "UNSUPPORTED_NODE_DATATYPE",
    "UNSUPPORTED_NODE_DYNAMIC",
    "UNSUPPORTED_NODE_SHAPE",
    "REFIT_FAILED",
)
REFUSED = re.compile(r"In function \w+:\n?\s*\[(?P<code>\d{1,2})\] (?P<text>[\s\S]*)", re.ASCII)
LISTED = re.compile(
    r"\AIn node -?\d+(?: with name: (?P<node>[^\n]*?) and operator: (?P<operator>\S*))? \((?:import(?!"
    + NO_OPERATOR
    + r")(?P<by>[A-Z]\w*)|\w+)\): "
    r"(?P<code>[A-Z_]+): (?P<text>[\s\S]*)",
    re.ASCII,
)
REFUSAL = re.compile(
    r"\A(?P<operator>[A-Z]\w{0,60}): (?P<code>[A-Z]+(?:_[A-Z]+)+): (?P<text>[\s\S]*)", re.ASCII
)
NODE_NAME = re.compile(r"(?:\A|\n)(?:Node name: (?P<plain>[^\n]+)|name: \"(?P<quoted>[^\"]*)\")", re.ASCII)
#: How Python, a C++ compiler, a linker and a command line say that a version lacks a name. A name that is merely
#: mentioned is not missing. `ALONE`: a name that is the only word of its line is asked about.
LACKING = tuple(
    re.compile(text, re.ASCII)
    for text in (
        r"(?:type object |module )?['‘`](?P<owner>[\w.]{1,120})['’`](?: object)? has no attribute ['‘`](?P<name>\w{1,80})",
        r"['‘`](?P<name>\w{1,80})['’`] is not a member of ['‘`](?:class |struct |enum class )?(?P<owner>[\w:]{1,120})['’`]",
        r"['‘`](?:const )?(?:class |struct )?(?P<owner>[\w:]{1,120})(?: const)?['’`] has no member named ['‘`](?P<name>\w{1,80})",
        r"no member named ['‘`](?P<name>\w{1,80})['’`] in (?:namespace )?['‘`](?P<owner>[\w:]{1,120})",
        r"['‘`\"](?P<name>\w{1,80})['’`\"]: is not a member of ['‘`\"](?P<owner>[\w:]{1,120})",
        r"['‘`](?P<name>\w{1,80})['’`] (?:was not declared in this scope|does not name a type|has not been declared)",
        r"cannot import name ['‘`](?P<name>\w{1,80})['’`] from ['‘`](?P<owner>[\w.]{1,120})",
        r"\b(?P<owner>\w{1,80})\.__init__\(\) got an unexpected keyword argument ['‘`](?P<name>\w{1,80})",
        r"(?:[Uu]nknown option|[Uu]nrecognized (?:arguments?|option)|[Nn]o such option)s?: *(?P<option>--\w{1,60})",
    )
)
ALONE = re.compile(
    r"\A\s*(?:(?:tensorrt|trt)\.(?P<member>\w[\w.]{0,80})|(?P<name>[A-Z]\w{0,60}\.\w{1,60}|I[A-Z]\w{0,60}))\s*\Z",
    re.ASCII,
)
#: A message goes on if it announces more, or if the next line is indented or begins the announced part.
ANNOUNCES = re.compile(
    r"(?::|--- Begin node ---|\(|shape inference of|due to exception \[[^\]\n]{0,200}\])\s*\Z", re.ASCII
)
ASKS = re.compile(
    r"(?:In function \w+:|shape inference of|Error is:|due to exception \[[^\]\n]{0,200}\])\s*\Z", re.ASCII
)
FOLLOWS = re.compile(r"\A(?:\s|\[\d{1,2}\] |Error is:)", re.ASCII)
BEGIN = "Begin node ---"
CALIBRATES = re.compile(r"[Cc]alibrat", re.ASCII)
FAILED_PHASE = re.compile(r"\A(?P<phase>\w+) (?:failed|cut short)\Z", re.ASCII)
QUOTED = re.compile(r"\A\s*(?:\"(?!\").+\"|'(?!').+'|`(?!`).+`),?\s*\Z", re.ASCII)
#: One number, hexadecimal or not; begun by a digit in each branch, it takes half the time of `0x[0-9a-fA-F]+|\d+`.
_NUMBERS = re.compile(r"0(?:x[0-9a-fA-F]+|[0-9]*)|[1-9][0-9]*")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
MOST_PREFIXES, MOST_JOINED = 10, 4000
#: Messages that are kept of a flood, and characters of a line: a page or a terminal can show far less.
MOST_MESSAGES, MOST_FORMS, MOST_ALIKE, LONGEST_LINE = 20_000, 50_000, 50, 20_000
DROPPED = 2_000


@dataclass
class Said:
    """All that a log said: the record of it, its names that a version lacks, and the line on which each text begins.

    `order` are its messages as they stand, each once in a row; one without a severity is in the record as the logger's,
    the parser's and the library's own. `missing` are names with the text that says so, `heads` what stood before a text.
    """

    outcome: Outcome
    missing: tuple[tuple[str, str], ...] = ()
    order: tuple[tuple[str, str], ...] = ()
    at: dict[str, int] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)

    @cached_property
    def severities(self) -> dict[str, str]:
        """Return the severity of each message."""
        return {text.strip(): severity for severity, text in self.order}


def prefixed(line: str) -> tuple[str, str, bool]:
    """Return severity and text of a line, and whether it has no logger's prefix."""
    severity, bare = "", True
    text = line.strip().rstrip(",")[1:-1] if QUOTED.search(line) else line
    for _ in range(MOST_PREFIXES):
        match = next(filter(None, (_headed(prefix, text) for prefix in PREFIXES)), None)
        if match is None:
            break
        severity = severity or SEVERITIES.get(_word(match), "")
        bare = bare and match.re is _QUOTATION
        text = text[match.end() :]
    return severity, text.lstrip(), bare or not severity


def _headed(prefix: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = prefix.search(text)
    return match if match and match.end() and _word(match) in ("", *SEVERITIES) else None


def _word(match: re.Match[str]) -> str:
    return (match.groupdict().get("severity") or "").upper()


def lacked_name(text: str) -> str:
    """Return the name that a text calls missing, with its owner if it has one: `BuilderFlag.FP16`, or ""."""
    for pattern in LACKING:
        match = pattern.search(text)
        if match:
            found = match.groupdict()
            owner = re.split(r"[.:]+", found.get("owner") or "")[-1]
            name = found.get("option") or re.sub(r"\Ak(?=[A-Z])", "", found["name"])
            return f"{owner}.{name}" if owner else name
    return ""


class _Reader:
    """Sorts one message after the other into the parts of a record."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.order: list[tuple[str, str]] = []
        self.refusals: list[ParserError] = []
        self.native: list[str] = []
        self.errors: list[str] = []
        self.missing: list[tuple[str, str]] = []
        self.at: dict[str, int] = {}
        self.heads: dict[str, str] = {}
        self.phase = self.operator = self.node = ""
        self._open: tuple[str, str, str, int] | None = None
        self._forms: dict[str, int] = {}
        self._quiet: set[str] = set()
        self._number = 0

    def line(self, line: str) -> None:
        self._number += 1
        if not line and self._open is None:
            return
        line = (_COLOURS.sub("", line) if "\x1b" in line else line)[:LONGEST_LINE]
        form = _NUMBERS.sub("#", line)
        if form in self._quiet:
            self._close()
            return
        kind, severity, text = _kind_of(line)
        if kind == "loose" and self._goes_on(line):
            return
        self._close()
        self._open = kind, severity, text, self._number
        if severity not in ("VERBOSE", "INFO"):
            if len(self.heads) < MOST_MESSAGES and line.endswith(text):
                self.heads.setdefault(text.strip(), line[: len(line) - len(text)])
        elif kind == "message" and len(self._quiet) < MOST_FORMS and not REASON.search(text):
            self._quiet.add(form)

    def _goes_on(self, line: str) -> bool:
        """Take a line that goes on with the text before it, and tell whether it does."""
        if self._open is None or not _goes_on(self._open[0], self._open[2], line):
            return False
        kind, severity, begun, number = self._open
        self._open = kind, severity, f"{begun}\n{line}", number
        return True

    def _close(self) -> None:
        if self._open is None:
            return
        kind, severity, text, number = self._open
        self._open = None
        if not re.search(r"\w", text, re.ASCII):
            return
        if kind in ("message", "loose"):
            self._message("" if kind == "loose" else severity, text, number)
        else:
            self.at.setdefault(text, number)
            self._own(kind, text)

    def _own(self, kind: str, text: str) -> None:
        """Take an entry of this project's own logs."""
        if kind == "missing":
            self.missing.append((text.strip(), text))
        elif kind == "parser error":
            self.refusals.append(_of_record(text))
        elif kind in ("native", "failed"):
            (self.native if kind == "native" else self.errors).append(text)
        elif kind == "end" and not text.startswith("finished"):
            self.errors.append(re.sub(r"\A\S+ ", "", text))
        elif kind == "phase" and (failed := FAILED_PHASE.search(text)):
            self.phase = failed["phase"]

    def _flood(self, severity: str, text: str) -> bool:
        """Tell whether a text only repeats others: a verbose log says the same of each of a thousand tactics."""
        form = _NUMBERS.sub("#", text)
        many = self._forms.get(form, 0)
        if many or len(self._forms) < MOST_FORMS:
            self._forms[form] = many + 1
        quiet = severity in ("VERBOSE", "INFO") and not REASON.search(text)
        return many >= (1 if quiet else MOST_ALIKE)

    def _message(self, severity: str, text: str, number: int) -> None:
        if self._flood(severity, text):
            return
        self.at.setdefault(text, number)
        if len(self.order) >= MOST_MESSAGES:
            # The cause stands at the end of a log, and the versions at its beginning.
            middle = slice(MOST_MESSAGES // 2, MOST_MESSAGES // 2 + DROPPED)
            for _, dropped in self.order[middle]:
                self.at.pop(dropped, None)
            del self.order[middle]
            del self.messages[middle]
            del self.native[middle]
        self.order.append((severity, text))
        if severity != "VERBOSE":
            self.messages.append(Message(severity or "ERROR", text))
        if not severity:
            # It may be the logger's, the parser's or the library's own: it is tried as each.
            self.messages.append(Message("WARNING", text))
            self.native.append(text)
        name = "" if severity in ("VERBOSE", "INFO") else lacked_name(text)
        alone = None if severity or name else ALONE.search(text)
        name = alone["member"] or alone["name"] if alone else name
        if name:
            self.missing.append((name, text))
        self._refusal(text)

    def _refusal(self, text: str) -> None:
        if parsing := PARSING.search(text):
            self.operator, self.node = parsing["operator"], ""
        if self.operator and BEGIN in text and (named := NODE_NAME.search(text)):
            self.node = named["plain"] or named["quoted"] or ""
        if found := REFUSED.search(text):
            code = dict(enumerate(CODES)).get(int(found["code"]), "")
            self.refusals.append(ParserError(found["text"], code, self.node, self.operator))
        elif found := LISTED.search(text.strip()) or REFUSAL.search(text.strip()):
            said = found.groupdict()
            operator, node = said["operator"] or said.get("by") or "", said.get("node") or ""
            self.refusals.append(ParserError(said["text"], said["code"], node, operator))

    def end(self) -> Said:
        self._close()
        if not self.phase and any(CALIBRATES.search(each.text) for each in self.messages):
            self.phase = "calibrate"
        outcome = Outcome(
            *("", "", "", "", "done"),
            failed_phase=self.phase or None,
            messages=tuple(self.messages),
            parser_errors=tuple(self.refusals),
            native_output="\n".join(self.native),
            error="\n".join(self.errors),
        )
        return Said(outcome, tuple(self.missing), tuple(self.order), self.at, self.heads)


def read_log(lines: Iterable[str]) -> Said:
    """Return all that the lines of a log say; a flood is read to its end, and its first messages are kept."""
    reader = _Reader()
    for line in lines:
        reader.line(line)
    return reader.end()


def _kind_of(line: str) -> tuple[str, str, str]:
    """Return the kind of a line, its severity and its text: of an entry of our own, a message, or a line without a head."""
    if own := OWN_ENTRY.search(line):
        return own["kind"], "", line[own.end() :]
    severity, text, bare = prefixed(line)
    return "loose" if bare else "message", severity, text


def _goes_on(kind: str, text: str, line: str) -> bool:
    if kind == "loose":
        # Below a line without a head only an announced text continues it.
        return bool(ASKS.search(text[-300:]) or line.startswith("Error is:"))
    return bool(
        FOLLOWS.search(line)
        or ANNOUNCES.search(text[-300:])
        or BEGIN in text[:80]
        or (len(text) < MOST_JOINED and text.count("(") > text.count(")"))
    )


def _of_record(text: str) -> ParserError:
    def value(name: str) -> str:
        match = re.search(rf"'{name}': (?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")", text)
        said = (match[1] if match[1] is not None else match[2]) if match else ""
        return re.sub(r"\\(.)", lambda one: "\n" if one[1] == "n" else one[1], said)

    return ParserError(value("text"), value("code"), value("node"), value("operator"))

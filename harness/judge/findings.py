# ruff: noqa: E501  (patterns and texts stand on one line)
"""Explains a log: every known cause in it, then warnings and harmless messages, then the unknown lines.

harness/report/static/explain.js marks the same lines in the page, and names the same entries.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from harness.judge.complaints import INPUT, MODEL
from harness.judge.diagnosis import Hit, Texts, diagnosis_of, hits, searched
from harness.judge.logs import Said, read_log
from harness.judge.signatures import Signature, load_signatures
from harness.layers.names import taken_apart
from harness.text import clip

#: The version of TensorRT in a log: in words, in trtexec's banner, or as the number of a library.
VERSION = re.compile(
    r"TensorRT(?:[ -](?:for[ -])?RTX)?(?: [Vv]ersion)?[ :=-]{1,3}v?(?P<said>\d{1,2}\.\d{1,3}(?:\.\d{1,3}){0,2})"
    r"|\[TensorRT v(?P<banner>\d{4,6})\]"
    r"|libnvinfer\w{0,40}\.so\.(?P<library>\d{1,2}\.\d{1,2}\.\d{1,2})",
    re.ASCII,
)
#: A line without a severity that looks like an error all the same.
SEVERE = re.compile(
    r"\b[Ee]rror\b|\bERROR\b|[a-z]Error\b|[Ee]xception\b|\bfailed\b|\bFAILED\b|\b[Aa]ssertion\b|undefined (?:symbol|reference)"
    r"|cannot open shared|\bcore dumped\b|[Ss]egmentation fault",
    re.ASCII,
)
#: A line that only gives the place of a message.
CONTEXT = re.compile(
    r"\A(?:[\w./]+(?::\d+)?:? ?)?(?:While parsing node number \d+ \[[^\n]*:|--- (?:Begin|End) node ---[\s\S]*|Traceback \(most recent call last\):)\s*\Z",
    re.ASCII,
)
#: The parser's words about a node beside the complaint itself.
NODE_ALONE = re.compile(
    r"\A(?:[^\n]*(?:\n\s*)?(?:\[\d{1,2}\]|INVALID_NODE:) ?)?Invalid Node - (?P<node>[^\n]+)\n?\Z", re.ASCII
)
#: Advice that the version has already.
UPGRADE = re.compile(
    r"Upgrade to (?P<version>\d+(?:\.\d+)*) or later(?:\. ?(?:Until then )?|, or )", re.ASCII
)
_CODE = re.compile(r"\A\[\d{1,2}\] ", re.ASCII)
_COMPARISON = re.compile(r"(?P<how>[<>=]{1,2})(?P<version>[\d.]+)", re.ASCII)
MOST_OTHERS, MOST_UNKNOWN, MOST_SAME = 1000, 40, 12
LAST_WORD = 300
#: The advice for a message that only follows from another.
SEE_ABOVE = "See the cause above."


@dataclass(frozen=True)
class Finding:
    """A known text in a log, in the words of its signature; `where` is the line, `others` count further lines of it.

    kind: "failure", "warning" or "harmless".
    parts: the nodes of the named layer, if it is a fused one.
    """

    id: str
    title: str
    cause: str
    advice: str
    where: int
    node: str
    operator: str
    versions: str
    kind: str
    message: str
    harmless_where: str = ""
    links: tuple[str, ...] = ()
    others: int = 0
    parts: tuple[str, ...] = ()

    @property
    def harmless(self) -> bool:
        """Tell whether it is no failure, and no cause of one."""
        return self.kind != "failure"


@dataclass(frozen=True)
class Explanation:
    """The findings in a log, causes first, and the lines that look severe and that no signature knows."""

    findings: tuple[Finding, ...]
    unknown: tuple[str, ...]
    version: str = ""

    @property
    def causes(self) -> tuple[Finding, ...]:
        """Return the findings that are failures."""
        return tuple(each for each in self.findings if not each.harmless)


def explain(log: str | Iterable[str], version: str = "") -> Explanation:
    """Return the explanation by signatures alone, as the page has it; tables.py adds what the lines' own words say."""
    return explained(read_log(re.split(r"\r\n|\n|\r", log) if isinstance(log, str) else log), version)


def explained(said: Said, version: str = "") -> Explanation:
    """Return the explanation of a log that was read; `version` is TensorRT's, if the log does not name it."""
    texts = searched(said.outcome, missing=said.missing, order=[text for _, text in said.order])
    version = version or version_in(text for _, text in said.order)
    found, told = _found(said, texts, version)
    return Explanation(tuple(found), _unknown(said, told, found), version)


def version_in(texts: Iterable[str]) -> str:
    """Return the version of TensorRT that the first of the texts names, or ""."""
    for text in texts:
        match = VERSION.search(text)
        if match and match["banner"]:
            digits = match["banner"]
            # 8601 is 8.6.1, 100300 is 10.3.0.
            cuts = (1, 2) if len(digits) == len("8601") else (-4, -2)
            return ".".join(
                str(int(part)) for part in (digits[: cuts[0]], digits[cuts[0] : cuts[1]], digits[cuts[1] :])
            )
        if match:
            return match["said"] or match["library"]
    return ""


def fits(versions: str, version: str) -> bool:
    """Tell whether a version is one of `versions`, comparisons joined by commas; one that is not known is."""
    own = _numbers(version)
    for how, bound in _COMPARISON.findall(versions) if version else ():
        other = _numbers(bound)
        cut = own[: len(other)]
        if not {">=": cut >= other, "<": cut < other, "<=": cut <= other, ">": cut > other}.get(
            how, cut == other
        ):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def told_at(signature: Signature) -> int:
    """Return the rank of a signature's findings: failures, warnings, harmless ones."""
    return ("failure", "warning", "harmless").index(signature.kind)


def _found(said: Said, texts: Texts, version: str) -> tuple[list[Finding], set[str]]:
    """Return a finding for each signature, and for each name; a text that an earlier one explains is not told again."""
    found: list[Finding] = []
    explained: set[str] = set()
    told: set[str] = set()
    for signature in sorted(load_signatures(), key=told_at):
        if not _speaks(signature, said, version):
            continue
        # A finding for each name that is missing, one for all else that a signature knows.
        first: dict[str, list[Hit]] = {}
        own: set[str] = set()
        for hit in hits(signature, texts):
            told.update((hit.text, hit.message))
            new = explained.isdisjoint((hit.text, hit.message)) and hit.message not in own
            if new and len(own) < MOST_OTHERS:
                own.update((hit.text, hit.message))
                first.setdefault(hit.groups.get("name", "") if hit.where == "names" else "", []).append(hit)
        caused, same = not all(each.harmless for each in found), list(first.values())
        found += [_finding(said, signature, every, version, caused=caused) for every in same[:MOST_SAME]]
        for hit in chain.from_iterable(same):
            lines = (hit.text, hit.message, *hit.text.split("\n"), *hit.message.split("\n"))
            # The parser's list has the same line without its code.
            explained.update(lines, (_CODE.sub("", line) for line in lines))
    return found, told


def _speaks(signature: Signature, said: Said, version: str) -> bool:
    """Tell whether a signature is about the phase and the version of a log."""
    phased = signature.phases and not signature.innocent
    fitting = not phased or said.outcome.failed_phase in signature.phases
    return fitting and fits(signature.versions, version)


def _finding(said: Said, signature: Signature, every: list[Hit], version: str, *, caused: bool) -> Finding:
    hit = every[0]
    # A warning belongs to no error, and an error to no other one, except the library's prints past the logger.
    led = hit.where == "native" or bool(hit.groups.get("op", signature.operator))
    made = diagnosis_of(signature, hit, said.outcome, at_error=led and signature.kind == "failure")
    lines = {line_of(said, one.message) for one in every} - {0}
    follows = signature.innocent and not signature.harmless
    reason = hit.groups.get("reason", "")
    last = (
        f" The engine's last word: {clip(' '.join(reason.split()), LAST_WORD)}"
        if reason and "{reason}" not in signature.cause
        else ""
    )
    return Finding(
        signature.id,
        made.title,
        made.cause + last,
        SEE_ABOVE if follows and caused else advised(made.advice, version),
        line_of(said, hit.message),
        made.node,
        made.operator,
        _versions(signature, hit, version),
        signature.kind,
        hit.message.strip(),
        made.harmless,
        signature.links,
        max(len(lines) - 1, 0),
        taken_apart(made.node) if made.operator not in (INPUT, MODEL) else (),
    )


def advised(advice: str, version: str) -> str:
    """Return an advice without an upgrade that the version has already; an advice of an upgrade alone stays."""
    match = UPGRADE.search(advice) if version else None
    if match is None or not fits(f">={match['version']}", version):
        return advice
    rest = advice[match.end() :]
    left = advice[: match.start()] + rest[:1].upper() + rest[1:]
    return left.strip() or advice


def _versions(signature: Signature, hit: Hit, version: str) -> str:
    if hit.where == "names":
        return f"{'<' if signature.not_yet else '>='}{hit.groups['since']}"
    if signature.versions:
        return signature.versions
    reported = " or ".join(
        dict.fromkeys(
            each.versions for each in signature.reported if each.versions and fits(each.versions, version)
        )
    )
    return f"reported of {reported}" if reported and not version else reported


def line_of(said: Said, text: str) -> int:
    """Return the line on which a text begins; 0 if it stands on no line verbatim."""
    for part in (text.strip(), text.strip().partition("\n")[0]):
        line = said.at.get(part) or next((line for whole, line in said.at.items() if part in whole), 0)
        if line:
            return line
    return 0


def _unknown(said: Said, told: set[str], found: list[Finding]) -> tuple[str, ...]:
    """Return the severe lines that no signature knows; in a log without any finding, every line that may be one."""
    severe = [text for severity, text in said.order if _is_severe(severity, text)]
    listed = (each.text for each in said.outcome.parser_errors)
    severe += [text for text in listed if not any(text in each for each in severe)]
    if not (found or severe):
        severe = [text for severity, text in said.order if severity != "VERBOSE"]
    known = list(filter(None, (text.strip() for text in told)))
    nodes = {each.node for each in found} - {""}
    left = dict.fromkeys(text.strip() for text in severe)
    return tuple(text for text in left if not (_is_told(text, known) or _only_names(text, nodes)))[
        :MOST_UNKNOWN
    ]


def _is_told(text: str, known: Sequence[str]) -> bool:
    return any(one in text or text in one for one in known)


def _is_severe(severity: str, text: str) -> bool:
    loud = severity in ("ERROR", "INTERNAL_ERROR") or (not severity and SEVERE.search(text))
    return bool(loud) and not CONTEXT.search(text)


def _only_names(text: str, nodes: Collection[str]) -> bool:
    """Tell whether a text is the parser's word that one of some nodes is invalid."""
    alone = NODE_ALONE.search(text)
    return alone is not None and alone["node"].strip() in nodes

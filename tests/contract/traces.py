"""The calls of a job as the probe noted them, and the pages of them that are kept in `data/traces`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: The jobs whose calls are kept for review, by the names of their pages.
KEPT = {
    "build-graph-typing": "feature precision of the graph (Q/DQ, Cast)",
    "build-weak-int8-calibrator-profile": "feature optimisation profile and calibrator",
    "build-strong-typing": "feature strongly typed network",
    "build-parser-flag-set": "feature NATIVE_INSTANCENORM set",
    "build-parser-flag-cleared": "feature NATIVE_INSTANCENORM cleared",
    "build-marked-outputs": "feature tensors marked as output",
    "build-workspace": "feature workspace limit",
    "build-other-gpu": "build for 8.9",
    "build-plugin-in-c++": "plugin in C++",
    "run": "run, two inputs and two outputs",
    "preflight": "preflight",
}
#: The path of the pages from the top of the repository.
FOLDER = "tests/contract/data/traces"
_HEAD = """# The calls of the contract test's job "{job}", once for all versions that make the same.
# Written by `make docs` and compared by a test. To review a change of it is to review the adapter.
"""


@dataclass(frozen=True)
class Call:
    """One call: its full name, the thing it is of, and its arguments and result by their meaning."""

    depth: int
    on: str
    call: str
    arguments: tuple[str, ...]
    result: str

    @property
    def line(self) -> str:
        """Return the call as it is kept."""
        name = f"{self.on}.{self.call.rpartition('.')[2]}" if self.on else self.call
        given = ", ".join(self.arguments)
        text = f"{name} {given}" if name.endswith(" =") else f"{name}({given})"
        return "  " * self.depth + text + (f" -> {self.result}" if self.result else "")


def calls(result: Mapping[str, Any]) -> list[Call]:
    """Return the calls of one job of a report."""
    return [Call(**{**event, "arguments": tuple(event["arguments"])}) for event in result["trace"]]


def lines(trace: Sequence[Call]) -> list[str]:
    """Return a trace, one call a line, and what comes again and again once."""
    return _folded([call.line for call in trace])


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _folded(found: list[str], longest: int = 8) -> list[str]:
    """Return lines with a block that follows on itself written once: how often depends on the clock."""
    folded: list[str] = []
    at = 0
    while at < len(found):
        for length in range(1, longest + 1):
            block, end = found[at : at + length], at + length
            while found[end : end + length] == block and min(map(_depth, block)) == _depth(block[0]):
                end += length
            if end > at + length:
                indent = " " * _depth(block[0])
                folded += [f"{indent}again and again:", *(f"  {line}" for line in block)]
                at = end
                break
        else:
            folded.append(found[at])
            at += 1
    return folded


def pages(reports: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Return the text of every page by its place in the repository; `reports` are the probe's, by version."""
    return {f"{FOLDER}/{page}.txt": _page(job, reports) for page, job in KEPT.items()}


def _page(job: str, reports: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    versions: dict[str, list[str]] = {}
    for version, report in reports:
        result = report["results"][job]
        said = f"ends as {result['end']}: {result['detail']}".rstrip(": ")
        versions.setdefault("\n".join([*lines(calls(result)), said]), []).append(version)
    sections = [f"\n== {', '.join(names)}\n{text}\n" for text, names in versions.items()]
    return _HEAD.format(job=job) + "".join(sections)

"""The summary in Markdown, for CI job pages and pull requests: counts and failures by cause, bounded, worst first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from harness.compare.versions import Change
from harness.history import CellHistory
from harness.history.changes import LatencyHistory
from harness.known.cell import shared_advice
from harness.known.model import Advice, Known, OnGpu
from harness.report.labels import BUCKETS, MARKS, bucket, day
from harness.report.model import Results
from harness.text import capital, clip, listed, milliseconds, visible
from harness.words import GOOD, UNJUDGED, Basis, Class

#: GitHub refuses a comment of more than 65 536 characters; a job summary may have 1 MiB.
LIMIT_BYTES = 60_000
_PER_LIST = 40
#: Variants named behind a change.
_PER_GROUP = 12
_PER_LINE = 400
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#|~&!])")
_LISTED = ("regressed", "new", "fixed", "new_ok", "infra")


def summary(results: Results) -> str:
    """Return the summary: the same text for the same results, at most `LIMIT_BYTES` of UTF-8."""
    listed = [_cells(results, key) for key in _LISTED]
    sections = [_head(results), *listed, _last_night(results), _changes(results), _causes(results)]
    text = ""
    for section in filter(None, sections):
        for line in section:
            if len((text + line).encode()) > LIMIT_BYTES - 100:
                return text + "\n*Cut here; the rest is in index.html and results.json.*\n"
            text += line + "\n"
        text += "\n"
    return text


def _head(results: Results) -> list[str]:
    tally = counts(results)
    shown = {key: number for key, number in tally.items() if number or key in ("regressed", "new", "fixed")}
    return [
        "# TensorRT compatibility matrix",
        "",
        _verdict(tally),
        "",
        *([_plain(unrun), ""] if (unrun := nobody_ran(results)) else []),
        "| Verdict | Cells |",
        "| --- | ---: |",
        *(f"| {BUCKETS[key][0]} | {number} |" for key, number in shown.items()),
        f"| **All** | **{len(results.cells)}** |",
    ]


def _verdict(tally: dict[str, int]) -> str:
    bad = [f"**{BUCKETS[key][0]}: {tally[key]}.**" for key in ("regressed", "new") if tally[key]]
    return " ".join(bad) if bad else "**No regression and no new failure.**"


def _cells(results: Results, key: str) -> list[str]:
    cells = [cell for cell in results.cells if bucket(cell) == key]
    return _section(BUCKETS[key][0], [_cell(cell) for cell in cells])


def _cell(cell: Known) -> str:
    said = f"{MARKS[cell.cls].name.lower()}. {_plain(capital(cell.reason))}"
    differing = disagreement(cell.by_gpu)
    gpus = f" GPUs disagree: {_plain(differing)}." if differing else ""
    return f"- {_code(cell.id)}: {said}{gpus}{_advice(cell)}"


def _advice(cell: Known) -> str:
    return f" **{_plain(cell.diagnosis.title)}.** {_plain(cell.diagnosis.advice)}" if cell.diagnosis else ""


def _last_night(results: Results) -> list[str]:
    """Return the changes within a day of the last run: each target of a night is a run of its own."""
    if not results.runs:
        return []
    since = _day_before(results.runs[-1].when)
    return _section(
        "Changed in the last 24 hours of runs",
        [
            f"- {_code(cell.id)}: {NEWS[entry.kind].lower()}. {_plain(text)}"
            for entry in news(results)
            if entry.when > since
            for cell, text in entry.cells
        ],
    )


def _day_before(when: str) -> str:
    try:
        return f"{date.fromisoformat(when[:10]) - timedelta(days=1)}{when[10:]}"
    except (ValueError, OverflowError):
        # Somebody else's record may hold any text; nothing is later than what is no time.
        return when


def _changes(results: Results) -> list[str]:
    """Return the changes between neighbouring versions, each once with all its variants."""
    found: dict[tuple[str, str, str, str], list[Change]] = {}
    for change in results.changes:
        found.setdefault((change.series, change.versions, change.kind, change.text), []).append(change)
    lines = [
        f"- **{_plain(f'{series} {versions}')}**, {kind}: {_plain(text)}: {_names(changes)}"
        for (series, versions, kind, text), changes in sorted(found.items(), key=_rank)
    ]
    return _section("Changed between versions", lines, len(results.changes))


def _rank(entry: tuple[tuple[str, str, str, str], list[Change]]) -> tuple[bool, bool, int]:
    """Order changes: results before precision, worse before better, the most variants first."""
    (_, _, kind, _), changes = entry
    return kind != "result", changes[0].better is not False, -len(changes)


def _names(changes: Sequence[Change]) -> str:
    named = ", ".join(_code(f"{change.case}.{change.variant}") for change in changes[:_PER_GROUP])
    return named + (f" and {len(changes) - _PER_GROUP} more" if len(changes) > _PER_GROUP else "")


def _causes(results: Results) -> list[str]:
    return _section(
        "Failures by cause",
        [
            f"- {len(cluster.cells)} of {_plain(cluster.title)}: "
            + _plain(", ".join(sorted({cell.target for cell in cluster.cells})))
            for cluster in clusters(results)
        ],
    )


def _section(title: str, lines: Sequence[str], count: int | None = None) -> list[str]:
    if not lines:
        return []
    more = [f"- and {len(lines) - _PER_LIST} more"] if len(lines) > _PER_LIST else []
    return [f"## {title} ({len(lines) if count is None else count})", "", *lines[:_PER_LIST], *more]


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, on one line, and in which nobody is mentioned."""
    flat = clip(" ".join(visible(text).split()), _PER_LINE)
    return _MARKUP.sub(r"\\\1", flat).replace("@", "@\u2060")


def _code(text: str) -> str:
    return "`" + clip(" ".join(visible(text).split()), _PER_LINE).replace("`", "'") + "`"


def counts(results: Results) -> dict[str, int]:
    """Return the number of cells by bucket, in the buckets' order; they add up to the number of cells."""
    found = Counter(bucket(cell) for cell in results.cells)
    return {key: found[key] for key in BUCKETS}


def nobody_ran(results: Results) -> str:
    """Name the families without a measured target, and count the claims about them; "" where there is none."""
    ran = {cell.target for cell in results.cells if cell.basis is Basis.MEASURED}
    families: dict[str, set[str]] = {}
    for target in results.targets:
        families.setdefault(target.family, set()).add(target.id)
    unrun = {family: ids for family, ids in families.items() if not ids & ran}
    ids = {target for every in unrun.values() for target in every}
    reports = {
        (cell.case, cell.variant, cell.claims[0])
        for cell in results.cells
        if cell.target in ids and cell.basis is Basis.REPORTED
    }
    return (
        f"Nobody has run {listed(list(unrun))} yet; claims reported of them: {len(reports)}." if unrun else ""
    )


@dataclass(frozen=True)
class Cluster:
    """Failures of one cause: a diagnosis, or a class where no diagnosis fits.

    `advice` is that of the first cell, None where no diagnosis fits: its texts may name that cell's nodes.
    """

    title: str
    advice: Advice | None
    cells: tuple[Known, ...]


def clusters(results: Results) -> tuple[Cluster, ...]:
    """Return the measured failures grouped by diagnosis, the largest group first."""
    return cluster(cell for cell in results.cells if cell.measured and cell.cls not in GOOD)


def cluster(cells: Iterable[Known]) -> tuple[Cluster, ...]:
    """Return cells grouped by diagnosis or else by class, diagnosed ones first, then the largest group."""
    groups: dict[str, list[Known]] = {}
    for cell in cells:
        groups.setdefault(cell.signature or f"\0{cell.cls}", []).append(cell)
    made = [_cluster(found) for _, found in sorted(groups.items())]
    return tuple(sorted(made, key=lambda made: (made.advice is None, -len(made.cells), made.title)))


def _cluster(cells: list[Known]) -> Cluster:
    first = cells[0]
    if first.diagnosis is None:
        name = MARKS[first.cls].name
        return Cluster(name if first.cls in GOOD else f"{name}, no known signature", None, tuple(cells))
    shared = shared_advice([cell.diagnosis for cell in cells if cell.diagnosis])
    return Cluster(shared.title, shared, tuple(cells))


def disagreement(results: Sequence[OnGpu]) -> str:
    """Return how GPUs disagree, in words; "" where all that was judged ended alike, save that some only built."""
    silent = UNJUDGED | {Class.NEEDS_GPU_TO_BUILD}
    judged = [(name, each) for name, each in named(results) if each.cls not in silent]
    ends = {Class.OK if each.cls in GOOD else (each.cls, each.signature) for _, each in judged}
    told = "; ".join(f"{MARKS[each.cls].name.lower()} on {name}" for name, each in judged)
    return told if len(ends) > 1 else ""


def named(results: Sequence[OnGpu]) -> list[tuple[str, OnGpu]]:
    """Return each result with its GPU for readers: the product, and the driver where a product is there twice."""
    products = [each.gpu for each in results]
    return [
        (f"{each.gpu}, driver {each.driver}" if products.count(each.gpu) > 1 else each.gpu or "no GPU", each)
        for each in results
    ]


#: What can be said of a cell's past in a word, for the filter; those that are news, worst first.
NEWS = {
    "new_failure": "Began to fail",
    "flaky": "Flaky",
    "slower": "Slower",
    "changed": "Changed",
    "fixed": "Stopped failing",
    "faster": "Faster",
}
_STACK = {
    "engine": "engine version",
    "image": "image or packages",
    "device": "device",
    "driver": "driver",
    "harness": "harness version",
    "compute_capability": "compute capability",
}


@dataclass(frozen=True)
class News:
    """A change from one run to the next: since when, one of `NEWS`, and the cells, each with a sentence."""

    when: str
    kind: str
    cells: tuple[tuple[Known, str], ...]


def news(results: Results) -> tuple[News, ...]:
    """Return the changes from run to run, the latest first; cells that changed alike in one run stand together."""
    found: dict[tuple[str, str], list[tuple[Known, str]]] = {}
    for cell in results.cells:
        for when, kind, text in _news(cell):
            found.setdefault((when, kind), []).append((cell, text))
    order = list(NEWS)
    made = [News(when, kind, tuple(cells)) for (when, kind), cells in found.items()]
    made.sort(key=lambda entry: order.index(entry.kind))
    return tuple(sorted(made, key=lambda entry: entry.when, reverse=True))


def _news(cell: Known) -> Iterable[tuple[str, str, str]]:
    past = cell.past
    if past is None:
        return
    if past.event in NEWS:
        said = (_class(past, _last(cell, past)), *(_stack(past) if past.with_stack else ()))
        yield past.flaky_since or past.since, past.event, " ".join(said)
    if _latency_change(past):
        yield cell.when, _latency_change(past), _latency(past.latency)[0]


def _last(cell: Known, past: CellHistory) -> Class:
    """Return the class that the past ends with; a cell that was not run or judged this time shows another."""
    own = [cls for number, cls in past.strip if number not in past.elsewhere]
    return own[-1] if own and not cell.measured else cell.cls


def _class(past: CellHistory, cls: Class) -> str:
    now, since = MARKS[cls].name, moment(past.since)
    was = MARKS[past.before].name.lower() if past.before else ""
    if past.event == "flaky":
        seen = " and ".join(MARKS[each].name.lower() for each in past.flaky)
        since = f" since {moment(past.flaky_since)}" if past.flaky_since else ""
        return f"Flaky{since}: {seen} on the same stack; nothing that is recorded tells these runs apart."
    told = {
        "new_failure": "worked until then",
        "fixed": "failed until then",
        "changed": "otherwise until then",
    }
    return f"{now} since {since}; {told[past.event]} ({was})."


def _stack(past: CellHistory) -> list[str]:
    if past.stack_since is None:
        return []
    what = ", ".join(_STACK[name] for name in past.stack_changed)
    cause = " The result changed in that very run, so the stack may be the cause." if past.with_stack else ""
    return [
        f"The stack changed {moment(past.stack_since)} ({what}): latencies from before it are not compared.{cause}"
    ]


def _latency_change(past: CellHistory) -> str:
    return (past.latency.change or "") if past.latency else ""


def _latency(latency: LatencyHistory | None) -> list[str]:
    if latency is None:
        return []
    before, now = milliseconds(latency.before_ms), milliseconds(latency.now_ms)
    part = f"{(latency.now_ms / latency.before_ms - 1) * 100:+.0f} %"
    over = f"the {latency.runs} runs before it on this stack"
    return [f"The median of the last run is {now}, and {before} over {over} ({part})."]


def moment(when: str) -> str:
    """Return a UTC time to the minute."""
    return f"{day(when)} UTC"

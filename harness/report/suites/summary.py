"""What the table of a suite says in a few lines: for the terminal, and as Markdown for the summary of a night."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.text import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from harness.report.suites.model import SuiteResults

#: Models that are named one by one.
_MOST_LISTED = 15


def suite_lines(results: SuiteResults, targets: Collection[str]) -> Iterator[str]:
    """Yield counts by target, then what ends otherwise than in the run before, and than on the version before."""
    for target in results.targets:
        if target.id in targets:
            counts = ", ".join(f"{number} {cls}" for cls, number in target.counts.items())
            yield f"{results.name} on {target.id}: {counts}"
    for pair in results.runs:
        if pair.target in targets:
            yield f"{pair.target} since {pair.before}: {pair.step.sentence}"
            broken = [f"{each.model} ({each.after})" for each in pair.step.broken]
            yield from (f"  broken: {each}" for each in broken[:_MOST_LISTED])
            if len(broken) > _MOST_LISTED:
                yield f"  and {len(broken) - _MOST_LISTED} more, which the report lists"
    for pair in results.versions:
        if pair.after in targets:
            yield f"{pair.before} to {pair.after}: {pair.step.sentence}"


def suite_markdown(results: SuiteResults) -> str:
    """Return the lines as Markdown, as they are."""
    lines = suite_lines(results, [target.id for target in results.targets])
    return "\n".join([f"# Suite {results.name}", "", "```", *map(visible, lines), "```", ""])

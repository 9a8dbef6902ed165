"""What the page shows of a cell that several GPUs took part in: a table in the panel, a mark in the matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.report.by_gpu import DISAGREE, disagreement, named
from harness.report.labels import BUCKETS, MARKS, bucket
from harness.report.page.packing import table
from harness.report.past import day

if TYPE_CHECKING:
    from harness.report.model import CellView


class OnGpu(NamedTuple):
    """A row of the table "by GPU"; `verdict` is the bucket's name, `median` in milliseconds."""

    gpu: str
    driver: str
    cls: str
    name: str
    verdict: str
    said: str
    median: float | None
    when: str


def gpu_rows(cell: CellView) -> dict[str, Any] | None:
    """Return the table of a cell on each GPU; None where no more than one result speaks for it."""
    if len(cell.by_gpu) < 2:  # noqa: PLR2004
        return None
    return table(
        OnGpu,
        (
            OnGpu(
                f"{each.gpu} ({each.compute_capability})" if each.key else name,
                each.driver,
                str(each.cls),
                MARKS[each.cls].name + (", flaky" if each.flaky else ""),
                BUCKETS[bucket(replace(cell, cls=each.cls, verdict=each.verdict))][0],
                each.sentence,
                each.latency_ms,
                day(each.when),
            )
            for name, each in named(cell.by_gpu)
        ),
    )


def mark(cell: CellView) -> str:
    """Return the corner mark of a cell that ends otherwise on one GPU than on another, "" of any other."""
    return DISAGREE if disagreement(cell.by_gpu) else ""


def said(cell: CellView) -> str:
    """Return how GPUs disagree on a cell, in words, "" where they do not."""
    told = disagreement(cell.by_gpu)
    return f"GPUs disagree: {told}" if told else ""

"""What a cell ended as on each GPU that took part: the worst is shown as the cell's own, the others beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.judge.worst import badness
from harness.record.speaking import took_part
from harness.report.labels import MARKS
from harness.words import GOOD, UNJUDGED, Class, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.judge.cell import Judged

#: The corner mark of a cell that ends otherwise on one GPU than on another.
DISAGREE = "\N{RIGHTWARDS ARROW OVER LEFTWARDS ARROW}"


@dataclass(frozen=True)
class GpuResult:
    """A cell on one GPU; `gpu` and `compute_capability` are "" for a result without one that stands beside others.

    `driver` is the version; GPUs are told apart by its branch. `latency_ms` is the median, `when` the UTC time.
    """

    compute_capability: str
    gpu: str
    driver: str
    cls: Class
    verdict: Verdict
    reason: str
    sentence: str
    signature: str | None
    chip: str
    latency_ms: float | None
    when: str
    log_sha256: str | None
    flaky: tuple[Class, ...] = ()

    @property
    def key(self) -> tuple[str, str] | None:
        """Return compute capability and product, by which other reports know a GPU; None where none took part."""
        return (self.compute_capability, self.gpu) if self.compute_capability else None


def worth_telling(judged: Sequence[Judged]) -> list[Judged]:
    """Return a cell's judged outcomes, the worst first; what says nothing and had no GPU only where all do so.

    That a build needs a GPU says nothing of those on one: it comes last.
    """
    judgeable = [each for each in judged if each.classification.cls not in UNJUDGED]
    told = [each for each in judged if each in judgeable or took_part(each.outcome) or not judgeable]
    return sorted(told, key=_badness, reverse=True)


def _badness(judged: Judged) -> tuple[bool, tuple[int, int], str]:
    cls = judged.classification.cls
    bad = badness(cls, judged.judgement.verdict)
    return cls is not Class.NEEDS_GPU_TO_BUILD, bad, judged.outcome.stamps.when


def named(results: Sequence[GpuResult]) -> list[tuple[str, GpuResult]]:
    """Return each result with its GPU for readers: the product, and the driver where a product is there twice."""
    products = [each.gpu for each in results]
    return [
        (f"{each.gpu}, driver {each.driver}" if products.count(each.gpu) > 1 else each.gpu or "no GPU", each)
        for each in results
    ]


def disagreement(results: Sequence[GpuResult]) -> str:
    """Return how GPUs disagree, in words; "" where all that was judged ended alike, save that some only built."""
    silent = UNJUDGED | {Class.NEEDS_GPU_TO_BUILD}
    judged = [(name, each) for name, each in named(results) if each.cls not in silent]
    ends = {Class.OK if each.cls in GOOD else (each.cls, each.signature) for _, each in judged}
    told = "; ".join(f"{MARKS[each.cls].name.lower()} on {name}" for name, each in judged)
    return told if len(ends) > 1 else ""

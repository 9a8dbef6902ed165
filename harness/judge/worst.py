"""Which of a cell's results on several GPUs is the worst: the one that a row of one result shows; pure."""

from __future__ import annotations

from harness.words import GOOD, Class, Verdict

#: What says nothing first, then by how far a cell got: the later, the less of what was asked came of it.
_BY_CLASS = (
    Class.NOT_APPLICABLE,
    Class.NOT_RUN,
    Class.INFRA_ERROR,
    Class.OK,
    Class.BUILT,
    Class.PRECISION_LOST,
    Class.INACCURATE,
    Class.RUN_FAILED,
    Class.LOAD_FAILED,
    Class.API_REMOVED,
    Class.NEEDS_GPU_TO_BUILD,
    Class.BUILD_FAILED,
    Class.PARSE_FAILED,
    Class.OUT_OF_MEMORY,
    Class.TIMED_OUT,
    Class.CRASHED,
)


def badness(cls: Class, verdict: Verdict) -> tuple[int, int]:
    """Return how bad a result is, to compare with others of its cell.

    What regressed is worse than any new failure, and a new failure is worse than anything else: a known failure on one
    GPU must not hide the regression on another. Then the class counts.
    """
    news = 2 if verdict is Verdict.REGRESSED else 1 if verdict is Verdict.NEW and cls not in GOOD else 0
    return news, _BY_CLASS.index(cls)

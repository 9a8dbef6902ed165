"""What is mutated, and which tests are to notice: edit here when modules move."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Area:
    """Modules by glob, and the tests that are to kill what is made of them, all relative to the root."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = (
    Area(
        "judging",
        (
            "harness/classify.py",
            "harness/complaints.py",
            "harness/verdict.py",
            "harness/judged.py",
            "harness/diagnosis.py",
            "harness/place.py",
            "harness/timing.py",
        ),
        (
            "tests/test_classify.py",
            "tests/test_verdict.py",
            "tests/test_judged.py",
            "tests/diagnosis",
            "tests/test_timing.py",
            "tests/test_explain.py",
            "tests/report/test_pairs.py",
        ),
    ),
    Area(
        "records",
        (
            "harness/outcome.py",
            "harness/decode.py",
            "harness/store.py",
            "harness/today.py",
            "harness/record.py",
        ),
        (
            "tests/test_outcome.py",
            "tests/test_decode.py",
            "tests/test_store.py",
            "tests/test_today.py",
            "tests/test_record.py",
            "tests/test_observation.py",
            "tests/test_classify.py",
            "tests/test_judged.py",
            "tests/diagnosis",
        ),
    ),
    Area(
        "comparing",
        (
            "harness/report/pairs.py",
            "harness/report/sides.py",
            "harness/report/answer.py",
            "harness/report/upgrade.py",
            "harness/report/changed.py",
            "harness/report/ranges.py",
        ),
        (
            "tests/report/test_pairs.py",
            "tests/report/test_upgrade.py",
            "tests/report/test_changed.py",
            "tests/report/test_ranges.py",
            "tests/report/test_results.py",
            "tests/report/test_exports.py",
            "tests/report/test_pagedata.py",
            "tests/report/test_text.py",
            "tests/cli/test_diff.py",
        ),
    ),
    Area(
        "reaping",
        ("harness/docker_engine/reaper.py",),
        ("tests/transport/test_docker_engine.py",),
    ),
    Area(
        "placing",
        ("harness/report/placing.py",),
        ("tests/report/test_graph.py",),
    ),
    Area(
        "latency",
        ("harness/history/latency.py",),
        ("tests/history/test_latency.py", "tests/report/test_past.py"),
    ),
)
#: Of all mutants, the least share that must be killed.
FLOOR = 0.90

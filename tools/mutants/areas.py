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
        # All but explain.py: how a judgement is worded is looked at, not computed.
        ("harness/judge/[!_e]*.py", "harness/judge/engine_errors.py"),
        ("tests/judge", "tests/report/test_pairs.py"),
    ),
    Area(
        "records",
        ("harness/record/*.py", "harness/run/observation.py"),
        ("tests/record", "tests/run/test_observation.py", "tests/judge", "tests/test_record.py"),
    ),
    Area(
        "comparing",
        ("harness/report/compare/*.py", "harness/report/claimed.py"),
        (
            "tests/report/test_pairs.py",
            "tests/report/test_upgrade.py",
            "tests/report/test_steps.py",
            "tests/report/test_changed.py",
            "tests/report/test_ranges.py",
            "tests/report/test_span_sentences.py",
            "tests/report/test_neighbours.py",
            "tests/report/test_sides.py",
            "tests/report/test_judged_pairs.py",
            "tests/report/test_like_with_like.py",
            "tests/report/test_step_sentences.py",
            "tests/report/test_judged_steps.py",
            "tests/report/test_instead.py",
            "tests/report/test_guesses.py",
            "tests/report/test_results.py",
            "tests/report/test_exports.py",
            "tests/report/test_pagedata.py",
            "tests/report/test_text.py",
            "tests/cli/test_diff.py",
        ),
    ),
    Area(
        "reaping",
        ("harness/run/docker/reaper.py",),
        ("tests/run/transport/test_reaper.py", "tests/run/transport/test_docker_engine.py"),
    ),
    Area(
        "placing",
        ("harness/report/page/layout.py",),
        ("tests/report/test_graph.py", "tests/report/test_layout.py"),
    ),
    Area(
        "latency",
        ("harness/history/latency.py",),
        ("tests/history/test_latency.py", "tests/history/test_latency_parts.py", "tests/report/test_past.py"),
    ),
)
#: Of all mutants, the least share that must be killed.
FLOOR = 0.90

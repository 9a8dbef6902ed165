"""The published results as a report of today has them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.compare.kinds import steps_of
from harness.report.model import load_results
from harness.report.writer import results_json

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"


@cache
def data() -> Any:
    """Return results.json with the steps that are told today: those of the published file are of its day."""
    results = load_results(PUBLISHED)
    return json.loads(results_json(replace(results, steps=steps_of(results.rows()))))

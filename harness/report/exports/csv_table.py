"""`results.csv`: one line a cell, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from harness.report.labels import bucket
from harness.text import visible

if TYPE_CHECKING:
    from harness.case import Expectation
    from harness.report.by_gpu import GpuResult
    from harness.report.model import CellView, Results, TargetView

COLUMNS = (
    "cell",
    "case",
    "variant",
    "target",
    "engine",
    "version",
    "platform",
    "class",
    "verdict",
    "bucket",
    "signature",
    "claim_class",
    "claim_grade",
    "claim_level",
    "claim_compute_capability",
    "claim_source",
    "precision",
    "flaky",
    "failed_phase",
    "build_s",
    "engine_bytes",
    "median_ms",
    "p95_ms",
    "samples",
    "gpu",
    "compute_capability",
    "driver",
    "by_gpu",
    "image_digest",
    "when",
    "reason",
)
#: What spreadsheets take for a formula at the start of a field; https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def table(results: Results) -> str:
    """Return the table: a header, then the cells in the report's order, lines ended by CR LF as RFC 4180 has it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    targets = {target.id: target for target in results.targets}
    claims = {(each.case, each.name): each.expectations for case in results.cases for each in case.variants}
    for cell in results.cells:
        first = claims[cell.case, cell.variant][cell.claims[0]] if cell.claims else None
        writer.writerow([_field(value) for value in _row(cell, targets[cell.target], first)])
    return text.getvalue()


def _row(cell: CellView, target: TargetView, claim: Expectation | None) -> tuple[object, ...]:
    stamps, latency = cell.stamps, cell.latency
    seen = stamps.environment if stamps else {}
    return (
        cell.id,
        cell.case,
        cell.variant,
        cell.target,
        target.engine,
        target.version,
        target.platform,
        str(cell.cls),
        str(cell.verdict),
        bucket(cell),
        cell.signature,
        *_claimed(claim),
        cell.chip,
        " ".join(cell.flaky),
        cell.failed_phase,
        cell.phases.get("build"),
        cell.engine_bytes,
        latency.median if latency else None,
        latency.p95 if latency else None,
        len(latency.samples) if latency else None,
        seen.get("gpu"),
        seen.get("compute_capability"),
        seen.get("driver"),
        "; ".join(map(_on_gpu, cell.by_gpu)),
        stamps.image_digest if stamps else None,
        stamps.when if stamps else None,
        cell.reason,
    )


def _claimed(claim: Expectation | None) -> tuple[str | None, ...]:
    """Return the class, grade, level, GPUs and address of the claim that is judged first."""
    if claim is None:
        return (None,) * 5
    address = claim.source.url if claim.source else None
    return str(claim.outcome), str(claim.grade), claim.level, claim.compute_capability, address


def _on_gpu(result: GpuResult) -> str:
    """Return what the cell ended as on one GPU: "7.5 Tesla T4, driver 535.1: build_failed, known_failure"."""
    driver = f", driver {result.driver}" if result.driver else ""
    where = f"{result.compute_capability} {result.gpu}{driver}" if result.key else "no GPU"
    time = f", {result.latency_ms:g} ms" if result.latency_ms is not None else ""
    return f"{where}: {result.cls}, {result.verdict}{time}"


def _field(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA) else text

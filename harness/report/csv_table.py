"""`results.csv`: one line a cell, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from harness.known.claim import says
from harness.report.labels import bucket
from harness.text import visible

if TYPE_CHECKING:
    from harness.case import Expectation
    from harness.known.model import Known, OnGpu, TargetView
    from harness.report.model import Results

COLUMNS = (
    *("cell", "case", "variant", "target", "engine", "version", "platform"),
    *("class", "basis", "verdict", "bucket", "signature", "precision", "flaky", "failed_phase"),
    *("claim", "claim_source", "build_s", "engine_bytes", "median_ms", "p95_ms", "samples"),
    *("gpu", "compute_capability", "by_gpu", "run", "when", "reason"),
)
#: What spreadsheets take for a formula at the start of a field; https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def table(results: Results) -> str:
    """Return the table: a header, then the cells in the report's order, lines ended by CR LF as RFC 4180 has it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    targets = {target.id: target for target in results.targets}
    claims = {(variant.case, variant.name): variant.claims for variant in results.variants}
    for cell in results.cells:
        first = claims[cell.case, cell.variant][cell.claims[0]] if cell.claims else None
        writer.writerow([_field(value) for value in _row(cell, targets[cell.target], first)])
    return text.getvalue()


def _row(cell: Known, target: TargetView, claim: Expectation | None) -> tuple[object, ...]:
    latency, gpu = cell.latency, cell.gpu or (None, None)
    return (
        *(cell.id, cell.case, cell.variant, cell.target, target.engine, target.version, target.platform),
        *(str(cell.cls), cell.basis and str(cell.basis), str(cell.verdict), bucket(cell), cell.signature),
        *(cell.chip, " ".join(cell.flaky), cell.failed_phase),
        *((says(claim), claim.source.url if claim.source else None) if claim else (None, None)),
        *(cell.phases.get("build"), cell.engine_bytes),
        *((latency.median, latency.p95, latency.n) if latency else (None, None, None)),
        *(gpu[1], gpu[0], "; ".join(map(_on_gpu, cell.by_gpu)), cell.stamps, cell.when, cell.reason),
    )


def _on_gpu(result: OnGpu) -> str:
    """Return what the cell ended as on one GPU: "7.5 Tesla T4, driver 535.1: build_failed, known_failure"."""
    driver = f", driver {result.driver}" if result.driver else ""
    where = f"{result.compute_capability} {result.gpu}{driver}" if result.key else "no GPU"
    time = f", {result.median_ms:g} ms" if result.median_ms is not None else ""
    return f"{where}: {result.cls}, {result.verdict}{time}"


def _field(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA) else text

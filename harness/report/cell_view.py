"""One judged cell -> `CellView`: its conclusions, and its evidence cut to what a page can carry."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from harness.judge.diagnosis import notes
from harness.judge.timing import contended, statistics
from harness.layers import attention_kernel, holds_attention
from harness.record.outcome import Message
from harness.record.speaking import took_part
from harness.report.advice import advice_of
from harness.report.by_gpu import GpuResult
from harness.report.compare.ranges import chip
from harness.report.model import CellView, Timing
from harness.text import clip, tail
from harness.words import Class, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.judge.cell import Judged
    from harness.judge.diagnosis import Note
    from harness.record.outcome import Latency, Outcome

#: Bounds on the evidence of one cell; the store keeps the whole log.
MOST_MESSAGES = 40
LONGEST_MESSAGE = 1500
LONGEST_NATIVE = 4000
#: The reason of a cell of which there is no record.
NOT_RUN_YET = "not run yet"

_SEVERITIES = ("INTERNAL_ERROR", "ERROR", "WARNING")


def cell_view(judged: Judged, *, stale: bool) -> CellView:
    """Return a cell as the report shows it."""
    cell, outcome, judgement = judged.cell, judged.outcome, judged.judgement
    claims = cell.variant.expectations
    messages, left_out = _messages(outcome.messages)
    done = outcome.state == "done"
    kernel = _attention_kernel(outcome)
    covering = sorted(judged.claims, key=lambda claim: claim is not judgement.expectation)
    return CellView(
        id=cell.id,
        case=cell.case.name,
        variant=cell.variant.name,
        target=cell.target.name,
        cls=judged.classification.cls,
        verdict=judgement.verdict,
        reason=judged.classification.reason,
        sentence=_sentence(judged),
        signature=judged.signature,
        expectation=claims.index(judgement.expectation) if judgement.expectation else None,
        claims=tuple(claims.index(claim) for claim in covering),
        grade=covering[0].grade if covering else None,
        stale=stale,
        lost=tuple(_lost(judged)),
        diagnosis=advice_of(judged.diagnosis) if judged.diagnosis else None,
        notes=(*map(_note, notes(outcome)), *_on_attention(kernel)),
        demanded=judged.demanded,
        chip=_chip(judged),
        phases=outcome.phases,
        failed_phase=outcome.failed_phase,
        missing_api=outcome.missing_api,
        end=outcome.end,
        error=clip(outcome.error, LONGEST_NATIVE),
        parser_errors=outcome.parser_errors[:MOST_MESSAGES],
        messages=messages,
        messages_left_out=left_out,
        native_output=tail(outcome.native_output, LONGEST_NATIVE),
        log_sha256=outcome.log_sha256,
        precision=judged.precision,
        layers=outcome.layers,
        attention_kernel=kernel,
        layer_source=outcome.layer_source,
        unparsed_layers=outcome.unparsed_layers,
        engine_bytes=outcome.engine_bytes,
        accuracy=outcome.accuracy,
        latency=_timing(outcome.latency) if outcome.latency and outcome.latency.samples_ms else None,
        stamps=outcome.stamps if done or outcome.stamps.when else None,
        by_gpu=(_on_gpu(judged),),
    )


def _sentence(judged: Judged) -> str:
    """Return what a reader gets first; what the machine of this report lacks is no news about the reader's."""
    said = judged.judgement.sentence
    if judged.classification.cls is not Class.NOT_RUN:
        return said
    if said == NOT_RUN_YET:
        return "not run for this report"
    return f"not run for this report: it {said.partition(';')[0]}" if said.startswith("needs ") else said


def _on_gpu(judged: Judged) -> GpuResult:
    outcome, gpu = judged.outcome, took_part(judged.outcome)
    samples = outcome.latency.samples_ms if outcome.latency else ()
    return GpuResult(
        compute_capability=gpu.compute_capability if gpu else "",
        gpu=gpu.product if gpu else "",
        driver=outcome.stamps.environment.get("driver", ""),
        cls=judged.classification.cls,
        verdict=judged.judgement.verdict,
        reason=judged.classification.reason,
        sentence=_sentence(judged),
        signature=judged.signature,
        chip=_chip(judged),
        latency_ms=statistics(samples).median if samples else None,
        when=outcome.stamps.when,
        log_sha256=outcome.log_sha256,
    )


def _chip(judged: Judged) -> str:
    return chip(
        judged.wished if judged.demanded else {},
        judged.precision,
        judged.classification.unverified,
        judged.outcome.layers,
    )


def _lost(judged: Judged) -> Iterator[str]:
    for node, wanted, got in judged.classification.lost:
        yield f"{node}: {said(got)} instead of {said(wanted)}"


def _note(note: Note) -> str:
    return f"{note.count} times: {clip(note.example, 300)}"


def _attention_kernel(outcome: Outcome) -> str | None:
    """Return the kernel that runs all the attention of a graph, "" where several do, None where that is not told."""
    return attention_kernel(outcome.layers) if holds_attention([node.op for node in outcome.nodes]) else None


def _on_attention(kernel: str | None) -> Iterator[str]:
    if kernel is not None:
        yield (
            f"Attention runs as one fused kernel, {kernel}."
            if kernel
            else "Attention runs in several kernels."
        )


def _messages(messages: Sequence[Message]) -> tuple[tuple[Message, ...], int]:
    """Return each warning and error once, and how many were left out; errors stay before warnings do."""
    kept = [message for message in dict.fromkeys(messages) if message.severity in _SEVERITIES]
    severe = sorted(kept, key=lambda message: message.severity == "WARNING")[:MOST_MESSAGES]
    shown = [Message(entry.severity, clip(entry.text, LONGEST_MESSAGE)) for entry in kept if entry in severe]
    return tuple(shown), len(kept) - len(shown)


def _timing(latency: Latency) -> Timing:
    found = statistics(latency.samples_ms)
    return Timing(
        median=found.median,
        p95=found.p95,
        samples=latency.samples_ms,
        warmup=latency.warmup,
        clock=latency.clock,
        spread=found.spread,
        noise=contended(latency.before, latency.after) or found.noise,
        scope=latency.scope,
        upload=median(latency.upload_ms) if latency.upload_ms else None,
        before=latency.before,
        after=latency.after,
    )

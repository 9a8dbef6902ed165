"""Judged outcomes of a cell -> its `Known`, with its diagnosis as readers get it, and what its version lacks as yet.

A failure for what came with a later version is no fault of the version, and a later version that has it mends none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256

from packaging.version import Version

from harness.case import Expectation
from harness.engines import ENGINES
from harness.history import CellHistory
from harness.judge.cell import Judged
from harness.judge.classify import fp32_or_tf32
from harness.judge.complaints import Place
from harness.judge.diagnosis import Diagnosis, blank, notes
from harness.judge.names import since
from harness.judge.signatures import SAID, Signature, load_signatures
from harness.judge.timing import bounds, contended, statistics
from harness.known.claim import built_but, drawn, says
from harness.known.listed import Objection, State
from harness.known.model import Advice, Known, Layers, OnGpu, TargetView, Timing, VariantView, Yet, stack_of
from harness.layers.datatype import FLOATS, NARROW, WEIGHTS, precision_of, same_precision
from harness.layers.precision import attention_kernel, holds_attention
from harness.matrix.operators import operator_tables, tables_around
from harness.record.from_json import plain
from harness.record.outcome import Layer, Outcome
from harness.record.speaking import took_part
from harness.text import clip, one_line, some, tail
from harness.words import (
    BADNESS,
    CLASSES,
    GOOD,
    PREDICATE,
    UNJUDGED,
    Basis,
    Class,
    Engine,
    Precision,
    Verdict,
    said,
)

#: The reason of a cell without a record.
NOT_RUN_YET = "not run yet"
#: The engine's own words that a report keeps of a cell; the log has them all.
_MOST_ERRORS, _LONGEST_ERROR = 12, 600
_SEVERE = ("INTERNAL_ERROR", "ERROR")
#: Precisions that multiply in a float; so do those of weights that are only stored in something narrower.
_FLOATING = FLOATS | frozenset(WEIGHTS.values())
#: Predicates of a graph that was not run, by the finding against it.
_LISTED = {
    State.BLOCKED: "is blocked",
    State.REPORTED: "holds a graph that fails",
    State.IGNORED: "builds, and is not obeyed",
    State.RESTRICTED: "is restricted",
}
_UNINTERESTING = frozenset({Precision.UNKNOWN, Precision.INT32, Precision.INT64, Precision.BOOL})


def known_of(
    judged: Sequence[Judged],
    pasts: Sequence[CellHistory | None] = (),
    by_hand: tuple[str, ...] = (),
    static: Objection | None = None,
) -> Known:
    """Return the `Known` of a cell from all outcomes that speak for it, the worst first; see `worst_first`.

    `by_hand` are the lines to paste that do the same, `static` the gravest finding against the graph without a run.
    """
    past_of = zip(judged, pasts or [None] * len(judged), strict=True)
    cells = [_known(each, past, by_hand, static) for each, past in past_of]
    if not any(took_part(each.outcome) for each in judged):
        return cells[0]
    on = tuple(_on_gpu(each, cell) for each, cell in zip(judged, cells, strict=True))
    return replace(cells[0], by_gpu=on)


def worst_first(judged: Sequence[Judged]) -> list[Judged]:
    """Return a cell's judged outcomes, the worst first, without unjudged ones that had no GPU if there are others.

    A build that only lacked a GPU comes last: it does not speak about builds on one.
    """
    judgeable = [each for each in judged if each.classification.cls not in UNJUDGED]
    kept = [each for each in judged if each in judgeable or took_part(each.outcome) or not judgeable]
    return sorted(kept, key=_badness, reverse=True)


def _badness(judged: Judged) -> tuple[bool, tuple[int, int], str]:
    cls = judged.classification.cls
    bad = badness(cls, judged.judgement.verdict)
    return cls is not Class.NEEDS_GPU_TO_BUILD, bad, judged.outcome.stamps.when


def layers_file(layers: Sequence[Layer]) -> tuple[str, bytes]:
    """Return the hash of a cell's layers, and the JSON that is kept of them under it."""
    data = json.dumps(plain(layers), sort_keys=True, separators=(",", ":")).encode()
    return sha256(data).hexdigest(), data


def nearest_first(claims: Iterable[Expectation]) -> list[Expectation]:
    """Return the claims about a cell that was not run, the one that it stands on first.

    The order: measured before reported, the graph before a model, then a failure before a success.
    """

    def order(claim: Expectation) -> tuple[bool, bool, bool, bool]:
        reported = claim.basis is not Basis.MEASURED
        return reported, claim.scope == "model", claim.outcome in GOOD, claim.kind == "summary"

    return sorted(claims, key=order)


def _known(
    judged: Judged, past: CellHistory | None, by_hand: tuple[str, ...], static: Objection | None
) -> Known:
    cell, outcome = judged.cell, judged.outcome
    found = partial(
        Known,
        id=cell.id,
        case=cell.case.name,
        variant=cell.variant.name,
        target=cell.target.name,
        verdict=judged.judgement.verdict,
        reason=reason_of(judged),
        demanded=judged.demanded,
        past=past,
        flaky=past.flaky if past else (),
        log=outcome.log_sha256,
        when=outcome.stamps.when,
        stamps=outcome.stamps.run,
        by_hand=by_hand,
        static=static,
    )
    if judged.classification.cls in UNJUDGED:
        return _claimed(found, judged) if judged.claims else _listed(found, judged, static)
    return _measured(found, judged)


def _claimed(found: Callable[..., Known], judged: Judged) -> Known:
    """Return a cell without a result: as its nearest claim has it, or as not known if that was not run either."""
    every = judged.cell.variant.expectations
    claims = nearest_first(judged.claims)
    numbers = tuple(every.index(claim) for claim in claims)
    claim, cls = claims[0], judged.classification.cls
    if claim.outcome in UNJUDGED or cls is Class.NOT_APPLICABLE:
        text = "not run" if cls is Class.NOT_RUN else PREDICATE[cls]
        return found(cls=cls, claims=numbers, text=text)
    by_gpu = _claimed_on(claims, judged.judgement.verdict)
    return found(
        cls=drawn(claim) if cls is Class.NOT_RUN else cls,
        claims=numbers,
        stands=drawn(claim),
        basis=claim.basis,
        evidence=claim.basis is not Basis.MEASURED,
        text=says(claim),
        signature=claim.signature,
        gpu=by_gpu[0].key if by_gpu else None,
        by_gpu=by_gpu,
    )


def _claimed_on(claims: Sequence[Expectation], verdict: Verdict) -> tuple[OnGpu, ...]:
    """Return the nearest measured claim of each GPU, () if there was none."""
    on: dict[tuple[str, str], OnGpu] = {}
    for each in claims:
        key = each.compute_capability or "", each.product
        if each.basis is Basis.MEASURED:
            on.setdefault(key, OnGpu(*key, "", drawn(each), verdict, says(each), each.note, each.signature))
    return tuple(on.values()) if any(capability for capability, _ in on) else ()


def _listed(found: Callable[..., Known], judged: Judged, static: Objection | None) -> Known:
    """Return a cell without a result and a claim: as its graph has it by NVIDIA's tables, or as not known."""
    cls = judged.classification.cls
    if static is None or static.state not in _LISTED or cls is Class.NOT_APPLICABLE:
        return found(cls=cls, text="not run" if cls is Class.NOT_RUN else PREDICATE[cls])
    return found(
        cls=cls,
        stands=Class.PARSE_FAILED if static.state is State.BLOCKED else None,
        basis=Basis.REPORTED if static.state is State.REPORTED else Basis.LISTED,
        text=f"{_LISTED[static.state]} ({one_line(static.worded(), _LONGEST_ERROR)})",
    )


def _measured(found: Callable[..., Known], judged: Judged) -> Known:
    outcome, cls, gpu = judged.outcome, judged.classification.cls, took_part(judged.outcome)
    every, expected = judged.cell.variant.expectations, judged.judgement.expectation
    claims = sorted(judged.claims, key=lambda claim: claim is not expected)
    short = chip(
        judged.wished if judged.demanded else {},
        judged.precision,
        judged.classification.unverified,
        outcome.layers,
    )
    ends, stands = PREDICATE[cls], cls
    if judged.judgement.verdict is Verdict.FAILS_WHEN_RUN and claims:
        ends, stands = built_but(claims[0]), drawn(claims[0])
    attention = holds_attention([node.op for node in outcome.nodes])
    kernel = attention_kernel(outcome.layers) if attention else None
    return found(
        cls=cls,
        basis=Basis.MEASURED,
        stands=stands,
        text=f"{ends} ({short})" if short else ends,
        signature=judged.signature,
        diagnosis=advice_of(judged.diagnosis) if judged.diagnosis else None,
        claims=tuple(every.index(claim) for claim in claims),
        precision=judged.precision,
        other=unwanted(judged.precision, judged.wished, outcome.layers),
        chip=short,
        lost=tuple(_lost(judged)),
        why=tuple(map(str, judged.reasons)),
        toss_ups=tuple(each.node for each in judged.reasons if each.toss_up),
        accuracy=outcome.accuracy,
        latency=_timing(outcome),
        phases=outcome.phases,
        failed_phase=outcome.failed_phase,
        missing_api=outcome.missing_api,
        engine_bytes=outcome.engine_bytes,
        attention_kernel=kernel,
        errors=_errors(outcome, cls),
        notes=tuple(_notes(judged, kernel)),
        layers=_layers(outcome),
        gpu=(gpu.compute_capability, gpu.product) if gpu else None,
    )


def chip(
    wanted: Mapping[str, Precision],
    actual: Mapping[str, Precision],
    untold: Collection[str],
    layers: Sequence[Layer],
) -> str:
    """Return a cell's precision in short: wanted nodes that kept it ("INT8 1/2"), else its layers' precisions.

    `untold` are wanted nodes whose precision the engine does not report; they add a question mark ("INT8 1/2?"). Other
    nodes without a precision vanished rightly and do not count. Without layers it is empty.
    """
    counted = [node for node in wanted if node in {*actual, *untold}]
    if not layers or not counted:
        ran_in = {layer.precision for layer in layers} - _UNINTERESTING
        return "+".join(sorted(said(kind).upper() for kind in ran_in))
    kinds, hidden = {said(wanted[node]).upper() for node in counted}, {*counted} & {*untold}
    kept = sum(same_precision(wanted[node], actual.get(node)) for node in counted)
    shown = f"{kept}/{len(counted)}" if len(hidden) < len(counted) else ""
    return f"{kinds.pop() if len(kinds) == 1 else 'kept'} {shown}{'?' if hidden else ''}"


def unwanted(
    precision: Mapping[str, Precision], wanted: Collection[str], layers: Sequence[Layer]
) -> dict[str, Precision]:
    """Return the precision of the nodes that have no wanted one: a narrow type or a float.

    A node that shares a layer with a wanted one follows it, and is left out.
    """
    follow = {
        (node, precision.get(leader))
        for layer in layers
        for leader in set(wanted) & set(layer.onnx_nodes)
        for node in layer.onnx_nodes
    }
    return {
        node: kind
        for node, kind in precision.items()
        if node not in wanted and kind in NARROW | _FLOATING and (node, kind) not in follow
    }


def reason_of(judged: Judged) -> str:
    """Return the sentence on a cell; that the machine of the report lacks something is no news about the reader's."""
    sentence = judged.judgement.sentence
    if judged.classification.cls is not Class.NOT_RUN:
        return sentence
    if sentence == NOT_RUN_YET:
        return "not run for this report"
    needs = sentence.startswith("needs ")
    return f"not run for this report: it {sentence.partition(';')[0]}" if needs else sentence


def _on_gpu(judged: Judged, cell: Known) -> OnGpu:
    gpu = took_part(judged.outcome)
    return OnGpu(
        compute_capability=gpu.compute_capability if gpu else "",
        gpu=gpu.product if gpu else "",
        driver=judged.outcome.stamps.environment.get("driver", ""),
        cls=cell.cls,
        verdict=cell.verdict,
        text=cell.text,
        reason=cell.reason,
        signature=cell.signature,
        chip=cell.chip,
        median_ms=cell.latency.median if cell.latency else None,
        when=cell.when,
        log=cell.log,
        flaky=cell.flaky,
    )


def _lost(judged: Judged) -> Iterator[str]:
    for node, wanted, got in judged.classification.lost:
        yield f"{node}: {said(got)} instead of {said(wanted)}"


def _notes(judged: Judged, kernel: str | None) -> Iterator[str]:
    """Yield the counted warnings, the layers of FP32 or TF32, and how attention runs if the layers show it."""
    outcome = judged.outcome
    if outcome.messages or outcome.native_output:
        for note in notes(outcome):
            yield f"{note.count} times: {clip(note.example, 300)}"
    if judged.demanded and (untold := fp32_or_tf32(outcome)):
        yield f"FP32 or TF32, held to TF32: {some(untold)}, of which no kernel is named."
    if kernel is not None:
        how = f"as one fused kernel, {kernel}" if kernel else "in several kernels"
        yield f"Attention runs {how}."


def _errors(outcome: Outcome, cls: Class) -> tuple[str, ...]:
    """Return the engine's own words of a failure, each once."""
    texts = [message.text for message in outcome.messages if message.severity in _SEVERE]
    texts += [each.text for each in outcome.parser_errors]
    texts += [outcome.error] if outcome.error else []
    if not texts and cls not in GOOD and outcome.native_output:
        texts = [tail(outcome.native_output, _LONGEST_ERROR)]
    return tuple(clip(text, _LONGEST_ERROR) for text in list(dict.fromkeys(texts))[:_MOST_ERRORS])


def _layers(outcome: Outcome) -> Layers | None:
    if not outcome.layers:
        return None
    digest, _ = layers_file(outcome.layers)
    return Layers(digest, len(outcome.layers), outcome.layer_source, outcome.unparsed_layers)


def _timing(outcome: Outcome) -> Timing | None:
    latency = outcome.latency
    if latency is None or not latency.samples_ms:
        return None
    found = statistics(latency.samples_ms)
    noise = contended(latency.before, latency.after) or found.noise
    told = bounds(latency)
    return Timing(
        median=_six(found.median),
        p95=_six(found.p95),
        n=len(latency.samples_ms),
        clock=latency.clock,
        low=_six(told.low) if told else None,
        high=_six(told.high) if told else None,
        noise=noise,
        stack=stack_of(latency.clock, outcome.stamps),
        spread=found.spread,
        warmup=latency.warmup,
        scope=latency.scope,
        before=latency.before,
        after=latency.after,
    )


def _six(value: float) -> float:
    return float(f"{value:.6g}")


def advice_of(found: Diagnosis) -> Advice:
    """Return the diagnosis for readers; the last tactic refused is the nearest the engine comes to a reason."""
    last = f" The engine's last word: {clip(found.skipped_tactic, 300)}" if found.skipped_tactic else ""
    return Advice(
        found.id,
        found.title,
        found.cause + last,
        found.advice,
        found.advice_variants,
        found.links,
        found.place,
    )


def general_advice(signature: str | None) -> Advice | None:
    """Return the advice of a signature for any model, None for an unknown signature."""
    return _general().get(signature or "")


def in_general(signature: Signature) -> Advice:
    """Return a signature as the advice on no failure in particular; groups read as in `blank`."""
    title, cause, advice = (blank(getattr(signature, name)) for name in SAID)
    of, place = signature.advice_variants, str(Place(signature.operator))
    return Advice(signature.id, title, cause, advice, of, signature.links, place)


@cache
def _general() -> dict[str, Advice]:
    return {signature.id: in_general(signature) for signature in load_signatures()}


def badness(cls: Class, verdict: Verdict) -> tuple[int, int]:
    """Return how bad a result is, to compare with others of its cell.

    A regression is worse than any new failure, and a new failure is worse than anything else: a known failure on one
    GPU must not hide the regression on another. Then the class counts.
    """
    news = 2 if verdict is Verdict.REGRESSED else 1 if verdict is Verdict.NEW and cls not in GOOD else 0
    return news, BADNESS[cls]


# ---- what a version does not have yet: a type, an operator or a call that came later

#: The signatures of a parser that refuses a type and an operator; the graph and the tables tell which.
_TYPE, _OPERATOR = ("initializer-refused", "initializer-of-later-type"), "no-importer"


def not_yet(cell: Known, variant: VariantView, target: TargetView) -> Yet | None:
    """Return what a cell failed for that its version does not have yet, as far as sources tell; None else.

    Only engines whose operators are tabled are told so. A cell that failed for another cause lacks nothing.
    """
    if not ENGINES[Engine(target.engine)].tabled or cell.stands is None:
        return None
    if CLASSES[cell.stands].breaks != "builds":
        return None
    every = (
        each for each in _lacking(cell, variant, target) if Version(each.since) > Version(target.version)
    )
    return max(every, key=lambda each: Version(each.since), default=None)


def _lacking(cell: Known, variant: VariantView, target: TargetView) -> Iterator[Yet]:
    """Yield what a refused graph holds that came with some version."""
    signature = cell.signature or ""
    since_of = _types(variant) if signature in _TYPE else {}
    # Of a report without a cause too: no graph is read without an importer.
    if signature == _OPERATOR or (not signature and cell.stands is Class.PARSE_FAILED):
        since_of |= _operators(variant, target)
    if cell.basis is Basis.LISTED and cell.static and cell.static.restriction == "no importer":
        operator = cell.static.operator or ""
        since_of[operator] = since(operator)
    if came := _came().get(signature):
        yield came
    yield from (Yet(what, release) for what, release in since_of.items() if release)


def _types(variant: VariantView) -> dict[str, str]:
    """Return the types of a graph, each with the first table that has it."""
    kinds = {precision_of(each.split(" ")[0]) for each in variant.graph.types.values()}
    return {name: _first_of(name) for name in sorted(str(kind).upper() for kind in kinds)}


def _operators(variant: VariantView, target: TargetView) -> dict[str, str]:
    """Return the operators of a graph that a version has no importer of, each with the first release that has."""
    before, _ = tables_around(target.version)
    every = (node.op for node in variant.graph.nodes if before and node.op not in before.importers)
    return {name: since(name) for name in every}


@cache
def _came() -> Mapping[str, Yet]:
    return {each.id: Yet(**each.came) for each in load_signatures() if each.came}


@cache
def _first_of(kind: str) -> str:
    """Return the first of NVIDIA's tables in which an importer takes a type, "" for a type that none names."""
    tables = operator_tables()
    return next(
        (each.release for each in tables if any(kind in it.types for it in each.importers.values())), ""
    )

"""Outcome -> class, from the record alone.

Wrong numbers outrank a lost precision: an engine that is fast and wrong is worse than one that is slow and right. Lost
precisions are listed all the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from harness.judge import complaints
from harness.layers.datatype import same_precision
from harness.layers.operators import MAY_VANISH
from harness.layers.precision import node_precision, untyped
from harness.record.outcome import ON_AN_ENGINE, Accuracy, Outcome
from harness.text import some
from harness.words import Class, Precision, said


class Lost(NamedTuple):
    """A node that did not run in the precision its variant is about."""

    node: str
    wanted: Precision
    got: Precision


@dataclass(frozen=True)
class Classification:
    """A class with one sentence of reason.

    unverified: wanted nodes whose precision the engine did not report; the reason of a good class names them.
    derived: the graph wants the precision, without a word of the variant.
    built: an engine was there by the time of the failure.
    """

    cls: Class
    reason: str
    lost: tuple[Lost, ...] = ()
    unverified: tuple[str, ...] = ()
    derived: bool = False
    built: bool = False


@dataclass(frozen=True)
class Wish:
    """The precision that a cell is wanted to run in, and the accuracy.

    nodes: the precisions wanted, by ONNX node name.
    derived: the graph wants them, without a word of the variant.
    demanded: False if they only set how far numbers may be off.
    permitted: the precisions that the recipe lets the engine choose; they set the tolerance if layers name none.
    tf32: whether the engine may multiply FP32 in TF32.
    allowed: the variant's own limits of the outputs' error, `max_rel` and `cosine`; None if the precision sets it.
    """

    nodes: Mapping[str, Precision] = field(default_factory=dict)
    derived: bool = False
    demanded: bool = True
    permitted: Collection[Precision] = ()
    tf32: bool = True
    allowed: tuple[float | None, float | None] = (None, None)


NOTHING = Wish()


class Tolerance(NamedTuple):
    """The most an output may differ: max_abs over the reference's largest magnitude, and the least cosine.

    `share` is for outputs of BOOL, INT32 and INT64: the part of their elements that may differ. An index or a class
    changes where two values nearly tie, and then by any distance.
    """

    max_rel: float
    cosine: float
    share: float


#: By the coarsest precision anything ran in, finest first. Cosine carries the verdict on structure (a swapped
#: channel, a lost bias, garbage); max_rel bounds one bad element. The graphs are a handful of layers deep.
TOLERANCES: Mapping[Precision, Tolerance] = {
    # 24-bit significand; only the order of a few thousand additions differs.
    Precision.FP32: Tolerance(1e-4, 0.999999, 1e-3),
    # 11-bit significand on the products, sums in FP32: 2^-11 a layer.
    Precision.TF32: Tolerance(5e-3, 0.9999, 5e-3),
    # 11-bit significand, and every tensor between layers is rounded too.
    Precision.FP16: Tolerance(1e-2, 0.9999, 1e-2),
    # 8-bit significand: 2^-8 a rounding.
    Precision.BF16: Tolerance(5e-2, 0.999, 2e-2),
    # One quantum is 1/127 of a tensor's range, and a value at a tie may fall either way at each Q; under a calibrator
    # the reference is not quantised at all and outliers saturate.
    Precision.INT8: Tolerance(0.2, 0.98, 5e-2),
    Precision.UINT8: Tolerance(0.2, 0.98, 5e-2),
    # 4-bit significand: 2^-4 a rounding.
    Precision.FP8: Tolerance(0.3, 0.97, 5e-2),
    # Sixteen values in all.
    Precision.INT4: Tolerance(0.5, 0.90, 0.1),
    Precision.FP4: Tolerance(0.5, 0.90, 0.1),
}
#: An error up to four times FP32's spacing at 1 is ignored: the arithmetic of a sigmoid or softmax errs by that much,
#: and a saturated one gives outputs no larger (a text detector on noise: 2e-6 at most, off by 1e-7).
_ROUNDING = 4 * 2.0**-23
#: Assumed if no layer names its precision, or a kernel of FP32 has no name: a GPU engine may use TF32 for FP32, which
#: no default forbids.
_UNTOLD = Precision.TF32

#: The tolerance of a float times stored weights. The weights are constants and lose no precision; but engines widen
#: them in FP16, and ONNX Runtime's MatMulNBits quantises the data (off by 4e-3, measured on 1.31.1).
_STORED: Mapping[Precision, Precision] = dict.fromkeys(
    (Precision.INT8_WEIGHTS, Precision.INT4_WEIGHTS, Precision.FP8_WEIGHTS, Precision.FP4_WEIGHTS),
    Precision.FP16,
)

_PHASES = {
    "parse": Class.PARSE_FAILED,
    "build": Class.BUILD_FAILED,
    "calibrate": Class.BUILD_FAILED,
    "serialise": Class.BUILD_FAILED,
    "load": Class.LOAD_FAILED,
    "run": Class.RUN_FAILED,
    "time": Class.RUN_FAILED,
    "profile": Class.RUN_FAILED,
}
_OUT_OF_MEMORY = re.compile(
    r"std::bad_alloc|\bMemoryError\b|Error Code \d+: OutOfMemory|CUDA_ERROR_OUT_OF_MEMORY"
    r"|cudaErrorMemoryAllocation|Cuda Runtime \((?:cudaError 2\b|out of memory)"
    r"|CUDA (?:error|failure)?.{0,20}out of memory|Failed to allocate memory",
    re.IGNORECASE,
)
#: A build that asks the GPU of this machine although it needs none: TensorRT-RTX 1.4 does so for a Q or DQ that is not
#: fused into a convolution, for any compute capability. That is the version's answer: others build the same graph on
#: the same machine.
_ASKS_FOR_GPU = re.compile(r"In generateForCurrent at")
#: The request needed a GPU on any version: no answer about the graph.
_NO_GPU = re.compile(
    r"In generateForCurrent at|cudaError 35\b|CUDA driver version is insufficient for CUDA runtime version"
    r"|no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE|libcuda\.so\S{0,40} (?:not found|cannot open)"
)
#: CUDA's answers to every engine on a machine at fault in spite of its preflight: a GPU that was taken or lost
#: meanwhile, a driver that was updated. Other codes may be the engine's own doing.
_MACHINE = re.compile(
    r"CUDA_ERROR_(?:STUB_LIBRARY|DEVICE_UNAVAILABLE|NO_DEVICE|INVALID_DEVICE|UNSUPPORTED_PTX_VERSION|SYSTEM_NOT_READY"
    r"|SYSTEM_DRIVER_MISMATCH|COMPAT_NOT_SUPPORTED_ON_DEVICE|UNKNOWN)\b"
    r"|(?:with error|cudaError|Cuda (?:Runtime|Driver)|CUDA error)\s*(?:[:(]\s*)?(?:34|35|46|10[01]|222|80[234]|999)\b",
    re.IGNORECASE,
)


def classify(
    outcome: Outcome, wish: Wish = NOTHING, got: Mapping[str, Precision] | None = None
) -> Classification:
    """Return the class of an outcome, held against the wish.

    `got` is the precision of each node, read from the outcome's layers unless given.
    """
    found = _not_judged(outcome) or _ended_badly(outcome) or _failed(outcome)
    if found is None:
        got = node_precision(outcome.nodes, outcome.layers) if got is None else got
        found = _finished(outcome, wish, got)
    return replace(found, derived=wish.derived, built=outcome.failed_phase in ON_AN_ENGINE)


def _not_judged(outcome: Outcome) -> Classification | None:
    if outcome.state != "done":
        cls = Class(outcome.state)
        return Classification(cls, outcome.reason or f"recorded as {cls} without a reason")
    if outcome.missing_api is not None:
        return Classification(Class.API_REMOVED, f"this version has no {outcome.missing_api}")
    return None


def _ended_badly(outcome: Outcome) -> Classification | None:
    end = outcome.end
    if end is None:
        return Classification(Class.INFRA_ERROR, "the record does not say how the engine's process ended")
    where = f" in {outcome.failed_phase}" if outcome.failed_phase else ""
    if end.kind == "finished":
        return None
    if end.kind == "timed_out":
        return Classification(Class.TIMED_OUT, f"did not end in time{where}{_colon(end.detail)}")
    said = _line(_OUT_OF_MEMORY, "\n".join((*complaints.native(outcome), outcome.error)))
    if end.kind == "out_of_memory" or said:
        return Classification(Class.OUT_OF_MEMORY, f"ran out of memory{where}{_colon(said or end.detail)}")
    how = end.detail or (f"killed by {end.signal}" if end.signal else f"exited with code {end.exit_code}")
    return Classification(Class.CRASHED, f"{how}{where}")


def _failed(outcome: Outcome) -> Classification | None:
    phase = outcome.failed_phase
    if phase is None:
        return None
    if phase not in _PHASES:
        return Classification(Class.INFRA_ERROR, f"failed in {phase!r}, which is no phase of an engine")
    text = complaints.fatal(outcome)
    if _OUT_OF_MEMORY.search(text):
        return Classification(Class.OUT_OF_MEMORY, f"ran out of memory in {phase}: {text}")
    if _NO_GPU.search(text) and "gpu" not in outcome.stamps.environment:
        if _PHASES[phase] is Class.BUILD_FAILED and _ASKS_FOR_GPU.search(text):
            cls, said = Class.NEEDS_GPU_TO_BUILD, "cannot be built without a GPU"
        else:
            cls, said = Class.NOT_RUN, "needs a GPU that this machine does not have"
        return Classification(cls, f"{said}, in {phase}: {text}")
    if _MACHINE.search(text):
        return Classification(Class.INFRA_ERROR, f"CUDA does not work here, in {phase}: {text}")
    return Classification(_PHASES[phase], f"{phase} failed{_colon(text)}")


def _finished(outcome: Outcome, wish: Wish, got: Mapping[str, Precision]) -> Classification:
    demands = wish.nodes if wish.demanded else {}
    known = {node: precision for node, precision in got.items() if precision is not Precision.UNKNOWN}
    lost = tuple(
        Lost(node, wanted, known[node])
        for node, wanted in demands.items()
        if not same_precision(wanted, known.get(node, wanted))
    )
    unverified = _unverified(outcome, demands, got)
    wrong = _wrong_numbers(outcome, _coarsest_precision(outcome, wish), wish.allowed)
    if wrong:
        return Classification(Class.INACCURATE, wrong, lost, unverified)
    if lost:
        ran = [f"{node} ran in {said(got)}, not {said(wanted)}" for node, wanted, got in lost]
        return Classification(Class.PRECISION_LOST, some(ran, separator="; "), lost, unverified)
    cls = Class.OK if outcome.ran else Class.BUILT
    return Classification(cls, _well(outcome, unverified), (), unverified)


def _well(outcome: Outcome, unverified: Sequence[str]) -> str:
    """Return the reason of a good class."""
    # The record of a model without usable inputs says so: a GPU would not help.
    trouble = _colon(outcome.stamps.environment.get("gpu_trouble", ""))
    reason = f"built; {outcome.reason or f'not run on this machine{trouble}'}"
    if outcome.ran and outcome.accuracy:
        reference = "those without optimisations" if outcome.uncompared else "the reference"
        reason = f"built, ran, numbers agree with {reference}"
    elif outcome.ran:
        reason = f"built, ran; numbers were not compared{_colon(outcome.uncompared)}"
    if unverified:
        reason += f"; the precision of {some(unverified)} is not known"
        reason += "" if outcome.layers else ", because the engine listed no layers"
    return reason


def _unverified(outcome: Outcome, wanted: Collection[str], got: Mapping[str, Precision]) -> tuple[str, ...]:
    """List wanted nodes of unknown precision, save those that complete layers show to be folded away."""
    ops = {node.name: node.op for node in outcome.nodes}
    complete = bool(outcome.layers) and not outcome.unparsed_layers
    return tuple(
        node
        for node in wanted
        if got.get(node, Precision.UNKNOWN) is Precision.UNKNOWN
        and not (complete and node not in got and ops.get(node) in MAY_VANISH)
    )


def _wrong_numbers(outcome: Outcome, coarsest: Precision, own: tuple[float | None, float | None]) -> str:
    usual, floor = TOLERANCES.get(coarsest, Tolerance(0.0, 1.0, 0.0)), _ROUNDING
    tolerance = Tolerance(
        *(one if mine is None else mine for one, mine in zip(usual, (*own, None), strict=True))
    )
    if own[0] is not None:
        # Who allows less than FP32's own rounding means it.
        tolerance, floor = tolerance._replace(share=own[0]), -1.0
    return "; ".join(
        finding for each in outcome.accuracy for finding in _findings(each, tolerance, coarsest, floor)
    )


def _findings(accuracy: Accuracy, tolerance: Tolerance, precision: Precision, floor: float) -> Iterator[str]:
    """Yield the worst fault of an output, if any; none is in an error up to the floor."""
    output = f"output {accuracy.output}"
    if not accuracy.shape_matches:
        yield f"{output} is missing or has another shape than the reference"
    elif accuracy.not_finite:
        yield f"{output} has {accuracy.not_finite} values that are NaN or infinite"
    elif accuracy.max_abs <= floor:
        return
    elif accuracy.differing is not None:
        # One flip among a few is no finding where floats decide.
        some_may = bool(tolerance.share) and accuracy.elements > 1
        if accuracy.differing > max(some_may, tolerance.share * accuracy.elements):
            share = f"{accuracy.differing / accuracy.elements:.2%} of its {accuracy.elements} elements"
            yield f"{output} differs in {share} ({precision} may in {tolerance.share:.2%})"
    elif accuracy.max_rel > tolerance.max_rel:
        off = f"off by {accuracy.max_rel:.3g} of the reference's magnitude"
        yield f"{output} is {off} ({precision} may be off by {tolerance.max_rel:g})"
    # A cosine is rounded in its last digits even if every element agrees, and says nothing of a single one.
    elif accuracy.elements != 1 and accuracy.cosine < tolerance.cosine - 1e-9:
        needs = f"({precision} needs {tolerance.cosine:g})"
        yield f"{output} has cosine {accuracy.cosine:.6f} with the reference {needs}"


def _coarsest_precision(outcome: Outcome, wish: Wish) -> Precision:
    """Return the coarsest precision that a node ran in, was quantised to or was meant to run in.

    A layer without a reported precision may have run in any that is permitted. Stored weights count as the float that
    they are multiplied by, and as FP16 at the least.
    """
    order, seen = list(TOLERANCES), _seen(outcome, wish)
    floating = [precision for precision in order if precision in seen]
    if not floating:
        return min(seen - {Precision.UNKNOWN}, default=_UNTOLD)
    return floating[-1] if outcome.layers else max(floating[-1], _UNTOLD, key=order.index)


def _seen(outcome: Outcome, wish: Wish) -> set[Precision]:
    told = {Precision(layer.precision) for layer in outcome.layers}
    seen = (
        told
        | {Precision(node.precision) for node in outcome.nodes if node.precision}
        | {*wish.nodes.values()}
    )
    seen |= {_STORED.get(word, word) for word in seen}
    stored = (layer for layer in outcome.layers if layer.precision in _STORED)
    seen |= {Precision(tensor.precision) for layer in stored for tensor in layer.inputs[:1]}
    silent = not told or Precision.UNKNOWN in told or bool(outcome.unparsed_layers)
    if silent:
        seen |= {*wish.permitted}
    hidden = silent and Precision.FP32 in seen and outcome.stamps.environment.get("gpu")
    if hidden or (wish.tf32 and fp32_or_tf32(outcome)):
        seen.add(_UNTOLD)
    return seen


def fp32_or_tf32(outcome: Outcome) -> tuple[str, ...]:
    """Return the layers that multiplied on a GPU in FP32 or in TF32, without a kernel that tells which."""
    if not outcome.stamps.environment.get("gpu"):
        return ()
    return tuple(layer.name for layer in outcome.layers if untyped(layer))


def _colon(text: str) -> str:
    return f": {text}" if text else ""


def _line(pattern: re.Pattern[str], text: str) -> str:
    return next((line.strip() for line in text.splitlines() if pattern.search(line)), "")

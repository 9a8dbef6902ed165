"""Outcome -> class."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.judge.classify import TOLERANCES, Lost, Wish, classify
from harness.record.outcome import (
    Accuracy,
    End,
    Layer,
    Message,
    Node,
    Outcome,
    ParserError,
    Stamps,
    TensorUse,
)
from harness.words import Class, Precision

pytestmark = pytest.mark.unit

FP32, TF32, FP16, INT8 = Precision.FP32, Precision.TF32, Precision.FP16, Precision.INT8
#: What TensorRT-RTX 1.4 adds to every failure on a machine without a GPU.
NOISE = (
    "[checkMacros.cpp::catchCudaError::229] Error Code 1: Cuda Runtime (In catchCudaError at /_src/x.cpp:229)"
)
NOISE_17 = (
    "[checkMacros.cpp::catchCudaError::250] Error Code 1: Cuda Runtime (In catchCudaError at /_src/x.cpp:250 "
    "(cudaError 35: CUDA driver version is insufficient for CUDA runtime version))"
)
NO_GPU = (
    "IBuilder::buildSerializedNetwork: Error Code 1: Cuda Runtime "
    "(In generateForCurrent at /_src/runtime/core/cudaDeviceProfile.cpp:187)"
)
ALLOCATION = "1: [defaultAllocator.cpp::allocate::20] Error Code 1: Cuda Runtime (out of memory)"
NO_IMPLEMENTATION = (
    "10: [optimizer.cpp::computeCosts::3869] Error Code 10: Internal Error (Could not find any "
    "implementation for node /model.0/conv/Conv + PWN(PWN(/model.0/act/Sigmoid), /model.0/act/Mul).)"
)


def outcome(**changes: Any) -> Outcome:
    """Return a cell that was built, and ran unless `changes` say otherwise."""
    base = Outcome("c[v]-t", "c", "v", "t", "done", end=End("finished"), ran=True)
    return dataclasses.replace(base, **changes)


def error(*texts: str) -> tuple[Message, ...]:
    return tuple(Message("ERROR", text) for text in texts)


def layer(node: str, precision: str) -> Layer:
    return Layer(node, "Convolution", precision, onnx_nodes=(node,))


@pytest.mark.parametrize(
    ("state", "cls"),
    [
        ("not_run", Class.NOT_RUN),
        ("not_applicable", Class.NOT_APPLICABLE),
        ("infra_error", Class.INFRA_ERROR),
    ],
)
def test_what_did_not_run_keeps_its_reason(state: str, cls: Class) -> None:
    """A cell that did not run is its state, for the recorded reason, whatever else the record holds."""
    found = classify(outcome(state=state, reason="needs a GPU", failed_phase="build", missing_api="X"))
    assert (found.cls, found.reason) == (cls, "needs a GPU")


def test_a_missing_name_is_api_removed_and_named() -> None:
    """The exact missing name is in the reason, and outranks the failed phase."""
    found = classify(outcome(missing_api="IBuilderConfig.int8_calibrator", failed_phase="build", ran=False))
    assert found.cls is Class.API_REMOVED
    assert "IBuilderConfig.int8_calibrator" in found.reason


@pytest.mark.parametrize(
    ("end", "cls", "words"),
    [
        (End("timed_out", "killed after 600 s"), Class.TIMED_OUT, ("build", "600 s")),
        (End("out_of_memory", "killed by the memory limit"), Class.OUT_OF_MEMORY, ("build", "memory limit")),
        (End("signalled", "killed by SIGSEGV", signal="SIGSEGV"), Class.CRASHED, ("SIGSEGV", "in build")),
        (End("signalled", signal="SIGABRT"), Class.CRASHED, ("SIGABRT", "in build")),
        (End("exited", exit_code=3), Class.CRASHED, ("code 3", "in build")),
    ],
)
def test_a_process_that_did_not_finish(end: End, cls: Class, words: tuple[str, ...]) -> None:
    """How the process ended decides, and the reason says how and in which phase."""
    found = classify(outcome(end=end, failed_phase="build", ran=False))
    assert found.cls is cls
    assert all(word in found.reason for word in words)


def test_an_abort_on_bad_alloc_is_out_of_memory() -> None:
    """A C++ exception that ends the process tells why on stderr."""
    text = "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc"
    found = classify(outcome(end=End("signalled", signal="SIGABRT"), native_output=text, ran=False))
    assert found.cls is Class.OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("phase", "cls"),
    [
        ("parse", Class.PARSE_FAILED),
        ("build", Class.BUILD_FAILED),
        ("calibrate", Class.BUILD_FAILED),
        ("serialise", Class.BUILD_FAILED),
        ("load", Class.LOAD_FAILED),
        ("run", Class.RUN_FAILED),
        ("time", Class.RUN_FAILED),
        ("profile", Class.RUN_FAILED),
        ("no such phase", Class.INFRA_ERROR),
    ],
)
def test_the_failed_phase_decides(phase: str, cls: Class) -> None:
    """A refusal is classed by its phase; a phase that no rule covers is the harness's fault."""
    assert classify(outcome(failed_phase=phase, messages=error("no"), ran=False)).cls is cls


def test_the_reason_is_the_fatal_error_and_not_what_follows_it() -> None:
    """The line that a machine without a GPU adds to every failure hides no failure."""
    for noise in (NOISE, NOISE_17):
        found = classify(outcome(failed_phase="build", messages=error(NO_IMPLEMENTATION, noise), ran=False))
        assert found.cls is Class.BUILD_FAILED
        assert "Could not find any implementation" in found.reason


def test_a_parser_error_with_noise_inside_stays_a_parse_failure() -> None:
    """The parser copies the log into its error, with the noise line among it."""
    text = f"Invalid Node - /output\nITensor::getDimensions: Error Code 4: Shape Error (volume)\n{NOISE_17}"
    found = classify(outcome(failed_phase="parse", parser_errors=(ParserError(text),), ran=False))
    assert found.cls is Class.PARSE_FAILED
    assert "Shape Error (volume)" in found.reason
    assert "cudaError" not in found.reason


def test_out_of_memory_only_where_it_is_the_fatal_error() -> None:
    """A tactic that lacked memory is no out-of-memory if the build ended for another reason."""
    fatal = classify(outcome(failed_phase="build", messages=error(NO_IMPLEMENTATION, ALLOCATION), ran=False))
    passing = classify(
        outcome(failed_phase="build", messages=error(ALLOCATION, NO_IMPLEMENTATION), ran=False)
    )
    assert (fatal.cls, passing.cls) == (Class.OUT_OF_MEMORY, Class.BUILD_FAILED)
    assert classify(outcome(messages=error(ALLOCATION))).cls is Class.OK


def test_a_build_that_asks_for_an_absent_gpu_is_not_the_engines_failure() -> None:
    """Not run, with the reason; with a GPU in the stamps the same text is a failure."""
    without = outcome(failed_phase="build", messages=error(NO_GPU, NOISE), ran=False)
    found = classify(without)
    assert found.cls is Class.NOT_RUN
    assert "needs a GPU" in found.reason
    stamps = Stamps(environment={"gpu": "NVIDIA H200"})
    assert classify(dataclasses.replace(without, stamps=stamps)).cls is Class.BUILD_FAILED


def test_built_and_ok() -> None:
    """What finished is ok if it ran and built if not."""
    assert classify(outcome()).cls is Class.OK
    assert classify(outcome(ran=False)).cls is Class.BUILT


def test_a_record_without_an_end_is_the_harness_fault() -> None:
    assert classify(outcome(end=None)).cls is Class.INFRA_ERROR


def test_a_lost_precision_names_node_and_both_precisions() -> None:
    """Nodes that reached theirs are not listed."""
    record = outcome(
        nodes=(Node("/a", "Conv"), Node("/b", "Conv")), layers=(layer("/a", "int8"), layer("/b", "fp16"))
    )
    found = classify(record, Wish({"/a": INT8, "/b": INT8}))
    assert found.cls is Class.PRECISION_LOST
    assert found.lost == (Lost("/b", INT8, FP16),)
    assert found.reason == "/b ran in fp16, not int8"


def test_a_better_precision_than_wanted_is_lost_too() -> None:
    """A variant that wants FP16 and runs in FP32 is slower than its author believes."""
    assert classify(outcome(), Wish({"/a": FP16}), {"/a": FP32}).cls is Class.PRECISION_LOST


@pytest.mark.parametrize(("wanted", "got"), [(FP32, TF32), (TF32, FP32)])
def test_tf32_is_how_fp32_runs_by_default(wanted: Precision, got: Precision) -> None:
    assert classify(outcome(), Wish({"/a": wanted}), {"/a": got}).cls is Class.OK


def test_an_unknown_precision_is_said_and_not_passed_over() -> None:
    """Neither lost nor reached: the class is good, and reason and `unverified` name the node."""
    record = outcome(nodes=(Node("/a", "Conv"),), layers=(layer("/x", "int8"),))
    for got in ({}, {"/a": Precision.UNKNOWN}):
        found = classify(record, Wish({"/a": INT8}), got)
        assert (found.cls, found.unverified) == (Class.OK, ("/a",))
        assert "/a" in found.reason
    assert "listed no layers" in classify(outcome(), Wish({"/a": INT8})).reason


def test_a_node_that_was_folded_away_is_not_lost() -> None:
    """Only an operator that may vanish, and only where the layers are complete."""
    record = outcome(nodes=(Node("/i", "Identity"),), layers=(layer("/x", "int8"),))
    assert classify(record, Wish({"/i": INT8})).unverified == ()
    assert classify(dataclasses.replace(record, unparsed_layers=1), Wish({"/i": INT8})).unverified == ("/i",)
    assert classify(dataclasses.replace(record, layers=()), Wish({"/i": INT8})).unverified == ("/i",)


def accuracy(**changes: Any) -> Accuracy:
    return dataclasses.replace(Accuracy("y", max_abs=0.0, max_rel=0.0, cosine=1.0), **changes)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (accuracy(not_finite=1), "NaN"),
        (accuracy(shape_matches=False), "shape"),
        (accuracy(max_rel=0.9), "off by 0.9"),
        (accuracy(cosine=0.5), "cosine 0.5"),
    ],
)
def test_wrong_numbers(bad: Accuracy, word: str) -> None:
    """Each way of being wrong suffices, among outputs that are right."""
    found = classify(outcome(accuracy=(accuracy(), bad)))
    assert found.cls is Class.INACCURATE
    assert word in found.reason


def test_wrong_numbers_outrank_a_lost_precision() -> None:
    """What was lost is listed all the same."""
    found = classify(outcome(accuracy=(accuracy(cosine=0.1),)), Wish({"/a": INT8}), {"/a": FP32})
    assert found.cls is Class.INACCURATE
    assert found.lost == (Lost("/a", INT8, FP32),)


@pytest.mark.parametrize("precision", list(TOLERANCES))
def test_the_tolerance_is_that_of_the_coarsest_precision(precision: Precision) -> None:
    """Just within passes, just beyond fails, with a finer layer beside it."""
    layers = (layer("/a", precision.value), layer("/b", "fp32"))
    limit = TOLERANCES[precision]
    for inside, cls in ((0.99, Class.OK), (1.01, Class.INACCURATE)):
        by_rel = accuracy(max_rel=limit.max_rel * inside)
        by_cosine = accuracy(cosine=1 - (1 - limit.cosine) * inside)
        assert classify(outcome(layers=layers, accuracy=(by_rel,))).cls is cls
        assert classify(outcome(layers=layers, accuracy=(by_cosine,))).cls is cls


def test_tolerances_grow_with_coarseness() -> None:
    limits = list(TOLERANCES.values())
    assert limits == sorted(limits, key=lambda limit: (limit.max_rel, -limit.cosine))


def test_q_in_the_graph_means_int8_tolerance_and_no_layers_mean_tf32() -> None:
    """An engine may tell no layers: Q/DQ in the model still says what the numbers went through."""
    off = (accuracy(max_rel=TOLERANCES[INT8].max_rel * 0.9),)
    assert classify(outcome(accuracy=off)).cls is Class.INACCURATE
    assert classify(outcome(accuracy=off, nodes=(Node("q", "QuantizeLinear"),))).cls is Class.OK
    tf32 = (accuracy(max_rel=TOLERANCES[TF32].max_rel * 0.9),)
    assert classify(outcome(accuracy=tf32)).cls is Class.OK
    assert classify(outcome(accuracy=tf32, layers=(layer("/a", "fp32"),))).cls is Class.INACCURATE


@pytest.mark.parametrize("asked", ["fp16", "bf16", "int8", "fp8", "fp4"])
@pytest.mark.parametrize("op", ["Conv", "Transpose", "Cast", "QuantizeLinear"])
def test_the_graphs_own_types_set_the_tolerance(op: str, asked: str) -> None:
    """An engine may compute a half graph in FP32 (ONNX Runtime on a CPU does): its tensors are rounded all the same."""
    limit = TOLERANCES[Precision(asked)].max_rel
    plain = outcome(nodes=(Node("/a", op, asked),), layers=(layer("/a", "fp32"),))
    for off, cls in ((0.9, Class.OK), (1.1, Class.INACCURATE)):
        record = dataclasses.replace(plain, accuracy=(accuracy(max_rel=off * limit),))
        assert classify(record).cls is cls


@pytest.mark.parametrize(("data", "tolerance"), [("fp32", FP16), ("fp16", FP16), ("bf16", Precision.BF16)])
def test_stored_weights_are_held_to_the_float_that_they_are_multiplied_by(
    data: str, tolerance: Precision
) -> None:
    """And FP16 at the least; four bits of weights are constants, and no four bits of error."""
    multiplied = Layer("/a", "gemm", "int4_weights", inputs=(TensorUse("x", data),), onnx_nodes=("/a",))
    stored = (
        Node("/w/Q", "QuantizeLinear", "int8_weights"),
        Node("/w/D", "DequantizeLinear", "int4_weights"),
    )
    plain = outcome(nodes=(*stored, Node("/a", "MatMul", "int4_weights")), layers=(multiplied,))
    for off, cls in ((0.9, Class.OK), (1.1, Class.INACCURATE)):
        record = dataclasses.replace(plain, accuracy=(accuracy(max_rel=off * TOLERANCES[tolerance].max_rel),))
        assert classify(record).cls is cls


def test_stored_weights_can_be_wished_for() -> None:
    """And are lost in words."""
    wish = Wish({"/a": Precision.INT4_WEIGHTS})
    assert classify(outcome(), wish, {"/a": Precision.INT4_WEIGHTS}).cls is Class.OK
    assert classify(outcome(), wish, {"/a": FP16}).reason == "/a ran in fp16, not int4 weights"
    assert classify(outcome(), Wish({"/a": INT8}), {"/a": Precision.INT8_WEIGHTS}).cls is Class.PRECISION_LOST


def test_why_numbers_were_not_compared_is_said() -> None:
    why = "the reference evaluator does not know compat::Odd"
    assert classify(outcome(uncompared=why)).reason == f"built, ran; numbers were not compared: {why}"
    assert classify(outcome()).reason == "built, ran; numbers were not compared"
    assert classify(outcome(accuracy=(accuracy(),))).reason == "built, ran, numbers agree with the reference"


def test_integers_are_exact() -> None:
    record = outcome(layers=(layer("/a", "int64"),), accuracy=(accuracy(max_abs=1.0, max_rel=1e-6),))
    assert classify(record).cls is Class.INACCURATE


@pytest.mark.parametrize(
    ("layers", "tolerance"),
    [
        ((), INT8),
        ((layer("/a", "int8"), layer("/b", "fp32")), INT8),
        ((layer("/a", "fp32"), layer("/b", "unknown")), INT8),
        ((layer("/a", "fp32"), layer("/b", "fp32")), FP32),
    ],
)
def test_a_calibrated_model_is_held_to_fp32_numbers_at_int8_tolerance_unless_all_ran_in_fp32(
    layers: tuple[Layer, ...], tolerance: Precision
) -> None:
    """Its graph has no Q/DQ, so the reference is not quantised; the recipe says what the engine may choose."""
    nodes = (Node("/a", "Conv"), Node("/b", "InstanceNormalization"))
    for off, cls in ((0.9, Class.OK), (1.1, Class.INACCURATE)):
        accuracy = (Accuracy("y", 0.1, off * TOLERANCES[tolerance].max_rel, 1.0),)
        record = outcome(nodes=nodes, layers=layers, accuracy=accuracy)
        assert classify(record, Wish({"/b": FP32}, demanded=False, permitted={INT8})).cls is cls

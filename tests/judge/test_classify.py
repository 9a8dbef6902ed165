"""Outcome -> class."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.judge.classify import NOTHING, Lost, Wish, classify
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
#: The line that TensorRT-RTX 1.4 adds to every failure on a machine without a GPU.
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
    base = Outcome("c.v-t", "c", "v", "t", "done", end=End("finished"), ran=True)
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
    assert classify(outcome(state=state)).reason == f"recorded as {state} without a reason"


def test_a_missing_name_is_api_removed_and_named() -> None:
    """The exact missing name is in the reason, and outranks the failed phase."""
    found = classify(outcome(missing_api="IBuilderConfig.int8_calibrator", failed_phase="build", ran=False))
    assert found.cls is Class.API_REMOVED
    assert "IBuilderConfig.int8_calibrator" in found.reason


@pytest.mark.parametrize(
    ("end", "cls", "reason"),
    [
        (End("timed_out", "late"), Class.TIMED_OUT, "did not end in time in build: late"),
        (End("timed_out"), Class.TIMED_OUT, "did not end in time in build"),
        (End("out_of_memory", "a limit"), Class.OUT_OF_MEMORY, "ran out of memory in build: a limit"),
        (End("signalled", "killed by SIGSEGV", signal="S"), Class.CRASHED, "killed by SIGSEGV in build"),
        (End("signalled", signal="SIGABRT"), Class.CRASHED, "killed by SIGABRT in build"),
        (End("exited", exit_code=3), Class.CRASHED, "exited with code 3 in build"),
    ],
)
def test_a_process_that_did_not_finish(end: End, cls: Class, reason: str) -> None:
    """The end of the process decides, and the reason gives it and the phase, if any."""
    found = classify(outcome(end=end, failed_phase="build", ran=False))
    assert (found.cls, found.reason) == (cls, reason)
    between = classify(outcome(end=end, ran=False))
    assert (between.cls, between.reason) == (cls, reason.replace(" in build", ""))


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"native_output": "terminate called\n  what():  std::bad_alloc\nmore"}, "what():  std::bad_alloc"),
        ({"native_output": "Loading", "error": "MemoryError: 3 GiB"}, "MemoryError: 3 GiB"),
    ],
)
def test_an_abort_on_bad_alloc_is_out_of_memory(said: dict[str, Any], line: str) -> None:
    """An exception that ends the process tells why, and its line is the reason."""
    found = classify(outcome(end=End("signalled", signal="SIGABRT"), ran=False, **said))
    assert (found.cls, found.reason) == (Class.OUT_OF_MEMORY, f"ran out of memory: {line}")


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
        assert (found.cls, NO_IMPLEMENTATION[:40] in found.reason) == (Class.BUILD_FAILED, True)


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
    assert fatal.reason == f"ran out of memory in build: {ALLOCATION}"
    assert classify(outcome(messages=error(ALLOCATION))).cls is Class.OK


def test_a_build_that_asks_for_an_absent_gpu_is_the_versions_answer() -> None:
    """With a GPU in the stamps the same text is a failure; in another phase it does not concern the build."""
    without = outcome(failed_phase="build", messages=error(NO_GPU, NOISE), ran=False)
    found = classify(without)
    assert (found.cls, found.built) == (Class.NEEDS_GPU_TO_BUILD, False)
    later = classify(dataclasses.replace(without, failed_phase="run"))
    assert later.cls is Class.NOT_RUN
    stamps = Stamps(environment={"gpu": "NVIDIA H200"})
    assert classify(dataclasses.replace(without, stamps=stamps)).cls is Class.BUILD_FAILED


def test_built_and_ok() -> None:
    """A finished cell is ok if it ran and built if not."""
    assert classify(outcome()).cls is Class.OK
    built = classify(outcome(ran=False, accuracy=(accuracy(),)))
    assert built.cls is Class.BUILT
    assert not built.derived
    assert classify(outcome(), Wish(derived=True)).derived


@pytest.mark.parametrize(
    ("phase", "built"),
    [
        ("parse", False),
        ("build", False),
        ("load", True),
        ("run", True),
        ("time", True),
        ("profile", True),
        (None, False),
    ],
)
def test_what_died_says_whether_there_was_an_engine(phase: str | None, built: bool) -> None:
    found = classify(outcome(end=End("signalled", signal="SIGABRT"), ran=False, failed_phase=phase))
    assert (found.cls, found.built) == (Class.CRASHED, built)


def test_a_record_without_an_end_is_the_harness_fault() -> None:
    found = classify(outcome(end=None))
    assert found.cls is Class.INFRA_ERROR


@pytest.mark.parametrize(
    ("wanted", "got", "lost"),
    [
        (INT8, INT8, False),
        (INT8, FP16, True),
        # Slower than its author believes.
        (FP16, FP32, True),
        # How FP32 runs by default.
        (FP32, TF32, False),
        (TF32, FP32, False),
        (Precision.INT4_WEIGHTS, Precision.INT4_WEIGHTS, False),
        (Precision.INT4_WEIGHTS, FP16, True),
        (INT8, Precision.INT8_WEIGHTS, True),
    ],
)
def test_a_precision_is_lost_where_a_node_ran_in_another(
    wanted: Precision, got: Precision, *, lost: bool
) -> None:
    """Nodes that reached theirs are not listed."""
    found = classify(outcome(), Wish({"/a": wanted, "/b": INT8}), {"/a": got, "/b": INT8})
    assert found.cls is (Class.PRECISION_LOST if lost else Class.OK)
    assert found.lost == ((Lost("/a", wanted, got),) if lost else ())


def test_an_unknown_precision_is_said_and_not_passed_over() -> None:
    """Neither lost nor reached: the class is good, and reason and `unverified` name the node."""
    record = outcome(nodes=(Node("/a", "Conv"),), layers=(layer("/x", "int8"),))
    for got in ({}, {"/a": Precision.UNKNOWN}):
        found = classify(record, Wish({"/a": INT8}), got)
        assert (found.cls, found.unverified) == (Class.OK, ("/a",))
        assert "/a" in found.reason


def test_a_node_that_was_folded_away_is_not_lost() -> None:
    """Only an operator that may vanish, and only if the layers are complete."""
    record = outcome(nodes=(Node("/i", "Identity"),), layers=(layer("/x", "int8"),))
    assert classify(record, Wish({"/i": INT8})).unverified == ()
    assert classify(dataclasses.replace(record, unparsed_layers=1), Wish({"/i": INT8})).unverified == ("/i",)
    assert classify(dataclasses.replace(record, layers=()), Wish({"/i": INT8})).unverified == ("/i",)
    assert classify(record, Wish({"/i": INT8}), {"/i": Precision.UNKNOWN}).unverified == ("/i",)


def accuracy(**changes: Any) -> Accuracy:
    return dataclasses.replace(Accuracy("y", max_abs=1.0, max_rel=0.0, cosine=1.0), **changes)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (accuracy(not_finite=1), "NaN"),
        (accuracy(shape_matches=False), "shape"),
        (accuracy(max_rel=0.9), "0.9 "),
        (accuracy(cosine=0.5), "0.500000"),
        (accuracy(elements=200, differing=2), "1.00%"),
        (accuracy(elements=1, differing=1), "100.00%"),
    ],
)
def test_wrong_numbers(bad: Accuracy, said: str) -> None:
    """Each way of being wrong suffices, among outputs that are right, and every output that is wrong is told."""
    found = classify(outcome(accuracy=(accuracy(), bad, dataclasses.replace(bad, output="z"))))
    told = found.reason.split("; ")
    assert (found.cls, [each.split()[1] for each in told]) == (Class.INACCURATE, ["y", "z"])
    assert all(said in each for each in told)


@pytest.mark.parametrize(
    "fine",
    [
        accuracy(elements=1, cosine=0.0),
        accuracy(elements=4096, differing=5, max_rel=0.6, cosine=0.3),
        accuracy(elements=64, differing=1, max_rel=0.9),
    ],
)
def test_indices_are_judged_by_their_share_and_a_scalar_by_no_cosine(fine: Accuracy) -> None:
    """A class that flips is off by any distance; outputs of integers alone are held to every element."""
    assert classify(outcome(accuracy=(fine,))).cls is Class.OK
    integers = outcome(layers=(layer("/a", "int32"),), accuracy=(accuracy(elements=4096, differing=1),))
    assert classify(integers).cls is Class.INACCURATE
    assert classify(outcome(accuracy=(fine,)), Wish(allowed=(0.0, None))).cls is (
        Class.INACCURATE if fine.differing else Class.OK
    )


@pytest.mark.parametrize(
    ("allowed", "cls"),
    [((None, None), Class.INACCURATE), ((0.5, None), Class.INACCURATE), ((0.5, 0.9), Class.OK)],
)
def test_how_far_outputs_may_be_off_is_the_variant_s_to_say(allowed: Any, cls: Class) -> None:
    """A cosine that nobody gave stays that of the precision."""
    found = outcome(layers=(layer("/a", "fp32"),), accuracy=(accuracy(max_rel=0.1, cosine=0.95),))
    assert classify(found, Wish(allowed=allowed)).cls is cls


def test_a_saturated_output_is_not_off_by_its_own_rounding() -> None:
    """1e-7 is FP32's rounding in a sigmoid, though it be a tenth of all that comes out; 1e-5 is not."""
    tiny = accuracy(max_abs=1e-7, max_rel=0.1, cosine=0.99)
    assert classify(outcome(accuracy=(tiny,))).cls is Class.OK
    assert classify(outcome(accuracy=(dataclasses.replace(tiny, max_abs=1e-5),))).cls is Class.INACCURATE
    stricter = Wish(allowed=(0.0, None))
    assert classify(outcome(accuracy=(tiny,)), stricter).cls is Class.INACCURATE


def test_wrong_numbers_outrank_a_lost_precision() -> None:
    """Lost and unknown precisions are listed all the same."""
    wish = Wish({"/a": INT8, "/b": INT8})
    found = classify(outcome(accuracy=(accuracy(cosine=0.1),)), wish, {"/a": FP32})
    assert found.cls is Class.INACCURATE
    assert (found.lost, found.unverified) == ((Lost("/a", INT8, FP32),), ("/b",))
    lost = classify(outcome(), wish, {"/a": FP32})
    assert (lost.cls, lost.unverified) == (Class.PRECISION_LOST, ("/b",))


#: The most that a result may be off by, and the least cosine: a promise to users, whom a wider one costs a bug unseen
#: and a narrower one a false failure.
PROMISED = {
    "fp32": (1e-4, 0.999999), "tf32": (5e-3, 0.9999), "fp16": (1e-2, 0.9999), "bf16": (5e-2, 0.999),
    "int8": (0.2, 0.98), "uint8": (0.2, 0.98), "fp8": (0.3, 0.97), "int4": (0.5, 0.9), "fp4": (0.5, 0.9),
    "int32": (0.0, 1.0), "bool": (0.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("precision", PROMISED)
def test_how_far_a_precision_may_be_off(precision: str) -> None:
    """As much as that passes, and a cosine that is rounded in its last digits."""
    off, cosine = PROMISED[precision]
    for found, cls in (
        (accuracy(max_rel=off, cosine=cosine - 1e-9), Class.OK),
        (accuracy(max_rel=off * 1.001 + 1e-12, cosine=cosine), Class.INACCURATE),
        (accuracy(max_rel=off, cosine=cosine - 1.5e-9), Class.INACCURATE),
    ):
        assert classify(outcome(layers=(layer("/a", precision),), accuracy=(found,))).cls is cls


def held_to(record: Outcome, wish: Wish = NOTHING) -> Precision:
    """Return the precision whose tolerance an outcome is held to."""
    reason = classify(dataclasses.replace(record, accuracy=(accuracy(max_rel=9.0),)), wish).reason
    return Precision(reason.partition("(")[2].partition(" ")[0])


def times(*inputs: str) -> Layer:
    """Return a product with weights of four bits."""
    return Layer("l", "gemm", "int4_weights", inputs=tuple(TensorUse("x", each) for each in inputs))


@pytest.mark.parametrize(
    ("layers", "nodes", "precision"),
    [
        *((("fp32", each), (), each) for each in PROMISED if each not in ("int32", "bool")),
        (("int8", "fp16"), (), "int8"),
        (("int32", "fp32"), (), "fp32"),
        # Without any float numbers are exact.
        (("int64", "int32"), (), "int32"),
        (("fp32", "unknown"), (), "fp32"),
        (("unknown",), (), "tf32"),
        # Without layers a float may have been multiplied in TF32.
        ((), (), "tf32"),
        ((), ("Conv fp32",), "tf32"),
        ((), ("Conv fp16",), "fp16"),
        # The graph's own request.
        (("fp32",), ("Conv bf16",), "bf16"),
        *(
            (("fp32",), (f"{op} {kind}",), kind)
            for op in ("Cast", "QuantizeLinear")
            for kind in ("fp16", "fp8")
        ),
        (("fp32",), ("Conv ",), "fp32"),
        # Stored weights lose no precision: the float that they are multiplied by counts, and FP16 at the least.
        ((times("fp32"),), (), "fp16"),
        ((times(),), (), "fp16"),
        ((times("bf16"),), (), "bf16"),
        ((times("fp16", "bf16"),), (), "fp16"),
        ((Layer("l", "c", "fp32", inputs=(TensorUse("x", "bf16"),)),), (), "fp32"),
        *((("fp32",), (f"MatMul {kind}_weights",), "fp16") for kind in ("int8", "int4", "fp8", "fp4")),
    ],
)
def test_the_tolerance_is_that_of_the_coarsest_precision(
    layers: tuple[str | Layer, ...], nodes: tuple[str, ...], precision: str
) -> None:
    """Of all that ran and that the graph asks for."""
    record = outcome(
        layers=tuple(layer("/a", each) if isinstance(each, str) else each for each in layers),
        nodes=tuple(Node("/a", *node.split(" ")) for node in nodes),
    )
    assert held_to(record) == precision


def test_a_layer_that_names_no_precision_may_have_multiplied_in_tf32_on_a_gpu() -> None:
    record = outcome(
        layers=(layer("/a", "fp32"), layer("/b", "unknown")), nodes=(Node("/a", "Conv", "fp32"),)
    )
    assert held_to(record) == "fp32"
    on_gpu = dataclasses.replace(record.stamps, environment={**record.stamps.environment, "gpu": "NVIDIA T4"})
    assert held_to(dataclasses.replace(record, stamps=on_gpu)) == "tf32"


@pytest.mark.parametrize(
    ("kind", "tactic", "gpu", "wish", "held"),
    [
        # As 8.6.1 lists a deconvolution; other engines of it name `.._tf32f32_..` kernels of this runner.
        ("CaskGemmDeconvolution", "", "NVIDIA H200", NOTHING, "tf32"),
        ("gemm", "__myl_Fc_myl3_0", "NVIDIA H200", NOTHING, "tf32"),
        (
            "CaskConvolution",
            "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc",
            "T4",
            NOTHING,
            "fp32",
        ),
        (
            "CaskConvolution",
            "sm50_xmma_conv_fprop_fused_conv_act_fp32_NCHW_fp32_NCHW_KCRS",
            "T4",
            NOTHING,
            "fp32",
        ),
        ("CaskConvolution", "volta_sgemm_128x32_relu_nn_v1", "T4", NOTHING, "fp32"),
        ("PointWiseV2", "", "NVIDIA H200", NOTHING, "fp32"),
        ("CaskGemmDeconvolution", "", "", NOTHING, "fp32"),
        # ONNX Runtime is told not to.
        ("Conv", "", "NVIDIA H200", Wish(tf32=False), "fp32"),
    ],
)
def test_a_product_whose_kernel_names_no_type_is_held_to_tf32(
    kind: str, tactic: str, gpu: str, wish: Wish, held: str
) -> None:
    """The record says FP32 of it, and keeps saying so: an old one is judged by this too."""
    record = outcome(layers=(Layer("/up", kind, "fp32", tactic=tactic, onnx_nodes=("/up",)),))
    stamps = dataclasses.replace(record.stamps, environment={"gpu": gpu} if gpu else {})
    assert held_to(dataclasses.replace(record, stamps=stamps), wish) == held


@pytest.mark.parametrize(
    ("layers", "unparsed", "tolerance"),
    [
        ((), 0, INT8),
        (("int8", "fp32"), 0, INT8),
        (("fp32", "unknown"), 0, INT8),
        (("fp32", "fp32"), 1, INT8),
        (("fp32", "fp32"), 0, FP32),
    ],
)
def test_a_calibrated_model_is_held_to_fp32_numbers_at_int8_tolerance_unless_all_ran_in_fp32(
    layers: tuple[str, ...], unparsed: int, tolerance: Precision
) -> None:
    """Its graph has no Q/DQ, so the reference is not quantised; the recipe lists the engine's choices."""
    record = outcome(
        nodes=(Node("/a", "Conv"), Node("/b", "InstanceNormalization")),
        layers=tuple(map(layer, ("/a", "/b"), layers)),
        unparsed_layers=unparsed,
    )
    assert held_to(record, Wish({"/b": FP32}, demanded=False, permitted={INT8})) is tolerance
    assert held_to(record, Wish({"/b": Precision.FP4}, permitted={INT8})) is Precision.FP4


@pytest.mark.parametrize(
    "text",
    [
        "createInferBuilder: Error Code 6: API Usage Error (CUDA initialization failure with error: 35)",
        "1: [x.cpp::y::1] Error Code 1: Cuda Runtime (cudaError 999: unknown error)",
        "CudaError: cuDevicePrimaryCtxRetain: 46 CUDA_ERROR_DEVICE_UNAVAILABLE (busy)",
    ],
)
def test_what_cuda_answers_every_engine_on_this_machine_is_not_the_engines(text: str) -> None:
    """The preflight went well, and then the GPU was taken, or the driver updated."""
    gpu = Stamps(environment={"gpu": "NVIDIA T4"})
    found = classify(outcome(ran=False, failed_phase="build", messages=error(text), stamps=gpu))
    assert found.cls is Class.INFRA_ERROR
    kernel = text.replace("35", "700").replace("999", "700").replace("DEVICE_UNAVAILABLE", "ILLEGAL_ADDRESS")
    failed = classify(outcome(ran=False, failed_phase="run", messages=error(kernel), stamps=gpu))
    assert (failed.cls, failed.reason) == (Class.RUN_FAILED, f"run failed: {kernel}")

"""A small matrix, a case and outcomes made by hand: every state that the report has to show."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from harness.case import (
    Basis,
    Calibrator,
    Case,
    Class,
    Engine,
    Expectation,
    Graph,
    Link,
    Precision,
    Recipe,
    Role,
    Typing,
    Variant,
    model_sha256,
)
from harness.history import RunRecord
from harness.matrix import Matrix, Needs, Target
from harness.plan import all_cells, find
from harness.record.outcome import (
    Accuracy,
    End,
    Latency,
    Layer,
    Message,
    Node,
    Outcome,
    ParserError,
    Stamps,
    TensorUse,
)
from harness.report.model import Results
from harness.report.results import of_outcomes, results_of

ISSUE = Link("https://github.com/NVIDIA/TensorRT/issues/3640", "TensorRT issue 3640")
CONV = "/model.0/conv/Conv"
WEIGHT = "model.0.conv.weight"
NODES = (Node(CONV, "Conv"), Node("/model.0/act/Sigmoid", "Sigmoid"), Node("/model.0/act/Mul", "Mul"))
COULD_NOT = f"Error Code 10: Could not find any implementation for node {WEIGHT} + {CONV}."


def assemble(
    matrix: Matrix,
    cases: Sequence[Case],
    outcomes: Mapping[str, Outcome | tuple[Outcome, ...]],
    history: Sequence[RunRecord] = (),
) -> Results:
    """Return the results of these outcomes, by cell: one that speaks for it, or several."""
    speaks = {key: (found,) if isinstance(found, Outcome) else found for key, found in outcomes.items()}
    found = of_outcomes(matrix, cases, ())
    vars(found)["speaking"] = speaks
    return results_of(found, history)


def target(name: str, version: str, **fields: Any) -> Target:
    """Return a target with the fields that matter to the report."""
    engine = fields.pop("engine", Engine.TENSORRT_RTX)
    gpu = fields.pop("gpu", engine is Engine.TENSORRT)
    plain = Target(
        name=name,
        label=f"{fields.get('group', 'TensorRT for RTX')} {version}",
        group="TensorRT for RTX",
        engine=engine,
        version=version,
        platform="linux/amd64",
        image="registry.example/engine:1" if gpu else None,
        build=None,
        digest=None,
        python="3.11",
        packages=() if gpu else (f"engine=={version}",),
        needs=Needs(gpu=gpu, architecture="x86_64"),
        compute_capability=None,
        timeout_s=600,
        memory_mib=8192,
        sources=(),
        notes="",
        line=1,
    )
    return replace(plain, **fields)


def matrix() -> Matrix:
    """Return eight targets of four groups."""
    tensorrt: dict[str, Any] = {"engine": Engine.TENSORRT, "group": "TensorRT"}
    targets = (
        target("trt86", "8.6.1", **tensorrt),
        target("trt102", "10.2.0.19", **tensorrt),
        target("l4t86", "8.6.2", engine=Engine.TENSORRT, group="Jetson", platform="jetson"),
        target("rtx14", "1.4.0.76"),
        target("rtx15", "1.5.0.114"),
        target("rtx16", "1.6.1.120"),
        target("rtx17", "1.7.1.116"),
        target("ort131", "1.31.1", engine=Engine.ONNXRUNTIME, group="ONNX Runtime"),
    )
    return Matrix(targets, Path("matrix.yaml"))


def model(scale: float = 1.0) -> onnx.ModelProto:
    """Return a graph of one convolution and SiLU."""
    g = Graph("conv_silu")
    x = g.input("images", [1, 1, 4, 4])
    w = g.constant(WEIGHT, [scale], [1, 1, 1, 1])
    y = g.node("Conv", [x, w], name=CONV)
    sigmoid = g.node("Sigmoid", [y], name="/model.0/act/Sigmoid")
    g.output(g.node("Mul", [y, sigmoid], name="/model.0/act/Mul"), [1, 1, 4, 4])
    return g.model()


def _claim(outcome: Class, versions: str, **fields: Any) -> Expectation:
    return Expectation.reported(outcome, versions, ISSUE, **fields)


def _measured(outcome: Class, versions: str) -> Expectation:
    note = "Measured on a machine without a GPU."
    return Expectation(outcome, versions, None, Basis.MEASURED, note, engine=Engine.TENSORRT_RTX)


def case() -> Case:
    """Return a case of four variants: reproducer, workaround, calibrated and control."""
    int8 = ((CONV, Precision.INT8),)
    return Case(
        name="conv_silu",
        title="Convolution and SiLU in INT8",
        summary="The builder finds no implementation for a convolution fused with Sigmoid and Mul.",
        links=(ISSUE,),
        variants=(
            Variant(
                "qdq",
                "Q and DQ around the convolution alone.",
                partial(model, 1.0),
                precision=int8,
                expectations=(
                    _claim(Class.BUILD_FAILED, "<10", note="Seen on Orin too."),
                    _measured(Class.BUILD_FAILED, "<1.5"),
                    _measured(Class.BUILT, ">=1.5"),
                ),
            ),
            Variant(
                "qdq-between",
                "Q and DQ before the activation too.",
                partial(model, 2.0),
                role=Role.WORKAROUND,
                counterpart="qdq",
                precision=int8,
                expectations=(_claim(Class.OK, "==8.4.*", of="8.4.1, which no target has"),),
            ),
            Variant(
                "int8-entropy",
                "Calibrated, as in the report.",
                partial(model, 3.0),
                recipe=Recipe(Typing.WEAK, ("INT8",), Calibrator("entropy")),
                expectations=(_claim(Class.BUILD_FAILED, "", platform="jetson"),),
            ),
            Variant("fp32", "The same without quantisation.", partial(model, 4.0), role=Role.CONTROL),
        ),
    )


def conv_layer(precision: str = "int8", *, fused: bool = True, time_ms: float | None = None) -> Layer:
    """Return the convolution's layer, with the activation fused into it or not."""
    edge = TensorUse("images", precision, (1, 1, 4, 4), "NC/32HW32" if precision == "int8" else "linear")
    return Layer(
        name=f"{CONV} + act" if fused else CONV,
        type="convolution",
        precision=precision,
        inputs=(edge,),
        weights=(TensorUse(WEIGHT, precision, (1, 1, 1, 1)),),
        outputs=(TensorUse("y", precision, (1, 1, 4, 4)),),
        tactic="0x0000000000000001",
        onnx_nodes=tuple(node.name for node in (NODES if fused else NODES[:1])),
        time_ms=time_ms,
    )


def activation_layer() -> Layer:
    """Return the activation as a layer of its own."""
    names = tuple(node.name for node in NODES[1:])
    edge = TensorUse("y", "fp32", (1, 1, 4, 4))
    return Layer("PWN(act)", "pointwise", "fp32", (edge,), (), (edge,), "", names)


def outcome(variant: str, on: str, **fields: Any) -> Outcome:
    """Return the outcome of a cell of `case()` that built; `fields` override."""
    found = find(all_cells(matrix(), (case(),)), f"conv_silu.{variant}-{on}")
    stamps = Stamps(
        model_sha256=model_sha256(found.variant.model_bytes()),
        recipe_sha256=found.variant.recipe.sha256(),
        engine_version=found.target.version,
        via="venv",
        packages=found.target.packages,
        harness_version="0.1.0",
        when="2026-11-20T10:15:00.000+00:00",
        run="r1",
        environment={"python": "3.11.2", "cpu": "x86-64"},
    )
    plain = Outcome(
        cell=found.id,
        case=found.case.name,
        variant=variant,
        target=on,
        state="done",
        end=End("finished", peak_rss_bytes=600 << 20),
        phases={"parse": 0.002, "build": 0.14, "serialise": 0.001},
        nodes=NODES,
        layers=(conv_layer(),),
        layer_source="verbose_log",
        engine_bytes=40960,
        stamps=stamps,
    )
    return replace(plain, **fields)


T4 = {"gpu": "Tesla T4", "compute_capability": "7.5", "driver": "535.183.01"}
L4 = {"gpu": "NVIDIA L4", "compute_capability": "8.9", "driver": "580.95.05"}


def on_gpu(found: Outcome, gpu: dict[str, str], run: str = "r1", day: int = 20) -> Outcome:
    """Return an outcome as if it came from a machine with a GPU."""
    when, seen = f"2026-11-{day}T10:15:00.000+00:00", {**found.stamps.environment, **gpu}
    stamps = replace(found.stamps, run=run, when=when, environment=seen, image_digest="sha256:" + "a" * 64)
    return replace(found, stamps=stamps)


def two_gpus() -> tuple[Outcome, Outcome]:
    """Return a build failure on a T4 and, later, a timed run of the same cell on an L4."""
    works = ran("qdq", "trt102", layers=(conv_layer(time_ms=0.02),))
    return on_gpu(build_failure("qdq", "trt102"), T4, "turing"), on_gpu(works, L4, "ada", 21)


def moved(found: Outcome, to: Target) -> Outcome:
    """Return an outcome as if it had been another target's, and of its version."""
    stamps = replace(found.stamps, engine_version=to.version)
    return replace(found, target=to.name, cell=f"{found.case}.{found.variant}-{to.name}", stamps=stamps)


def build_failure(variant: str, on: str, **fields: Any) -> Outcome:
    """Return an outcome whose builder found no implementation."""
    plain: dict[str, Any] = {
        "layers": (),
        "failed_phase": "build",
        "engine_bytes": None,
        "error": "build_serialized_network returned no engine",
        "messages": (Message("WARNING", "Missing scale and zero-point"), Message("ERROR", COULD_NOT)),
        "native_output": "[E] something on stderr\n",
    }
    return outcome(variant, on, **{**plain, **fields})


def ran(variant: str, on: str, **fields: Any) -> Outcome:
    """Return an outcome that was run and timed, in FP32 unless told otherwise."""
    plain: dict[str, Any] = {
        "layers": (conv_layer("fp32", time_ms=0.02),),
        "ran": True,
        "phases": {"parse": 0.002, "build": 0.14, "serialise": 0.001, "load": 0.1, "run": 0.01, "time": 0.5},
        "accuracy": (Accuracy("y", 1e-6, 1e-6, 1.0),),
        "latency": Latency(tuple(0.04 + 0.001 * (index % 7) for index in range(100)), 10, "monotonic"),
    }
    return outcome(variant, on, **{**plain, **fields})


def outcomes() -> dict[str, Outcome]:
    """Return outcomes of many kinds: as expected, known, regressed, new, crashed, stale, infrastructure."""
    stale = outcome("fp32", "rtx14")
    made = (
        build_failure("qdq", "rtx14"),
        outcome("qdq", "rtx15"),
        outcome("qdq", "rtx16", layers=(conv_layer("int8", fused=False), activation_layer())),
        build_failure("qdq", "rtx17"),
        ran("qdq", "ort131", layers=(conv_layer("int8", time_ms=0.02),)),
        outcome("qdq-between", "rtx14", layers=(conv_layer("fp32"),)),
        outcome("qdq-between", "rtx15"),
        outcome("qdq-between", "rtx16"),
        outcome(
            "qdq-between",
            "rtx17",
            layers=(),
            failed_phase="build",
            end=End("signalled", "killed by SIGSEGV", signal="SIGSEGV"),
        ),
        outcome("int8-entropy", "rtx17", missing_api="BuilderFlag.INT8", layers=(), failed_phase="build"),
        replace(stale, stamps=replace(stale.stamps, model_sha256="0" * 64)),
        outcome("fp32", "rtx15", layers=(conv_layer("fp32"),)),
        outcome(
            "fp32",
            "rtx16",
            layers=(),
            failed_phase="parse",
            parser_errors=(ParserError("Unsupported operator Mish", "UNSUPPORTED_NODE", CONV, "Mish"),),
        ),
        outcome("fp32", "rtx17", state="infra_error", reason="the agent was lost", layers=(), end=None),
        ran("fp32", "ort131"),
        outcome("fp32", "trt86", state="not_run", reason="needs an NVIDIA GPU", layers=(), end=None),
    )
    return {entry.cell: entry for entry in made}


@functools.cache
def results(*, hostile: str = "") -> Results:
    """Return the results of `outcomes()`; `hostile` is put wherever a stranger's text can stand."""
    if not hostile:
        return assemble(matrix(), (case(),), outcomes())
    plain = case()
    variants = tuple(replace(variant, title=hostile, tags=(hostile,)) for variant in plain.variants)
    links = (Link(ISSUE.url, hostile),)
    bad_case = replace(plain, title=hostile, summary=hostile, links=links, variants=variants)
    targets = tuple(replace(each, label=hostile, notes=hostile) for each in matrix())
    bad_matrix = replace(matrix(), targets=targets)
    made = {key: _poisoned(entry, hostile) for key, entry in outcomes().items()}
    return assemble(bad_matrix, (bad_case,), made)


def nobody_ran() -> Results:
    """Return a report without a run, with a summary by which trt102 mends the failures reported of trt86."""
    made, works = case(), _claim(Class.OK, ">=10.2,<10.3", kind="summary")
    first = replace(made.variants[0], expectations=(*made.variants[0].expectations, works))
    return assemble(matrix(), (replace(made, variants=(first, *made.variants[1:])),), {})


def _poisoned(entry: Outcome, text: str) -> Outcome:
    layers = tuple(replace(each, name=text, tactic=text, type=text) for each in entry.layers)
    return replace(
        entry,
        reason=text,
        error=text,
        native_output=text,
        messages=(*entry.messages, Message("ERROR", text)),
        parser_errors=(ParserError(text, text, text, text),) if entry.parser_errors else (),
        layers=layers,
        stamps=replace(entry.stamps, environment={text: text, "__proto__": text}),
    )

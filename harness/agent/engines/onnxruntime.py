"""ONNX Runtime: the baseline that says whether a failure is the model's or TensorRT's."""

import importlib
import os
import tempfile
import time
from typing import Any, Dict, List

from harness.agent.engines import Emit, Failed, machine_facts, phase, report_failure
from harness.agent.protocol import Message, split_parts

_PROFILED_RUNS = 10

ort: Any = None
numpy: Any = None


def preload(engine: str) -> Dict[str, str]:
    """Import ONNX Runtime and return its facts."""
    global ort, numpy  # noqa: PLW0603  (one engine a process, loaded before the first fork)
    ort = importlib.import_module(engine)
    numpy = importlib.import_module("numpy")
    providers = ",".join(ort.get_available_providers())
    return dict(machine_facts(), engine=engine, engine_version=str(ort.__version__), providers=providers)


def run(job: Message, body: bytes, emit: Emit) -> None:
    """Do one job: "devices" (none are looked for) or "run" (parts: model and inputs)."""
    if job["kind"] == "run":
        parts = split_parts(job["parts"], body)
        report_failure(emit, lambda: _run(job, parts, emit))


def _run(job: Message, parts: Dict[str, bytes], emit: Emit) -> None:
    model = parts["model"]
    with tempfile.TemporaryDirectory() as folder:
        with phase(emit, "parse"):
            _session(model, optimise=False)
        with phase(emit, "build"):
            optimised = os.path.join(folder, "optimised.onnx")
            session = _session(model, save_to=optimised)
        with open(optimised, "rb") as file:
            emit("layers", file.read(), source="ort_graph")
        with phase(emit, "run"):
            feeds = _feeds(session, parts)
            names = [output.name for output in session.get_outputs()]
            for name, value in zip(names, session.run(names, feeds)):
                emit("output", value.tobytes(), name=name, dtype=str(value.dtype), shape=list(value.shape))
        with phase(emit, "time"):
            _time(session, names, feeds, job["timing"], emit)
        with phase(emit, "profile"):
            _profile(_session(model, profile_to=os.path.join(folder, "profile")), names, feeds, emit)


def _session(model: bytes, *, optimise: bool = True, save_to: str = "", profile_to: str = "") -> Any:
    options = ort.SessionOptions()
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
    # One thread: latencies of such small graphs are otherwise those of the thread pool.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # 0 (verbose) to 4 (fatal): warnings are part of the record.
    options.log_severity_level = 2
    if save_to:
        options.optimized_model_filepath = save_to
    if profile_to:
        options.enable_profiling = True
        options.profile_file_prefix = profile_to
    try:
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise Failed("%s: %s" % (type(error).__name__, error)) from error


def _feeds(session: Any, parts: Dict[str, bytes]) -> Dict[str, Any]:
    kinds = {
        "tensor(float)": "float32",
        "tensor(float16)": "float16",
        "tensor(int64)": "int64",
        "tensor(int8)": "int8",
    }
    feeds = {}
    for entry in session.get_inputs():
        shape = [int(part) for part in parts["shape:" + entry.name].split(b",")]
        feeds[entry.name] = numpy.frombuffer(parts[entry.name], dtype=kinds[entry.type]).reshape(shape)
    return feeds


def _time(session: Any, names: List[str], feeds: Dict[str, Any], timing: Dict[str, Any], emit: Emit) -> None:
    samples: List[float] = []
    warm_until = time.perf_counter() + timing["warmup_s"]
    warmup = 0
    while warmup < timing["iterations"] and time.perf_counter() < warm_until:
        session.run(names, feeds)
        warmup += 1
    stop = time.perf_counter() + timing["budget_s"]
    while len(samples) < timing["iterations"] and time.perf_counter() < stop:
        start = time.perf_counter()
        session.run(names, feeds)
        samples.append((time.perf_counter() - start) * 1000)
    emit("latency", samples_ms=samples, warmup=warmup, clock="monotonic")


def _profile(session: Any, names: List[str], feeds: Dict[str, Any], emit: Emit) -> None:
    for _ in range(_PROFILED_RUNS):
        session.run(names, feeds)
    with open(session.end_profiling(), "rb") as file:
        emit("profile", file.read())

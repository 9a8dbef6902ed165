"""ONNX Runtime: the baseline that says whether a failure is the model's or TensorRT's.

On the CPU, or on a GPU where the job's provider is "cuda". There the session must have the CUDA provider first, or the
job fails: ONNX Runtime would otherwise run on the CPU and say so in a warning alone. Nodes that the CUDA provider has
no kernel for run on the CPU all the same; each is named in a warning of the record.
"""

import importlib
import json
import os
import tempfile
import time
from typing import Any, Callable, Dict, Optional

from harness.agent import gpu
from harness.agent.cuda import Device, device_facts
from harness.agent.engines import Emit, Failed, Unavailable, machine_facts, phase, report_failure
from harness.agent.protocol import Message, split_parts
from harness.agent.timed import sample

_PROFILED_RUNS = 10
_CUDA = "CUDAExecutionProvider"
_CPU = "CPUExecutionProvider"
#: TF32 is on by default and would make the baseline ten bits exact; a GPU of the job's own is the first it sees.
_OPTIONS = {_CUDA: {"device_id": "0", "use_tf32": "0"}}

ort: Any = None
numpy: Any = None


def preload(engine: str) -> Dict[str, str]:
    """Import ONNX Runtime and return its facts."""
    global ort, numpy  # noqa: PLW0603  (one engine a process, loaded before the first fork)
    ort = importlib.import_module(engine)
    numpy = importlib.import_module("numpy")
    providers = ort.get_available_providers()
    facts = dict(
        machine_facts(), engine=engine, engine_version=str(ort.__version__), providers=",".join(providers)
    )
    if _CUDA in providers:
        if hasattr(ort, "preload_dlls"):
            # CUDA and cuDNN from their own packages. Loading them touches no driver, so a fork later does no harm.
            ort.preload_dlls()
        facts["cuda"] = str(getattr(ort, "cuda_version", ""))
    return facts


def run(job: Message, body: bytes, emit: Emit) -> None:
    """Do one job: "devices" (those of the job's provider) or "run" (parts: model and inputs)."""
    if job["kind"] == "devices":
        for facts in device_facts()[:1] if job["provider"] == "cuda" else ():
            emit("fact", facts=facts)
        return
    parts = split_parts(job["parts"], body)
    work = _run_cuda if job["provider"] == "cuda" else _run_cpu
    report_failure(emit, lambda: work(job, parts, emit))


def _run_cpu(job: Message, parts: Dict[str, bytes], emit: Emit) -> None:
    def timed(session: Any, feeds: Dict[str, Any]) -> None:
        samples, warmup = sample(_on_the_host(lambda: session.run(None, feeds)), job["timing"])
        emit(
            "latency",
            samples_ms=samples,
            warmup=warmup,
            clock="monotonic",
            scope="one run, tensors in host memory",
        )

    _run(parts, _CPU, timed, emit)


def _run_cuda(job: Message, parts: Dict[str, bytes], emit: Emit) -> None:
    def timed(session: Any, feeds: Dict[str, Any]) -> None:
        binding = _bound(session, feeds)

        def once() -> None:
            session.run_with_iobinding(binding)
            binding.synchronize_outputs()

        inputs = [value.tobytes() for value in feeds.values()]
        with Device() as device:
            fields = gpu.latency(_on_the_host(once), device, job["timing"], inputs)
        scope = "one run_with_iobinding until its outputs are there, tensors on the device"
        emit("latency", clock="monotonic", scope=scope, **fields)

    _run(parts, _CUDA, timed, emit)


def _run(parts: Dict[str, bytes], provider: str, timed: Callable[..., None], emit: Emit) -> None:
    model = parts["model"]
    with tempfile.TemporaryDirectory() as folder:
        with phase(emit, "parse"):
            _session(model, provider, optimise=False)
        with phase(emit, "build"):
            optimised = os.path.join(folder, "optimised.onnx")
            session = _session(model, provider, save_to=optimised)
        with open(optimised, "rb") as file:
            emit("layers", file.read(), source="ort_graph")
        with phase(emit, "run"):
            feeds = _feeds(session, parts)
            names = [output.name for output in session.get_outputs()]
            for name, value in zip(names, _said(lambda: session.run(names, feeds))):
                emit("output", value.tobytes(), name=name, dtype=str(value.dtype), shape=list(value.shape))
        with phase(emit, "time"):
            _said(lambda: timed(session, feeds))
        with phase(emit, "profile"):
            profiled = _session(model, provider, profile_to=os.path.join(folder, "profile"))
            _profile(profiled, feeds, provider, emit)


def _session(
    model: bytes, provider: str, *, optimise: bool = True, save_to: str = "", profile_to: str = ""
) -> Any:
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
    providers = [(provider, _OPTIONS.get(provider, {}))]
    # Without enable_fallback=0 what one provider refuses is tried again, silently, on the next.
    session = _said(lambda: ort.InferenceSession(model, options, providers=providers, enable_fallback=0))
    got = session.get_providers()
    if got[0] != provider:
        raise Unavailable(
            "needs %s, and ONNX Runtime here gives %s: its libraries or the driver are missing, as its own output says"
            % (provider, ", ".join(got))
        )
    return session


def _said(work: Callable[[], Any]) -> Any:
    """Return what `work` does; what ONNX Runtime, or CUDA under it, raises is its refusal, in its own words."""
    try:
        return work()
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


def _bound(session: Any, feeds: Dict[str, Any]) -> Any:
    """Return a binding with inputs and outputs in the device's memory, so that a run copies nothing over the bus."""
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value, "cuda", 0))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda", 0)
    return binding


def _on_the_host(work: Callable[[], Any]) -> Callable[[], float]:
    def once() -> float:
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * 1000

    return once


def _profile(session: Any, feeds: Dict[str, Any], provider: str, emit: Emit) -> None:
    for _ in range(_PROFILED_RUNS):
        session.run(None, feeds)
    with open(session.end_profiling(), "rb") as file:
        profile = file.read()
    emit("profile", profile)
    for node, other in elsewhere(profile, provider).items():
        emit("message", severity="WARNING", text="%s did not run on %s but on %s" % (node, provider, other))


def elsewhere(profile: bytes, provider: str) -> Dict[str, str]:
    """Return the provider of each node, "name (operator)", that ran on another than the one asked for."""
    found = {}
    # Node names are written unescaped: a tab in one is let through.
    for event in json.loads(profile.decode("utf-8", "replace"), strict=False):
        arguments: Optional[Dict[str, Any]] = event.get("args")
        name = str(event.get("name", ""))
        if event.get("cat") == "Node" and name.endswith("_kernel_time") and arguments:
            other = str(arguments.get("provider", ""))
            if other and other != provider:
                node = name[: -len("_kernel_time")]
                found["%s (%s)" % (node, arguments.get("op_name", ""))] = other
    return found

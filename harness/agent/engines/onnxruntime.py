"""ONNX Runtime: the baseline that tells a model's failure from TensorRT's.

It runs on the CPU, or on a GPU if the job's provider is "cuda". Then the session must have the CUDA provider first, or
the job fails: ONNX Runtime would otherwise run on the CPU with no more than a warning. Nodes that the CUDA provider has
no kernel for run on the CPU all the same; a warning of its own in the log says so.
"""

import contextlib
import ctypes
import importlib
import os
import tempfile
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from harness.agent import gpu
from harness.agent.engines import Emit, MissingNeed, machine_facts, phase, report_failure, said
from harness.agent.protocol import Message, split_parts
from harness.agent.tensors import ELEMENTS, read_shape, size

_CUDA = "CUDAExecutionProvider"
_CPU = "CPUExecutionProvider"
#: Without it x86 processors that lack VNNI saturate sums of 8-bit products: the numbers would be the machine's.
_PRECISE = "session.x64quantprecision"
#: TF32 is on by default and would leave the baseline ten bits of mantissa; a job sees the GPU that it has as the first.
_OPTIONS = {_CUDA: {"device_id": "0", "use_tf32": "0"}}
#: The wire's word by ONNX Runtime's.
_WORDS = {"tensor(%s)" % element.ort: word for word, element in ELEMENTS.items()}
#: ONNX gave the types that NumPy has the numbers up to that of UINT64; NumPy has none of the later types.
_LAST_OF_NUMPY = ELEMENTS["uint64"].onnx

ort: Any = None
numpy: Any = None


def preload(engine: str) -> Dict[str, str]:
    """Import ONNX Runtime and return its facts."""
    global ort, numpy  # noqa: PLW0603  (one engine a process, loaded before the first fork)
    ort = importlib.import_module(engine)
    numpy = importlib.import_module("numpy")
    if _CUDA in ort.get_available_providers():
        # CUDA and cuDNN from their own packages. Loading them touches no driver, so a fork later does no harm.
        ort.preload_dlls()
    return dict(machine_facts(), engine=engine, engine_version=str(ort.__version__))


def run(job: Message, body: bytes, emit: Emit) -> None:
    """Do one job: "preflight" (of the GPU, if the provider needs it), "run" (parts: model and inputs) or "build".

    "build" is for a model without usable inputs: it ends before a run.
    """
    if job["kind"] == "preflight":
        if job["provider"] == "cuda":
            report_failure(emit, lambda: gpu.check(emit, needed=True))
        return
    parts = split_parts(job["parts"], body)
    work = _run_cuda if job["provider"] == "cuda" else _run_cpu
    report_failure(emit, lambda: work(job, parts, emit))


class Feed(NamedTuple):
    """One network input: an element type in the wire's word, a shape, and the bytes, which must be kept alive."""

    dtype: str
    shape: Tuple[int, ...]
    data: bytes

    def array(self) -> Any:
        """Return it as NumPy has it."""
        return numpy.frombuffer(self.data, dtype=self.dtype).reshape(self.shape)


Feeds = Dict[str, Feed]


def _run_cpu(job: Message, parts: Dict[str, bytes], emit: Emit) -> None:
    def timed(session: Any, feeds: Feeds) -> None:
        once, call = _once(session, feeds)
        samples, warmup = gpu.sample(_on_the_host(once), job["timing"])
        emit(
            "latency",
            samples_ms=samples,
            warmup=warmup,
            clock="monotonic",
            scope="one %s, tensors in host memory" % call,
        )

    _run(job, parts, _CPU, timed, emit)


def _run_cuda(job: Message, parts: Dict[str, bytes], emit: Emit) -> None:
    def timed(session: Any, feeds: Feeds) -> None:
        binding = _bound(session, feeds, "cuda")

        def once() -> None:
            session.run_with_iobinding(binding)
            binding.synchronize_outputs()

        with gpu.opened() as device:
            fields = gpu.latency(_on_the_host(once), device.uuid(), job["timing"])
        scope = "one run_with_iobinding until its outputs are there, tensors on the device"
        emit("latency", clock="monotonic", scope=scope, **fields)

    _run(job, parts, _CUDA, timed, emit)


def _run(
    job: Message, parts: Dict[str, bytes], provider: str, timed: Callable[..., None], emit: Emit
) -> None:
    model, beside = parts["model"], job["weights"]
    if beside:
        # These versions look for the external data of a model in memory in the current folder.
        os.chdir(beside)
    with tempfile.TemporaryDirectory() as folder:
        with phase(emit, "parse"):
            plain = _session(model, provider, optimise=False)
            plain = plain if job.get("plain") else None
        with phase(emit, "build"):
            # It would be written with all weights.
            optimised = "" if beside else os.path.join(folder, "optimised.onnx")
            session = _session(model, provider, save_to=optimised)
        if optimised:
            with open(optimised, "rb") as file:
                emit("layers", file.read(), source="ort_graph")
        if job["kind"] == "build":
            return
        with phase(emit, "run"):
            feeds = _feeds(session, parts)
            binding = said(_bound, session, feeds, "cpu")
            said(session.run_with_iobinding, binding)
            _emit_outputs(session, binding, emit)
        # A failure without optimisations alone is none of the job.
        with contextlib.suppress(Exception):
            if plain is not None:
                binding = _bound(plain, feeds, "cpu")
                plain.run_with_iobinding(binding)
                _emit_outputs(plain, binding, emit, plain=True)
        plain = None
        if job["timing"] is None:
            return
        with phase(emit, "time"):
            said(timed, session, feeds)


def _session(model: bytes, provider: str, *, optimise: bool = True, save_to: str = "") -> Any:
    options = ort.SessionOptions()
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
    # One thread: latencies of such small graphs are otherwise those of the thread pool.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry(_PRECISE, "1")
    # 0 (verbose) to 4 (fatal): warnings are part of the record.
    options.log_severity_level = 2
    if save_to:
        options.optimized_model_filepath = save_to
    providers = [(provider, _OPTIONS.get(provider, {}))]
    # Without enable_fallback=0 a session that one provider refuses is tried again, silently, on the next.
    session = said(_created, model, options, providers)
    got = session.get_providers()
    if got[0] != provider:
        raise MissingNeed(
            "needs %s, and ONNX Runtime here gives %s: its libraries or the driver are missing, as its own output says"
            % (provider, ", ".join(got))
        )
    return session


def _created(model: bytes, options: Any, providers: List[Any]) -> Any:
    try:
        return ort.InferenceSession(model, options, providers=providers, enable_fallback=0)
    except Exception as error:
        if type(error).__name__ != "NotImplemented":
            raise
        # On processors without VNNI the option turns a QLinearConv to UINT8 by halves, and no kernel fits it.
        options.add_session_config_entry(_PRECISE, "0")
        return ort.InferenceSession(model, options, providers=providers, enable_fallback=0)


def _feeds(session: Any, parts: Dict[str, bytes]) -> Feeds:
    feeds = {}
    for entry in session.get_inputs():
        feed = Feed(_WORDS[entry.type], read_shape(parts["shape:" + entry.name]), parts[entry.name])
        # ONNX Runtime is given an address: it would read past the end of too few bytes.
        if len(feed.data) != size(feed.dtype, feed.shape):
            raise ValueError(
                "input %s: %d bytes are not %s%s" % (entry.name, len(feed.data), feed.dtype, feed.shape)
            )
        feeds[entry.name] = feed
    return feeds


def _in_numpy(dtype: Optional[str]) -> bool:
    return dtype is None or ELEMENTS[dtype].onnx <= _LAST_OF_NUMPY


def _bound(session: Any, feeds: Feeds, device: str) -> Any:
    """Return a binding with inputs and outputs in the device's memory, so that a run does not use the bus.

    A binding takes the types that NumPy lacks too, packed ones as they are on the wire.
    """
    binding = session.io_binding()
    for name, feed in feeds.items():
        if _in_numpy(feed.dtype):
            binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(feed.array(), device, 0))
        else:
            _bind_address(binding, name, feed)
    for output in session.get_outputs():
        binding.bind_output(output.name, device, 0)
    return binding


def _bind_address(binding: Any, name: str, feed: Feed) -> None:
    address = numpy.frombuffer(feed.data, dtype="uint8").ctypes.data
    try:
        # If the session is on a GPU, the binding copies it there now.
        binding.bind_input(name, "cpu", 0, ELEMENTS[feed.dtype].onnx, list(feed.shape), address)
    except Exception as error:
        raise MissingNeed(
            "needs an ONNX Runtime whose Python takes %s inputs; this one says %s" % (feed.dtype, error)
        ) from error


def _emit_outputs(session: Any, binding: Any, emit: Emit, **marks: bool) -> None:
    """Report the outputs; of one that the wire does not carry (a sequence, strings) that it came, and no more."""
    for output, value in zip(session.get_outputs(), binding.get_outputs()):
        dtype = _WORDS.get(value.data_type()) if value.is_tensor() else None
        if dtype is None:
            text = "output %s is %s: not compared" % (output.name, output.type)
            emit("message", severity="INFO", text=text)
            emit("output", name=output.name, dtype="", shape=[], **marks)
        else:
            data = ctypes.string_at(value.data_ptr(), size(dtype, value.shape()))
            emit("output", data, name=output.name, dtype=dtype, shape=list(value.shape()), **marks)


def _once(session: Any, feeds: Feeds) -> Tuple[Callable[[], Any], str]:
    """Return one run with tensors in host memory, and how it is called: a plain run wherever NumPy has the types."""
    if all(_in_numpy(_WORDS.get(one.type)) for one in (*session.get_inputs(), *session.get_outputs())):
        arrays = {name: feed.array() for name, feed in feeds.items()}
        return lambda: session.run(None, arrays), "run"
    binding = _bound(session, feeds, "cpu")
    return lambda: session.run_with_iobinding(binding), "run_with_iobinding"


def _on_the_host(work: Callable[[], Any]) -> Callable[[], float]:
    def once() -> float:
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * 1000

    return once

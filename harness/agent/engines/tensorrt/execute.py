"""A serialised plan -> layers, numbers and latency, on a GPU."""

import contextlib
import functools
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from harness.agent import cuda, gpu
from harness.agent.cuda import CudaDevice, CudaError, CudaGraph, Stopwatch
from harness.agent.engines import Emit, Failed, phase, said
from harness.agent.engines.tensorrt import api, plugins
from harness.agent.protocol import Message
from harness.agent.tensors import narrowed, read_shape, size


class _Output(NamedTuple):
    """An output's element type, its memory, and the source of its shape once the engine has run.

    `by_data` tells that the data decide the shape.
    """

    name: str
    dtype: str
    address: Callable[[], int]
    shape: Callable[[], Sequence[int]]
    by_data: bool = False


def run(job: Message, parts: Dict[str, bytes], emit: Emit) -> None:
    """Load the plan, inspect it, run it once on the given inputs; for a timed job, time it, then profile it."""
    logger = api.logger_for(emit)
    # A new child has not loaded the plugins that its plan was built with.
    plugins.load(job["recipe"], logger, parts)
    try:
        with gpu.opened() as device:
            with phase(emit, "load"):
                # Freeing the runtime before the engine is a crash; all bindings looked at keep it alive as well.
                runtime = api.made(logger, "Runtime", api.trt.Runtime, logger)
                engine = said(runtime.deserialize_cuda_engine, parts["plan"])
                if engine is None:
                    raise Failed("the runtime refused the plan")
                context = said(engine.create_execution_context)
                if context is None:
                    raise Failed("no execution context")
            with phase(emit, "run"):
                outputs = _bind(engine, context, device, parts)
                _execute(context, device)
                _emit_outputs(outputs, device, emit)
            _inspect(engine, context, emit)
            if job["timing"] is not None:
                with phase(emit, "time"):
                    # The host waits for a shape that the data decide: no graph holds that.
                    graph = job["timing"]["graph"] and not any(output.by_data for output in outputs)
                    _time(context, device, job["timing"], emit, graph=graph)
                with phase(emit, "profile"):
                    _profile(context, device, emit)
            del context, engine, runtime
    except CudaError as error:
        raise Failed(str(error)) from error


def _bind(engine: Any, context: Any, device: CudaDevice, parts: Dict[str, bytes]) -> List[_Output]:
    trt = api.trt
    outputs = []
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    for name in names:
        if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
            shape = read_shape(parts["shape:" + name])
            if not context.set_input_shape(name, shape):
                raise Failed("input %s does not take the shape %s" % (name, list(shape)))
            data = _as_taken(name, engine, parts)
            address = device.allocate(len(data))
            device.upload(address, data)
            context.set_tensor_address(name, address)
    for name in names:
        if engine.get_tensor_mode(name) == trt.TensorIOMode.OUTPUT:
            dtype = api.datatype_name(engine.get_tensor_dtype(name))
            outputs.append(_output(name, dtype, context, device))
    return outputs


def _output(name: str, dtype: str, context: Any, device: CudaDevice) -> _Output:
    shape = [int(extent) for extent in context.get_tensor_shape(name)]
    if min(shape, default=0) < 0:
        return _output_by_data(name, dtype, context, device)
    address = _cleared(device, size(dtype, shape))
    context.set_tensor_address(name, address)
    return _Output(name, dtype, lambda: address, lambda: shape)


def _output_by_data(name: str, dtype: str, context: Any, device: CudaDevice) -> _Output:
    """Give an output whose shape the data decide (NonZero) an allocator, which the engine asks as it runs."""

    class Allocator(api.trt.IOutputAllocator):  # type: ignore[misc]
        def __init__(self) -> None:
            api.trt.IOutputAllocator.__init__(self)
            self.address, self.room = _cleared(device, 1), 1
            self.shape: List[int] = []

        def reallocate_output(self, _name: str, _memory: int, wanted: int, _alignment: int) -> int:
            if wanted > self.room:
                self.address, self.room = _cleared(device, wanted), wanted
            return self.address

        def notify_shape(self, _name: str, shape: Sequence[int]) -> None:
            self.shape = [int(extent) for extent in shape]

    allocator = Allocator()
    context.set_output_allocator(name, allocator)
    return _Output(name, dtype, lambda: allocator.address, lambda: allocator.shape, by_data=True)


def _cleared(device: CudaDevice, length: int) -> int:
    """Return new memory; a kernel that does not write must not look right by the memory's earlier content."""
    address = device.allocate(length)
    device.clear(address, length, 0xFF)
    return address


def _as_taken(name: str, engine: Any, parts: Dict[str, bytes]) -> bytes:
    """Return an input's bytes in the element type that the engine takes, which may be narrower than the model's."""
    dtype = api.datatype_name(engine.get_tensor_dtype(name))
    try:
        return narrowed(parts[name], read_shape(parts["shape:" + name]), dtype)
    except ValueError as error:
        raise Failed("input %s %s" % (name, error)) from error


def _enqueue(context: Any, device: CudaDevice) -> None:
    if not said(context.execute_async_v3, device.stream):
        raise Failed("execute_async_v3 refused")


def _execute(context: Any, device: CudaDevice) -> None:
    _enqueue(context, device)
    device.synchronize()


def _emit_outputs(outputs: List[_Output], device: CudaDevice, emit: Emit) -> None:
    for output in outputs:
        shape = list(output.shape())
        data = device.download(output.address(), size(output.dtype, shape))
        emit("output", data, name=output.name, dtype=output.dtype, shape=shape)


def _inspect(engine: Any, context: Any, emit: Emit) -> None:
    inspector = engine.create_engine_inspector()
    inspector.execution_context = context
    text = inspector.get_engine_information(api.trt.LayerInformationFormat.JSON)
    emit("layers", text.encode(), source="inspector")


def _time(context: Any, device: CudaDevice, timing: Dict[str, Any], emit: Emit, *, graph: bool) -> None:
    """Time the engine by a CUDA graph of one run, so that its time is not that of its launches; else by launches."""
    enqueue: Callable[[], None] = functools.partial(_enqueue, context, device)
    clock, scope, once = "cuda_events", "one execute_async_v3, tensors on the device", enqueue
    with contextlib.ExitStack() as held:
        captured = _captured(enqueue, device, emit) if graph else None
        if captured is not None:
            once = held.enter_context(captured).launch
            clock, scope = "cuda_graph", "one launch of the engine's CUDA graph, tensors on the device"
        watch = held.enter_context(Stopwatch(device))
        fields = gpu.latency(lambda: watch.time(once), device.uuid(), timing)
    emit("latency", clock=clock, scope=scope, **fields)


def _captured(enqueue: Callable[[], None], device: CudaDevice, emit: Emit) -> Optional[CudaGraph]:
    """Return one run of the engine as a graph; None, and say why, if it cannot be captured.

    An engine that waits for its own data is as good as others: its complaints are not heard.
    """
    known = len(cuda.errors)
    try:
        with api.unheard():
            return CudaGraph(device, enqueue)
    except (CudaError, Failed) as error:
        del cuda.errors[known:]
        emit("message", severity="INFO", text="timed without a CUDA graph: %s" % error)
        return None


def _profile(context: Any, device: CudaDevice, emit: Emit, runs: int = 10) -> None:
    times: Dict[str, List[float]] = {}

    class Profiler(api.trt.IProfiler):  # type: ignore[misc]
        def __init__(self) -> None:
            api.trt.IProfiler.__init__(self)

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            times.setdefault(layer_name, []).append(ms)

    # The engine keeps no reference to the profiler; all bindings looked at do.
    profiler = Profiler()
    context.profiler = profiler
    for _ in range(runs):
        _execute(context, device)
    emit("layer_times", times=times)

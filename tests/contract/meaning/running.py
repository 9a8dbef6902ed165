"""What every run has to do with memory, streams and the context before an output may be believed."""

from __future__ import annotations

import array
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.contract.meaning.job import Job
from tests.contract.traces import Call

_BITS = {"FLOAT": 32, "HALF": 16, "INT32": 32, "BOOL": 8, "FP8": 8, "INT4": 4, "FP4": 4}
#: What the parser narrows: the codes of the wide and the narrow numbers.
_NARROWED = {"INT32": ("q", "i"), "FLOAT": ("d", "f")}
#: How often the contract's job runs the engine: for its numbers, at least twice for its latency, ten times by layer.
_RUNS = 1 + 2 + 10
#: What may be timed.
_WORK = re.compile("IExecutionContext.execute|cuMemcpy|cuMemset")


@dataclass
class _Memory:
    """What the device holds so far, as the calls say."""

    sizes: dict[str, int] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, str] = field(default_factory=dict)
    holds: dict[str, str] = field(default_factory=dict)
    filled: dict[str, str] = field(default_factory=dict)
    #: The stream of an enqueue, and of a copy to or from the device, that nothing has waited for.
    running: str = ""
    copying: str = ""
    fetched: tuple[str, str] = ("", "")
    runs: int = 0


def tensors(job: Job) -> tuple[dict[str, bytes], dict[str, int]]:
    """Return what a run's inputs hold in the engine's type, and how many bytes its outputs have."""
    answer = job.scenario.answers.get("ICudaEngine.get_tensor_dtype", {"enum": "DataType.FLOAT"})
    kind = answer["enum"].partition(".")[2]
    names = ("x", "y", "x2", "y2")[: job.scenario.answers.get("ICudaEngine.num_io_tensors", 2)]
    inputs = {name: _narrowed(job, name, kind) for name in names if name.startswith("x")}
    return inputs, {name: -(-2 * _BITS.get(kind, 32) // 8) for name in names if name.startswith("y")}


def _shape(job: Job, name: str) -> list[int]:
    return [int(extent) for extent in re.findall(r"\d+", job.scenario.parts[f"shape:{name}"])]


def _narrowed(job: Job, name: str, kind: str) -> bytes:
    data, count = job.part(name), 1
    for extent in _shape(job, name):
        count *= extent
    if kind in _NARROWED and len(data) == 8 * count:
        wide, narrow = _NARROWED[kind]
        return array.array(narrow, array.array(wide, data)).tobytes()
    return data


def runs(job: Job) -> Iterator[str]:
    """Every enqueue finds every tensor at an address of its own with its bytes; every output comes from its own.

    What the enqueue does is waited for before an output is fetched, and the fetch before the output is believed.
    """
    if job.kind != "run":
        return
    inputs, outputs = tensors(job)
    memory, told = _Memory(), []
    for call in job.trace:
        if call.call == "IExecutionContext.execute_async_v3":
            memory.runs += 1
            memory.running = call.arguments[0]
            yield from filter(None, _at_enqueue(job, memory, call, inputs, outputs))
        elif call.call == "cuMemcpyDtoHAsync_v2":
            if memory.running:
                yield "an output is fetched before the run was waited for"
            memory.fetched, memory.copying = (call.arguments[1], call.arguments[2]), call.arguments[3]
        elif call.call == "emit" and call.arguments[0] == '"output"':
            name = call.arguments[1].strip('"')
            told.append(name)
            yield from _at_output(memory, name, outputs)
        else:
            _follow(memory, call)
    if job.done and memory.runs < _RUNS:
        yield f"the engine is run {memory.runs} times, not {_RUNS} or more"
    if job.done and sorted(told) != sorted(outputs):
        yield f"the outputs that are told are {told}, not {sorted(outputs)}"


def _follow(memory: _Memory, call: Call) -> None:
    """Keep what a call changes on the device."""
    given = call.arguments
    if call.call == "cuMemAlloc_v2":
        memory.sizes[call.result] = int(given[0])
    elif call.call == "IExecutionContext.set_tensor_address":
        memory.addresses[given[0].strip('"')] = given[1]
    elif call.call == "IExecutionContext.set_input_shape":
        memory.shapes[given[0].strip('"')] = given[1]
    elif call.call == "cuMemcpyHtoDAsync_v2":
        memory.holds[given[0]], memory.copying = call.data, given[3]
    elif call.call == "cuMemsetD8Async":
        memory.filled[given[0]] = f"{given[2]} bytes of {given[1]}"
    elif call.call == "cuStreamSynchronize":
        memory.running = "" if memory.running == given[0] else memory.running
        memory.copying = "" if memory.copying == given[0] else memory.copying
    elif call.call == "cuEventSynchronize":
        # Recorded behind the enqueue; `times` says so.
        memory.running = memory.copying = ""


def _at_enqueue(
    job: Job, memory: _Memory, call: Call, inputs: dict[str, bytes], outputs: dict[str, int]
) -> Iterator[str]:
    if not re.fullmatch(r"stream#\d+", call.arguments[0]):
        yield f"the run is put on the stream {call.arguments[0]}, which is not the device's"
    if memory.copying:
        yield "the run begins before an input's copy was waited for"
    for name, data in inputs.items():
        yield _misplaced(memory, name, len(data)) or (
            ""
            if memory.holds.get(memory.addresses[name]) == data.hex()
            else f"{name} does not hold its bytes when the engine runs"
        )
        if memory.shapes.get(name) != str(_shape(job, name)):
            yield f"{name} is given the shape {memory.shapes.get(name)}, not {_shape(job, name)}"
    for name, size in outputs.items():
        yield _misplaced(memory, name, size) or (
            ""
            if memory.filled.get(memory.addresses[name]) == f"{size} bytes of 255"
            else f"{name} may hold what looks right before the engine runs"
        )


def _misplaced(memory: _Memory, name: str, size: int) -> str:
    """Return what is wrong with a tensor's address; "" where nothing."""
    address = memory.addresses.get(name)
    if address is None:
        return f"{name} has no address when the engine runs"
    if address not in memory.sizes:
        return f"{name} is at {address}, which is not an allocation of the device"
    if memory.sizes[address] < size:
        return f"{name} takes {size} bytes and has {memory.sizes[address]}"
    shared = list(memory.addresses.values()).count(address) > 1
    return f"{name} shares its address with another tensor" if shared else ""


def _at_output(memory: _Memory, name: str, outputs: dict[str, int]) -> Iterator[str]:
    address, size = memory.fetched
    if address != memory.addresses.get(name):
        yield f"what is told as {name} was fetched from {address or 'nowhere'}, not {memory.addresses.get(name)}"
    elif size != str(outputs.get(name)):
        yield f"{size} bytes of {name} are fetched, not {outputs.get(name)}"
    if memory.copying:
        yield f"{name} is told before its copy was waited for"


def plan(job: Job) -> Iterator[str]:
    """The runtime is given the job's plan."""
    for _, call in job.find("Runtime.deserialize_cuda_engine"):
        if bytes.fromhex(call.data) != job.part("plan"):
            yield "the runtime is not given the job's plan"


def times(job: Job) -> Iterator[str]:
    """A time is that from an event to a later one, with the work between them, and the later one waited for."""
    for at, call in job.find("cuEventElapsedTime"):
        begin, end = (_last(job, at, "cuEventRecord", event) for event in call.arguments)
        if not -1 < begin < end:
            yield "a time is taken to an event from a later one"
        elif not any(_WORK.match(each.call) for each in job.trace[begin:end]):
            yield "a time is taken of nothing"
        elif _last(job, at, "cuEventSynchronize", call.arguments[1]) < end:
            yield "a time is taken before its end was waited for"


def _last(job: Job, before: int, name: str, event: str) -> int:
    """Return the place of the last such call of an event, -1 where there is none."""
    return max((at for at, call in job.find(name) if at < before and call.arguments[0] == event), default=-1)


def inspection(job: Job) -> Iterator[str]:
    """The layers are told of the context that ran, as JSON, and their times by a profiler that the context has."""
    for at, call in job.find("EngineInspector.get_engine_information"):
        if call.arguments != ("LayerInformationFormat.JSON",):
            yield f"layers are told as {call.arguments}"
        if not job.before(at, "EngineInspector.execution_context ="):
            yield "the inspector is not given the context"
    if job.kind == "run" and job.done:
        if not list(job.find("EngineInspector.get_engine_information")):
            yield "the layers are not asked for"
        set_at = [at for at, _ in job.find("IExecutionContext.profiler =")]
        runs_after = [
            at for at, _ in job.find("IExecutionContext.execute_async_v3") if set_at and at > set_at[0]
        ]
        timed_after = [at for at, _ in job.find("cuEventElapsedTime") if set_at and at > set_at[0]]
        if not runs_after or timed_after:
            yield "the profiler is not what the last runs alone have"


def preflight(job: Job) -> Iterator[str]:
    """A preflight that is done has tried each thing that a cell needs, and the GPU where there has to be one."""
    if job.kind != "preflight" or not job.done:
        return
    wanted = ["Builder", "Builder.create_network", "OnnxParser", "Builder.create_builder_config"]
    if job.scenario.job["needs_gpu"]:
        wanted += [
            "cuMemAlloc_v2",
            "cuMemcpyHtoDAsync_v2",
            "cuMemcpyDtoHAsync_v2",
            "cuEventElapsedTime",
            "Runtime",
        ]
    for name in wanted:
        if not list(job.find(name)):
            yield f"{name} is not tried"


RULES = (runs, plan, times, inspection, preflight)

"""What may not end while something else still uses it, and what has to be given back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.contract.meaning.job import Job

#: What an object uses to its own end.
_NEEDS = {
    "Builder": ("ILogger",),
    "OnnxParser": ("ILogger",),
    "Runtime": ("ILogger",),
    "ICudaEngine": ("Runtime",),
    "IExecutionContext": ("ICudaEngine", "IProfiler"),
    "IBuilderConfig": ("IInt8EntropyCalibrator2", "IInt8MinMaxCalibrator"),
    "IPluginRegistry": ("IPluginCreator", "IPluginCreatorV3One"),
}
#: What takes something from CUDA, and what gives it back.
_GIVEN_BACK = {
    "cuMemAlloc_v2": "cuMemFree_v2",
    "cuMemHostAlloc": "cuMemFreeHost",
    "cuStreamCreate": "cuStreamDestroy_v2",
    "cuEventCreate": "cuEventDestroy_v2",
}
#: The name of what was taken, in an argument or a result.
_NAME = re.compile(r"(?:device|pinned|stream|event)#\d+")
_CONTEXT = ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2")


def objects(job: Job) -> Iterator[str]:
    """No object ends before another that uses it."""
    users: dict[str, list[str]] = {}
    for call in job.trace:
        if call.call == "freed":
            (name,) = call.arguments
            yield from (f"{name} is freed while {user} still uses it" for user in users.pop(name, []))
            for others in users.values():
                others[:] = [user for user in others if user != name]
        for user in {call.on, call.result}:
            for used in {call.on, *call.arguments} - {user}:
                if used.partition("#")[0] in _NEEDS.get(user.partition("#")[0], ()):
                    users.setdefault(used, []).append(user)


def memory(job: Job) -> Iterator[str]:
    """Nothing of CUDA's is used after it was given back, by a call or by a context that has its address."""
    gone: set[str] = set()
    addresses: dict[str, str] = {}
    for call in job.trace:
        used = {name for text in (*call.arguments, call.result) for name in _NAME.findall(text)}
        if call.call == "IExecutionContext.set_tensor_address":
            addresses[call.arguments[0]] = call.arguments[1]
        if call.call == "IExecutionContext.execute_async_v3":
            used |= set(addresses.values())
        yield from (f"{name} is used by {call.call} after it was freed" for name in sorted(used & gone))
        if call.call in _GIVEN_BACK.values():
            gone |= used


def idle(job: Job) -> Iterator[str]:
    """The device's memory is given back after what runs on it has ended."""
    running = False
    for call in job.trace:
        running = running or call.call == "IExecutionContext.execute_async_v3"
        if call.call in ("cuStreamSynchronize", "cuEventSynchronize"):
            running = False
        if job.done and running and call.call == "cuMemFree_v2":
            yield f"{call.arguments[0]} is freed while the engine runs"


def given_back(job: Job) -> Iterator[str]:
    """A job that is done has given back all that it took of the device; its plugin, which TensorRT owns, none."""
    if not job.done:
        return
    for take, give in _GIVEN_BACK.items():
        back = {call.arguments[0] for _, call in job.find(give)}
        yield from (
            f"{call.result} is never given back" for _, call in job.find(take) if _taken(call.result, back)
        )
    taken, released = (len(list(job.find(name))) for name in _CONTEXT)
    engines = [at for at, call in job.find("freed") if call.arguments[0].startswith("ICudaEngine")]
    releases = [at for at, _ in job.find(_CONTEXT[1])]
    if taken != released:
        yield f"the device's context is taken {taken} times and given back {released} times"
    elif job.kind == "run" and (not engines or max(engines) > max(releases)):
        yield "the device's context is given back before the engine is freed"


def _taken(result: str, back: set[str]) -> bool:
    return "#" in result and result not in back


RULES = (objects, memory, idle, given_back)

"""What TensorRT has to be given when it calls back: a calibrator's batches, a plugin's attribute and copy."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from tests.contract.meaning.job import Job

_SCALES = (1.0, 0.5, 0.75, 0.25)
#: What plugins and creators hold as their attribute `formats`, and what is tried before any: text and closing zero.
_ATTRIBUTES = {b"formats", b"\0", b"int8_linear\0"}


def batches(job: Job) -> Iterator[str]:
    """A calibrator gives each batch of the recipe by a device address to which its bytes were copied, then none."""
    asked = job.recipe["calibrator"]
    if not asked or not job.done or job.scenario.fails:
        return
    data = job.part(next(name for name in job.scenario.parts if name not in ("model", "plan")))
    own = job.part("calibration:x") if asked.get("data") else b""
    given = list(job.find("get_batch"))
    if len(given) != asked["batches"] + 1 or given[-1][1].result:
        yield f"the calibrator gives {len(given) - 1} batches, not {asked['batches']}"
    for number, (at, call) in enumerate(given[:-1]):
        where = call.result.strip("[]")
        if asked["fault"] == "host_pointer":
            if where != "host":
                yield f"a batch that is to be on the host is at {where}"
            continue
        if not re.fullmatch(r"device#\d+", where):
            yield f"a batch's address is {where}, which is not an allocation of the device"
            continue
        copied = [(inner.call, inner.data) for inner in job.within(at) if inner.call.startswith("cuMemcpy")]
        length = len(own) // asked["batches"]
        batch = own[number * length :][:length] if own else _batch(data, number, asked["fault"])
        if copied != [("cuMemcpyHtoDAsync_v2", batch.hex())]:
            yield f"batch {number} is not what is copied to its address"
        elif job.within(at)[-1].call != "cuStreamSynchronize":
            yield f"batch {number} is given before its copy was waited for"


def _batch(data: bytes, number: int, fault: str | None) -> bytes:
    scaled = [value * _SCALES[number % len(_SCALES)] for value in struct.unpack(f"<{len(data) // 4}f", data)]
    scaled = scaled[::2] if fault == "non_contiguous" else scaled
    return struct.pack(f"<{len(scaled)}{'d' if fault == 'float64' else 'f'}", *scaled)


def cache(job: Job) -> Iterator[str]:
    """What the calibrator was given to keep is handed on."""
    handed = [call.data for _, call in job.find("emit") if call.arguments[0] == '"calibration_cache"']
    wanted = [b"cache".hex()] if job.recipe["calibrator"] and job.kind == "build" else []
    if job.done and handed != wanted:
        yield f"{len(handed)} calibration caches are handed on, not {len(wanted)}"


def attributes(job: Job) -> Iterator[str]:
    """A plugin's one attribute is characters, and holds the formats with a closing zero."""
    for _, call in job.find("PluginField"):
        name, _, kind = call.arguments
        if kind != "PluginFieldType.CHAR" or name != '"formats"':
            yield f'a plugin\'s attribute is {name} of {kind}, not "formats" of PluginFieldType.CHAR'
        if bytes.fromhex(call.data) not in _ATTRIBUTES:
            yield f"a plugin's attribute holds {bytes.fromhex(call.data)!r}"


def copies(job: Job) -> Iterator[str]:
    """The plugin puts the copy of its input, all of it, to its output on the stream that it is given."""
    for at, call in job.find("enqueue"):
        source, target, stream = (text.strip("[]") for text in call.arguments)
        made = [inner.arguments for inner in job.within(at) if inner.call.startswith("cuMemcpy")]
        if made != [(target, source, "2", stream)]:
            yield f"the plugin copies {made}, not 2 bytes from {source} to {target} on {stream}"


RULES = (batches, cache, attributes, copies)

"""What the first 64 bytes of an engine of TensorRT for RTX say of it: read off engines of four versions."""

from __future__ import annotations

from typing import NamedTuple

#: Found by building for one generation at a time; 1.4 knows no SM121.
GENERATIONS = ("SM75", "SM80", "SM86", "SM89", "SM120", "SM121")
_MAGIC, _VERSION, _GENERATIONS = slice(4), slice(24, 28), slice(32, 36)


class Header(NamedTuple):
    """The version that built the engine, and the bits of the generations that it is for."""

    version: str
    bits: int


def parse(data: bytes) -> Header | None:
    """Return what the header of an engine says, or None for what is none."""
    if len(data) < _GENERATIONS.stop or data[_MAGIC] != b"vtrt":
        return None
    version = ".".join(str(part) for part in data[_VERSION])
    return Header(version, int.from_bytes(data[_GENERATIONS], "little"))

"""Read files packed by xz and gzip within bounds: no more than `LIMIT` bytes of any are unpacked."""

from __future__ import annotations

import errno
import zlib
from pathlib import Path

from harness.bounded import read_bytes
from harness.errors import HandledError, InfraError

try:
    import lzma
except ImportError:  # A Python built without liblzma runs everything but xz files.
    lzma = None  # type: ignore[assignment]

#: Bytes that one packed file may unpack to.
LIMIT = 256 << 20
#: Tells zlib that its data has gzip's head.
_GZIP = 16 + zlib.MAX_WBITS
#: Bytes of memory for unpacking: as many as preset 9 needs, in case another program packed the file with it.
_MEMORY = 80 << 20


def compress(name: str, data: bytes) -> bytes:
    """Return data packed by itself; an error for too much data calls it `name`."""
    _need_lzma(name)
    if len(data) > LIMIT:
        raise HandledError(
            f"{name}: {len(data) >> 20} MiB, and a packed file may hold {LIMIT >> 20} MiB; take fewer cells"
        )
    # Preset 9 needs 674 MB to pack and saves not a tenth of a per cent of a run.
    return lzma.compress(data, lzma.FORMAT_XZ)


def decompress(path: Path, limit: int | None = None) -> bytes:
    """Return the content of an xz file; raises InfraError if it is damaged, or holds more bytes than the limit."""
    _need_lzma(str(path))
    limit = limit or LIMIT
    try:
        # Incompressible data become a little longer.
        packed = read_bytes(path, 2 * limit)
    except OSError as error:
        raise InfraError(f"{path}: cannot be read ({error.strerror})") from error
    reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, _MEMORY)
    try:
        found = reader.decompress(packed, limit + 1)
    except lzma.LZMAError as error:
        raise _damaged(path, str(error)) from error
    if len(found) > limit:
        raise _damaged(path, f"it unpacks to more than {limit >> 20} MiB")
    if not reader.eof:
        raise _damaged(path, "it is cut short")
    if reader.unused_data:
        raise _damaged(path, "something follows its end")
    return found


def inflate(path: Path) -> bytes:
    """Return the content of a gzip file; raises OSError if it is damaged, or holds more than the limit."""
    reader = zlib.decompressobj(_GZIP)
    try:
        found = reader.decompress(read_bytes(path, 2 * LIMIT), LIMIT + 1)
    except zlib.error as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    if len(found) > LIMIT:
        raise OSError(errno.EFBIG, f"it unpacks to more than {LIMIT >> 20} MiB", str(path))
    if not reader.eof or reader.unused_data:
        raise OSError(errno.EINVAL, "it is cut short, or something follows its end", str(path))
    return found


def _need_lzma(name: str) -> None:
    if lzma is None:
        raise HandledError(f"{name}: this Python was built without lzma; use one that has it")


def _damaged(path: Path, why: str) -> InfraError:
    return InfraError(f"{path}: cannot be unpacked ({why}); get it again from where it came from")

"""What all targets of fuzzing share: files that hold an input, a cell, archives made by hand."""

from __future__ import annotations

import io
import lzma
import tarfile
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

#: Reads bytes that may be anything.
Read = Callable[[bytes], object]

TOP = Path(__file__).resolve().parents[2]
#: Parts the members of one input: no JSON and no text of an engine holds it.
PART = b"\0\0"
#: Stands in an input for the id of the job that is under way, or for the hash of the log that is in it.
JOB, LOG = b"the id of a job.", b"0" * 64


@cache
def scratch() -> Path:
    """Return a folder of this process for the files that readers open; it goes when the process ends."""
    _KEPT.append(tempfile.TemporaryDirectory(prefix="trt-compat-fuzz-"))
    return Path(_KEPT[0].name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def of_file(name: str, read: Callable[[Path], object]) -> Read:
    """Return a reader of bytes that reads the file that holds them."""
    path = scratch() / name
    path.parent.mkdir(parents=True, exist_ok=True)

    def reader(data: bytes) -> None:
        path.write_bytes(data)
        read(path)

    return reader


@cache
def toy() -> Any:
    """Return a cell of a quantised convolution, and its variant made ready."""
    from harness.case import Case, Graph, Link, Precision, Variant
    from harness.matrix import load_matrix
    from harness.plan import all_cells
    from harness.run.prepared import prepare_variant

    def conv() -> Any:
        g = Graph("conv")
        x, w = g.qdq(g.input("x", [1, 4, 8, 8]), name="/x", scale=0.01), g.weight("w", (4, 4, 3, 3))
        g.conv(x, g.weight_qdq(w, name="/w"), name="/conv", output="z")
        g.node("Relu", ["z"], name="/act", output="y")
        g.output("y", [1, 4, 8, 8])
        return g.model()

    variant = Variant("int8", "In INT8", conv, precision=(("/conv", Precision.INT8),))
    case = Case("toy", "A toy", "For tests.", (Link("https://example.org/1", "one"),), (variant,))
    cells = all_cells(load_matrix(TOP / "matrix.yaml"), [case])
    return next(each for each in cells if each.target.name == "trt86"), prepare_variant(variant)


def packed(data: bytes) -> bytes:
    """Return bytes as an archive has them, in the quickest form that its reader takes: they are not about xz."""
    return lzma.compress(data, lzma.FORMAT_XZ, lzma.CHECK_NONE, preset=0)


def tar(files: dict[str, bytes]) -> bytes:
    """Return files as the members of an archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()

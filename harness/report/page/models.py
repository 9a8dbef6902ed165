"""The models that the page holds: bytes that several of them share, such as weights, are written once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import onnx
from google.protobuf.message import DecodeError

from harness.report.page.packing import squeeze

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A model of so many bytes is in the page, so that it needs no file beside it, and so many bytes of models altogether:
#: the smallest first.
LONGEST_MODEL, MOST_MODELS = 64 << 10, 1 << 20
#: Weights of fewer bytes are left where they stand: naming their place takes as much.
_WORTH_SHARING = 64


class Held(NamedTuple):
    """Models in one: what is packed, and by the file's name start and length of each of its pieces in that."""

    packed: str
    places: Mapping[str, list[tuple[int, int]]]


def held(models: Mapping[str, bytes]) -> Held:
    """Return the models that the page holds, of those that are given by their place; equal ones count once."""
    cut: dict[str, list[bytes]] = {}
    last, total = b"", 0
    for name, data in sorted(models.items(), key=lambda entry: (len(entry[1]), entry[1], entry[0])):
        total += 0 if data == last else len(data)
        if len(data) > LONGEST_MODEL or total > MOST_MODELS:
            break
        last = data
        cut[name.rpartition("/")[2]] = _pieces(data)
    # Graphs are shorter than weights, and alike: zlib sees no farther back than 32 KiB.
    pieces = sorted(
        {piece for every in cut.values() for piece in every}, key=lambda piece: (len(piece), piece)
    )
    starts: dict[bytes, int] = {}
    end = 0
    for piece in pieces:
        starts[piece] = end
        end += len(piece)
    places = {name: [(starts[piece], len(piece)) for piece in every] for name, every in cut.items()}
    return Held(squeeze(b"".join(pieces)), places)


def _pieces(data: bytes) -> list[bytes]:
    """Cut a model before and behind each of its weights; what is no model is one piece."""
    try:
        weights = [tensor.raw_data for tensor in onnx.load_model_from_string(data).graph.initializer]
    except DecodeError:
        return [data]
    pieces, at = [], 0
    for weight in weights:
        start = data.find(weight, at) if len(weight) >= _WORTH_SHARING else -1
        if start >= 0:
            pieces += [data[at:start], weight]
            at = start + len(weight)
    return [piece for piece in (*pieces, data[at:]) if piece]

"""How the time to read an engine's text grows with the text: near misses, made of each part cut short and repeated.

    .venv/bin/python -m benchmarks.parser_growth [CHARACTERS]

Prints, for each reader of layers and for the patterns of diagnosis.yaml, the most that a text eight times as long took
over the shorter one (8 is linear, 64 square, 512 cubic; the best of three each), and the text that it was.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.hostile import hostile
from harness.judge.diagnosis import load_signatures
from harness.layers import Source, parse_layers
from harness.record.outcome import Node

NODES = tuple(Node(name, "Conv") for name in ("a", "b", "c", "conv"))
_TENSOR = "{ Name: x, Location: Device, Dimensions: [1,8], Format/Datatype: Half }"
#: How a text begins, and one layer of it.
_WHOLE: dict[Source, tuple[str, str]] = {
    "verbose_log": (
        "Layers:\n",
        f"Name: a, LayerType: conv, Inputs: [ {_TENSOR}], Outputs: [{_TENSOR}], Metadata: [ONNX Layer: a]",
    ),
    "log_8x": (
        "Layer(Conv): ",
        "Layer(Conv): {ForeignNode[a...b + c]}, Tactic: 0x0, x[Float(1,8)], y (Half[1,8]) -> z[Int8(8)]",
    ),
    "inspector": (
        '{"Layers": [',
        '{"Name": "a", "Inputs": [{"Name": "x", "Dimensions": [1, 8]}], "Metadata": "[ONNX Layer: a]"},',
    ),
}
_RUNS = (" ", "\n", ",", "[", "(", '"', "a", "1", "1,", "->", " -> ", "...")
#: Shorter than this nothing is measured but the machine.
_LEAST_SECONDS = 0.02


def layer_texts(source: Source, length: int) -> Iterator[str]:
    """Yield texts of about `length` characters: a layer up to each of its words, repeated, or run on with one sign."""
    begin, whole = _WHOLE[source]
    ends = [end for end in range(1, len(whole) + 1) if not whole[end - 1 : end + 1].isalnum()]
    cuts = [whole[:end] for end in ends]
    for unit in (*_RUNS, *cuts, *(f"{cut}\n" for cut in cuts)):
        yield begin + unit * (length // len(unit)) + "\n."
    for cut in cuts:
        for run in _RUNS:
            yield begin + cut + run * (length // len(run)) + "\n. LayerType: "


def seconds(work: Callable[[], object]) -> float:
    """Return the processor's time for it, the best of three."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def growth(work: Callable[[str], object], short: str, long: str) -> float:
    """Return how many times the time of the one the other takes; 0 where that is too short to tell."""
    took = seconds(partial(work, long))
    return took / max(seconds(partial(work, short)), 1e-6) if took > _LEAST_SECONDS else 0.0


def _worst(name: str, pairs: Iterator[tuple[Callable[[str], object], str, str]]) -> None:
    found = [(growth(*pair), pair[1]) for pair in pairs]
    ratio, text = max(found)
    print(f"| {name} | {len(found)} | {ratio:.1f} | `{text[:80]!r}` |", flush=True)


def main() -> None:
    """Measure each reader and print a table."""
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print("| reader | texts | 8 times the text takes, at most | text |")
    print("| --- | ---: | ---: | --- |")
    for source in _WHOLE:
        read = partial(parse_layers, source, nodes=NODES)
        texts = zip(layer_texts(source, length), layer_texts(source, 8 * length), strict=True)
        _worst(source, ((read, short, long) for short, long in texts))
    searches = [pattern.regex for signature in load_signatures() for pattern in signature.patterns]
    pairs = (
        (regex.search, short, long)
        for regex in searches
        for short, long in zip(
            hostile(regex.pattern, length), hostile(regex.pattern, 8 * length), strict=True
        )
    )
    _worst("diagnosis.yaml", pairs)


if __name__ == "__main__":
    main()

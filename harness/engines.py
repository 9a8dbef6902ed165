"""The nature of each engine, as far as the harness depends on it: one row of `ENGINES` each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.words import Engine


@dataclass(frozen=True)
class Traits:
    """An engine's names and abilities.

    product: its name.
    short: its name in a series of versions.
    adapter: its module in harness/agent/engines.
    program: the vendor's own program in its images, with its options.
    by_major: its columns are grouped by major version.
    needs_gpu: it needs a GPU to build.
    for_generation: it builds for a named compute capability.
    builds_apart: a build job makes the file that a run job loads; other engines build and run in one job.
    graph_alone: it ignores a recipe's other parts.
    providers: its execution providers, the default first.
    baseline: the others' graphs and numbers are held against it, and it need not keep a precision.
    takes_plugins: a network may hold operators of the user's own.
    strong_from: the first version that takes strongly typed networks.
    strong_alone_from: the first version without weakly typed networks and builder flags for a precision.
    tabled: its vendor publishes the operators and types of each release's parser (harness/matrix/operators.tsv).
    interface_known: the names of its own interface are known by version (harness/matrix/interface.tsv).
    """

    product: str
    short: str
    adapter: str
    program: str | None = None
    by_major: bool = False
    needs_gpu: bool = False
    for_generation: bool = False
    builds_apart: bool = True
    graph_alone: bool = False
    providers: tuple[str, ...] = ()
    baseline: bool = False
    takes_plugins: bool = False
    strong_from: str = "0"
    strong_alone_from: str = "0"
    tabled: bool = False
    interface_known: bool = False


ENGINES: Mapping[Engine, Traits] = {
    Engine.TENSORRT: Traits(
        product="TensorRT",
        short="TensorRT",
        adapter="tensorrt",
        program="trtexec",
        by_major=True,
        needs_gpu=True,
        takes_plugins=True,
        strong_from="9",
        strong_alone_from="11",
        tabled=True,
        interface_known=True,
    ),
    Engine.TENSORRT_RTX: Traits(
        product="TensorRT for RTX",
        short="RTX",
        adapter="tensorrt",
        for_generation=True,
        strong_alone_from="1.5",
    ),
    Engine.ONNXRUNTIME: Traits(
        product="ONNX Runtime",
        short="ONNX Runtime",
        adapter="onnxruntime",
        builds_apart=False,
        graph_alone=True,
        providers=("cpu", "cuda"),
        baseline=True,
    ),
}


def those_that(trait: str) -> str:
    """Return the names of the engines that have a trait, as a sentence lists them."""
    return " and ".join(str(engine) for engine, traits in ENGINES.items() if getattr(traits, trait))

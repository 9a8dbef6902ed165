"""Makes a variant of a model file: its recipe follows from its own types, the precisions wanted from its own Q/DQ."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from harness.case import Case, Recipe, Typing, Variant
from harness.case.model import Built, Data, check_flags, serialise
from harness.errors import HandledError
from harness.judge.cell import Judged
from harness.layers.asked import asked, wished
from harness.models.answers import of_sizes
from harness.models.own.shapes import Shapes, free_extents, in_words, is_batch_alone, profiles, runs_at
from harness.models.reading import bounded, count_quantisers, inner_nodes, invalid, opsets_used, read_beside
from harness.record.outcome import Node
from harness.run.prepared import Weights
from harness.words import Precision

_REMEDY = "give the path of an .onnx file"
_OTHER = re.compile(r"[^a-z0-9_.-]+")
#: The builder flag that permits a type, if a version is weakly typed.
_FLAGS = {
    "int8": "INT8",
    "uint8": "INT8",
    "fp8": "FP8",
    "int4": "INT4",
    "fp4": "FP4",
    "fp16": "FP16",
    "bf16": "BF16",
}


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Wanted:
    """The wishes for all models: how they are typed, which precision, and shapes.

    `nodes` is "auto" for all that each graph's own types ask, "none" for no node. `flags` are builder flags beside
    those that the graph's types need. `max_rel` and `cosine` are how far an output may be off, None for as far as its
    precision allows. `arrays` are the shapes of the given inputs, which set the sizes of dynamic ones. Raises
    HandledError for a flag that no version has, and an impossible figure.
    """

    typing: Typing = Typing.GRAPH
    flags: tuple[str, ...] = ()
    nodes: str = "auto"
    shapes: Shapes = field(default_factory=Shapes)
    max_rel: float | None = None
    cosine: float | None = None
    arrays: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_flags("--flag", self.flags)
        if self.max_rel is not None and not (_is_figure(self.max_rel) and 0 <= self.max_rel < math.inf):
            raise HandledError(f"{self.max_rel} is no max-rel: give a number from 0 on, and no infinity")
        if self.cosine is not None and not (_is_figure(self.cosine) and -1 <= self.cosine <= 1):
            raise HandledError(f"{self.cosine} is no cosine: give a number from -1 to 1")

    @property
    def data(self) -> Data | None:
        """Return how far outputs may be off, as a variant has it, unless that goes by their precision."""
        figures = [None if each is None else float(each) for each in (self.max_rel, self.cosine)]
        return None if figures == [None, None] else Data(max_rel=figures[0], cosine=figures[1])


@dataclass(frozen=True)
class OwnModel:
    """A model of the user's: `label` is its name to the user; `assumed` are sentences on all that was made up.

    Sentences on faults by ONNX's own rules stand there too.
    `weights` are those that stay in their files. `made_up` are the shapes of its dynamic inputs as --shapes takes them,
    "" if the user gives all, or only a batch is made up. `inner` counts the nodes of branches and loops, and
    `quantisers` all Q/DQ nodes.
    """

    label: str
    variant: Variant
    nodes: tuple[Node, ...]
    opset: str
    wishes: tuple[tuple[str, Precision], ...]
    assumed: tuple[str, ...] = ()
    made_up: str = ""
    weights: Weights | None = None
    inner: int = 0
    quantisers: int = 0


def load_own(path: Path, wanted: Wanted = Wanted(), *, name: str = "") -> OwnModel:
    """Return a model file as a variant called `name`, else after the file.

    It is read in a bounded child, for the libraries that read a stranger's model and infer its types may loop or crash.
    Raises HandledError for a file that is no model, for shapes that are not its, and for a pattern that names no node.
    """
    size = path.stat().st_size if path.is_file() else 0
    found, failed = bounded(_loaded, Path.cwd(), path, wanted, name, size=size)
    for own in found:
        if isinstance(own, OwnModel):
            return own
        raise HandledError(own)
    raise HandledError(f"{path}: cannot be read: the process that read it {failed}; {_REMEDY}")


def _loaded(folder: Path, path: Path, wanted: Wanted, name: str) -> Iterator[OwnModel | str]:
    """Yield the model, or a sentence if it cannot be read."""
    # The process that children are forked from has a folder of its own.
    os.chdir(folder)
    try:
        model, weights = read_beside(path, _REMEDY)
        own = own_model(model, str(path), wanted, name=name or word(path.stem))
        if weights is not None:
            said = f"{weights} of weights stay in their files; no reference is computed"
            own = replace(own, weights=weights, assumed=(*own.assumed, said))
        yield own
    except HandledError as error:
        yield str(error)


def own_model(model: onnx.ModelProto, label: str, wanted: Wanted, *, name: str) -> OwnModel:
    """Return a model in memory as `load_own` returns one of a file."""
    free_extents(model)
    nodes, shapes = asked(model), wanted.shapes.taken_from(model, wanted.arrays)
    made, assumed = profiles(label, model, shapes)
    recipe = Recipe(
        typing=wanted.typing,
        flags=()
        if wanted.typing is Typing.STRONG
        else tuple(dict.fromkeys((*flags_for(nodes), *wanted.flags))),
        profiles=made,
    )
    variant = Variant(
        name=name,
        title=label,
        build=Built(serialise(model)),
        recipe=recipe,
        precision=None if wanted.nodes == "auto" else (),
        data=wanted.data,
    )
    made_up = in_words(made) if assumed and not is_batch_alone(model, shapes) else ""
    return OwnModel(
        label,
        variant,
        nodes,
        opset=opsets_used(model),
        wishes=wished(variant, nodes),
        assumed=(*assumed, *invalid(model)),
        made_up=made_up,
        inner=sum(1 for _ in inner_nodes(model.graph)),
        quantisers=count_quantisers(model),
    )


def of_made_up_sizes(own: OwnModel, judged: Iterable[Judged]) -> list[Judged]:
    """Return the failures of a model that may come of sizes that were made up for it.

    If the reference evaluator runs the model at these sizes, it has them.
    """
    failed = of_sizes(judged) if own.made_up else []
    if not failed:
        return []
    shapes = {each.input: each.optimum for each in own.variant.recipe.profiles}
    data = own.variant.model_bytes()
    has_them, _ = bounded(_runs_at, data, shapes, size=len(data))
    return failed if has_them != [True] else []


def _runs_at(data: bytes, shapes: dict[str, tuple[int, ...]]) -> Iterator[bool]:
    yield runs_at(onnx.load_model_from_string(data), shapes)


def own_case(models: Sequence[OwnModel]) -> Case:
    """Return models as the variants of one case; raises HandledError if two have one name."""
    seen: dict[str, str] = {}
    for each in models:
        if each.variant.name in seen:
            raise HandledError(
                f"{each.label}: is called {each.variant.name!r} here, and so is {seen[each.variant.name]}; rename one"
            )
        seen[each.variant.name] = each.label
    return Case(
        "model", "Own models", "Models of whoever ran this.", (), tuple(each.variant for each in models)
    )


def word(text: str) -> str:
    """Return a text as a variant's name has it: small letters, digits, "-", "_" and "."."""
    return _OTHER.sub("-", text.lower()).strip("_.-") or "model"


def flags_for(nodes: Iterable[Node]) -> list[str]:
    """Return the builder flags that permit the types asked of nodes, if a version is weakly typed."""
    words = {node.precision.removesuffix("_weights") for node in nodes}
    return [flag for each, flag in _FLAGS.items() if each in words]

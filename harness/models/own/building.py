"""What the user gives for building: batches for a calibrator and libraries of plugins, checked and put into recipes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.bounded import LARGE, read_bytes
from harness.case import Calibrator, Typing
from harness.case.model import Library
from harness.errors import HandledError
from harness.layers.operators import MULTIPLYING
from harness.run.numbers.wire import Array, to_wire
from harness.words import Precision

if TYPE_CHECKING:
    from harness.models.own.data import Given
    from harness.models.own.model import OwnModel

_ELF = b"\x7fELF"


def read_libraries(paths: Iterable[Path]) -> tuple[tuple[Library, bytes], ...]:
    """Return compiled libraries with what a recipe says of them; raises HandledError for what is none."""
    found = []
    for path in paths:
        try:
            data = read_bytes(path, LARGE)
        except OSError as error:
            raise HandledError(
                f"--plugin {path}: cannot be read ({error.strerror}); give a compiled .so"
            ) from error
        if not data.startswith(_ELF):
            raise HandledError(f"--plugin {path}: is no shared library of Linux; give a compiled .so")
        found.append((Library(path.name, hashlib.sha256(data).hexdigest()), data))
    return tuple(found)


def built_with(model: OwnModel, given: Given) -> OwnModel:
    """Return a model whose recipe has the calibrator and the libraries that the user gives.

    With a calibrator all nodes that multiply are to run in INT8, where neither the graph nor the user says otherwise.
    """
    recipe, variant = model.variant.recipe, model.variant
    libraries = tuple(library for library, _ in given.libraries)
    if not given.calibration:
        return replace(model, variant=replace(variant, recipe=replace(recipe, libraries=libraries)))
    if recipe.typing is Typing.STRONG:
        raise HandledError(
            "--calibration: a strongly typed network takes no calibrator; leave out --typing strong"
        )
    many = len(next(iter(given.calibration.values())))
    recipe = replace(
        recipe,
        flags=tuple(dict.fromkeys((*recipe.flags, "INT8"))),
        calibrator=Calibrator("entropy", batches=many, data=_sha256(given.calibration)),
        libraries=libraries,
    )
    assumed, wishes = model.assumed, model.wishes
    if any(node.precision not in ("", "fp16", "bf16") for node in model.nodes):
        assumed = (*assumed, "it has Q/DQ: TensorRT takes its scales from there and asks no calibrator")
    elif variant.precision is None:
        wishes = tuple((node.name, Precision.INT8) for node in model.nodes if node.op in MULTIPLYING)
        variant = replace(variant, precision=wishes)
    return replace(model, variant=replace(variant, recipe=recipe), wishes=wishes, assumed=assumed)


def _sha256(arrays: Mapping[str, Array]) -> str:
    found = hashlib.sha256()
    for name in sorted(arrays):
        dtype, shape, data = to_wire(arrays[name])
        found.update(repr((name, dtype, shape)).encode())
        found.update(data)
    return found.hexdigest()

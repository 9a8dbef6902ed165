"""The user's own data for building a model: batches for a calibrator, and libraries of plugins."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.agent.calibration import Batches
from harness.case import Typing
from harness.errors import HandledError
from harness.models.own.data import Given, built_with, fitted, read_libraries
from harness.models.own.model import Wanted, own_case, own_model
from harness.models.trying import Bench, BuiltOrRun
from harness.plan import Cell
from harness.run.numbers.given import check_calibration
from harness.words import Engine
from tests.models import data
from tests.models.embedded import network
from tests.report.factory import target

pytestmark = pytest.mark.unit

OWN = own_model(data.model(), "m.onnx", Wanted(), name="m")
(FED,) = OWN.variant.build().graph.input
SHAPE = tuple(dim.dim_value for dim in FED.type.tensor_type.shape.dim)


def checked(**arrays: Any) -> Given:
    return fitted(OWN, Given(calibration=arrays))


def test_the_first_axis_are_batches_and_an_array_of_the_inputs_shape_is_one() -> None:
    many = np.zeros((5, *SHAPE), np.float32)
    assert checked(**{FED.name: many}).calibration[FED.name].shape == (5, *SHAPE)
    assert checked(**{FED.name: many[0]}).calibration[FED.name].shape == (1, *SHAPE)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"nothing": np.zeros(SHAPE, np.float32)}, "has no input 'nothing'"),
        (
            {FED.name: np.zeros((5, *SHAPE[:-1], SHAPE[-1] + 1), np.float32)},
            "a batch of input .* give BATCHESx",
        ),
        ({FED.name: np.zeros((0, *SHAPE), np.float32)}, "(a|no) batch of input"),
        ({FED.name: np.zeros((5, *SHAPE), np.float64)}, "convert it with astype"),
    ],
)
def test_a_mistake_is_one_sentence(arrays: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HandledError, match=sentence):
        checked(**arrays)


def test_all_inputs_have_as_many_batches() -> None:
    sizes = {"a": ("float32", (1, 2)), "b": ("int64", ())}
    good: dict[str, Any] = {"a": np.zeros((3, 1, 2), np.float32), "b": np.zeros((3,), np.int64)}
    assert check_calibration("m", sizes, good).keys() == good.keys()
    with pytest.raises(HandledError, match="has 3 of 'a', 2 of 'b'; give as many"):
        check_calibration("m", sizes, {**good, "b": np.zeros((2,), np.int64)})
    with pytest.raises(HandledError, match="input 'b' is not in --calibration"):
        check_calibration("m", sizes, {"a": good["a"]})


def test_the_recipe_has_a_calibrator_and_what_multiplies_is_to_run_in_int8() -> None:
    plain = own_model(network("plain", depth=4), "q.onnx", Wanted(), name="q")
    given = Given(calibration={"images": np.zeros((3, 1, 3, 8, 8), np.float32)})
    own = built_with(OWN, given)
    calibrator = own.variant.recipe.calibrator
    assert calibrator is not None
    assert (calibrator.kind, calibrator.batches, own.variant.recipe.flags) == ("entropy", 3, ("INT8",))
    other = built_with(OWN, Given(calibration={"images": np.ones((3, 1, 3, 8, 8), np.float32)}))
    assert own.variant.recipe.sha256() != other.variant.recipe.sha256()
    assert all(str(precision) == "int8" for _, precision in own.wishes)
    quantised = built_with(plain, given)
    assert len(quantised.assumed) == len(plain.assumed) + 1
    assert quantised.wishes == plain.wishes
    strong = replace(
        OWN, variant=replace(OWN.variant, recipe=replace(OWN.variant.recipe, typing=Typing.STRONG))
    )
    with pytest.raises(HandledError, match="takes no calibrator"):
        built_with(strong, given)


def test_libraries_are_in_the_recipe_and_engines_without_plugins_are_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "libmine.so"
    path.write_bytes(b"\x7fELF and more")
    libraries = read_libraries([path])
    own = built_with(OWN, Given(libraries=libraries))
    assert own.variant.recipe.as_dict()["libraries"] == [
        {"name": "libmine.so", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    ]
    assert "libraries" not in OWN.variant.recipe.as_dict()
    reasons = {}
    for engine in Engine:
        case = own_case([own])
        cell = Cell("c", case, case.variants[0], target("t", "1.7", engine=engine))
        reasons[engine] = cell.inapplicable
    assert reasons[Engine.TENSORRT] is None
    assert reasons[Engine.TENSORRT_RTX] is not None
    assert "libmine.so" in (reasons[Engine.ONNXRUNTIME] or "")


@pytest.mark.parametrize("content", [None, b"MZ not one of Linux"])
def test_what_is_no_library_is_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "p.so"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(HandledError, match=r"--plugin .*; give a compiled \.so"):
        read_libraries([path])


def test_a_part_whose_inputs_nobody_has_batches_of_is_built_without_a_calibrator() -> None:
    given = Given(calibration={FED.name: np.zeros((2, *SHAPE), np.float32)}, libraries=())
    recipe = built_with(OWN, given).variant.recipe
    asked: list[Any] = []

    class Tries:
        def judged(self, _: object, __: object, recipe: Any, ___: object) -> Any:
            asked.append(recipe.calibrator)

    bench = Bench(Tries(), "there", recipe, (), None, (FED.name,))  # type: ignore[arg-type]
    part = OWN.variant.build()
    bench(part)
    part.graph.input[0].name = "cut"
    bench(part)
    assert [each is None for each in asked] == [False, True]
    prepared = BuiltOrRun()
    prepared.given = given
    parts = dict(prepared.of(OWN.variant).wire_calibration())
    assert parts[f"shape:calibration:{FED.name}"].decode() == ",".join(map(str, (2, *SHAPE)))


def test_own_batches_are_handed_over_as_they_are() -> None:
    class Device:
        def __init__(self) -> None:
            self.memory: dict[int, bytes] = {}

        def allocate(self, size: int) -> int:
            return 1000 + size

        def upload(self, address: int, data: bytes) -> None:
            self.memory[address] = data

    device = Device()
    inputs = {"a": b"aabbcc", "b": b"1234" * 3}
    batches = Batches({"batches": 3, "data": "hash"}, inputs, device)  # type: ignore[arg-type]
    seen = []
    while (addresses := batches.next(["b", "a"])) is not None:
        seen.append([device.memory[address] for address in addresses])
    assert seen == [[b"1234", b"aa"], [b"1234", b"bb"], [b"1234", b"cc"]]

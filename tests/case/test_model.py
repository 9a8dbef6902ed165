"""Case data refuses what makes no sense, and hashes all that a result depends on."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import onnx
import pytest

from harness.case import Case, Expectation, Graph, Link, Recipe, Variant, effective_name
from harness.case.model import Calibrator, Plugin, Profile
from harness.errors import HandledError
from harness.words import Basis, Class, Engine, Precision

pytestmark = pytest.mark.unit

LINK = Link("https://github.com/NVIDIA/TensorRT/issues/1")


def variant(name: str = "v", **fields: Any) -> Variant:
    return Variant(name, "V", Graph("g").model, **fields)


def claim(versions: str = "", **fields: Any) -> Expectation:
    plain: dict[str, Any] = {"outcome": Class.OK, "source": LINK, "basis": Basis.REPORTED, "kind": "users"}
    return Expectation(versions=versions, **(plain | fields))


@pytest.mark.parametrize(
    ("versions", "version", "covered"),
    [
        ("", "8.6.1", True),
        (">=8.6,<10.2", "8.6.1", True),
        (">=8.6,<10.2", "10.2.0.19", False),
        (">=9.2,<11,!=10.2.*", "10.2.0.19", False),
        (">=9.2,<11,!=10.2.*", "10.16.1.11", True),
        (">=10", "10.0.0b6", False),
        (">=10.0.0b1", "10.0.0b6", True),
    ],
)
def test_a_claim_covers_its_versions(versions: str, version: str, covered: bool) -> None:
    where = {"target": "t", "engine": Engine.TENSORRT, "platform": "linux/amd64"}
    assert claim(versions).covers(version=version, **where) is covered  # type: ignore[arg-type]


def test_a_claim_is_about_its_engine_platform_and_targets_alone() -> None:
    here: dict[str, Any] = {
        "target": "t",
        "engine": Engine.TENSORRT,
        "version": "8.6",
        "platform": "linux/amd64",
    }
    assert claim(platform="linux/amd64", targets=("t", "u")).covers(**here)
    assert not claim(platform="jetson").covers(**here)
    assert not claim(targets=("u",)).covers(**here)
    assert not claim(engine=Engine.TENSORRT_RTX).covers(**here)


def test_a_claim_about_a_gpu_is_about_no_other() -> None:
    """A claim of an unknown GPU is shown; one without a GPU does not tell."""
    where: dict[str, Any] = {
        "target": "t", "engine": Engine.TENSORRT, "version": "8.6", "platform": "linux/amd64"
    }  # fmt: skip
    about = claim(compute_capability="7.5")
    assert [about.covers(**where, compute_capability=each) for each in ("7.5", "8.9", "", None)] == [
        True, False, False, True
    ]  # fmt: skip
    assert about.covers(**where)
    assert all(claim().covers(**where, compute_capability=each) for each in ("7.5", "", None))


def test_a_claim_is_written_one_way_and_says_who_makes_it() -> None:
    """By users unless it says otherwise."""
    where: dict[str, Any] = {
        "platform": "jetson", "engine": Engine.TENSORRT_RTX, "targets": ("t",), "signature": "s", "level": "builds",
        "compute_capability": "7.5",
    }  # fmt: skip
    said = Expectation.reported(Class.CRASHED, "<9", LINK, note="n", **where)
    assert said == claim("<9", outcome=Class.CRASHED, note="n", **where)
    assert said.provenance == "reported by users"
    summary = Expectation.reported(Class.OK, "<9", LINK, "summary")
    assert (summary.kind, summary.provenance, summary.level) == ("summary", "reported in a summary", None)
    with pytest.raises(TypeError, match=r"level is 'numbers'; it must be .*'builds', 'runs'"):
        Expectation.reported(Class.OK, "", LINK, level="numbers")


def test_a_claim_says_of_what_it_is_made() -> None:
    """The source's facts beyond the column are printed with it; two kinds of claim stand in no column."""
    whole = Expectation.reported(Class.OK, ">=8.6,<8.7", LINK, scope="model", of="8.6.11, Quadro T2000")
    assert whole.provenance.endswith(", 8.6.11, Quadro T2000")
    alike = Expectation.reported(Class.OK, ">=8.6,<8.7", LINK, scope="sibling")
    unnamed = Expectation.reported(Class.OK, None, LINK)
    assert [each.stands for each in (whole, alike, unnamed)] == [True, False, False]
    assert not unnamed.covers(
        target="t", engine=Engine.TENSORRT, version="8.6.1", platform="jetson", compute_capability=None
    )
    assert "no version" in unnamed.on_versions
    about: dict[str, Any]
    for about in ({"scope": "model"}, {"of": "8.6.11"}, {"versions": None}):
        with pytest.raises(ValueError, match="only a reported claim has a scope"):
            dataclasses.replace(claim("<9", basis=Basis.MEASURED, kind=None), **about)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match=r'write ">=8\.6,<10\.2"'):
        claim("8.6 to 10.2")
    with pytest.raises(ValueError, match="a reported claim needs its source"):
        claim(source=None)
    for basis, kind in ((Basis.REPORTED, None), (Basis.MEASURED, "source")):
        with pytest.raises(ValueError, match="a reported claim has a kind, and no other has"):
            claim(basis=basis, kind=kind)
    assert claim(source=None, basis=Basis.MEASURED, kind=None).source is None
    with pytest.raises(ValueError, match=r"'sm_89' is no compute capability; write one such as '8\.9'"):
        claim(compute_capability="sm_89")
    for about in ({}, {"compute_capability": "7.5"}):
        with pytest.raises(ValueError, match="only a measurement by compute capability names the product"):
            claim(product="Tesla T4", **about)
    with pytest.raises(ValueError, match="give an https address"):
        Link("http://example.org")
    with pytest.raises(ValueError, match="variant name 'Two Words'"):
        variant("Two Words")
    with pytest.raises(ValueError, match="case name 'my-case'"):
        Case("my-case", "", "", (), ())
    with pytest.raises(ValueError, match="case c: two variants are called 'v'"):
        Case("c", "", "", (), (variant(), variant()))
    with pytest.raises(ValueError, match="v names the counterpart 'w', which is no variant"):
        Case("c", "", "", (), (variant(counterpart="w"),))


def test_nodes_without_a_name_are_called_as_the_parser_calls_them() -> None:
    named = onnx.helper.make_node("Relu", ["x"], ["y"], name="/act")
    nameless = onnx.helper.make_node("Relu", ["x"], ["y"])
    assert (effective_name(named), effective_name(nameless)) == ("/act", "node_of_y")


def test_a_wish_is_said_once_and_may_be_left_to_the_graph() -> None:
    """() says that nothing is wanted, None that nobody said."""
    assert (variant().precision, variant(precision=()).precision) == (None, ())
    with pytest.raises(ValueError, match="variant 'v': precision names '/a' twice"):
        variant(precision=(("/a", Precision.INT8), ("/a", Precision.FP16)))


#: A class, one of its fields, a value that is none for it, and the end of what is said.
TYPE_MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("Recipe", {"flags": "INT8"}, "flags is 'INT8'; it must be tuple[str, ...]: write ('INT8',)"),
    ("Recipe", {"parser_flags": ("A", True)}, "is ('A', True); it must be tuple[tuple[str, bool], ...]"),
    ("Recipe", {"profiles": Profile("x", (1,), (1,), (1,))}, "it must be tuple[Profile, ...]"),
    ("Recipe", {"typing": "weak"}, "typing is 'weak'; it must be Typing"),
    ("Recipe", {"workspace_mib": True}, "workspace_mib is True; it must be int | None"),
    ("Profile", {"minimum": (1, 2.0)}, "minimum is (1, 2.0); it must be tuple[int, ...]"),
    ("Calibrator", {"kind": "entropic"}, "kind is 'entropic'; it must be Literal['entropy', 'minmax']"),
    ("Plugin", {"formats": "int8"}, "formats is 'int8'; it must be Literal['int8_linear', "),
    ("Variant", {"precision": ("a", "b")}, "('a', 'b'); it must be tuple[tuple[str, Precision], ...] | None"),
    ("Variant", {"precision": (("a", "int8"),)}, "it must be tuple[tuple[str, Precision], ...] | None"),
    ("Variant", {"tags": "x"}, "tags is 'x'; it must be tuple[str, ...]: write ('x',)"),
    ("Variant", {"build": Graph("g")}, "it must be Callable["),
    ("Case", {"links": LINK}, "it must be tuple[Link, ...]"),
    ("Case", {"variants": variant()}, "it must be tuple[Variant, ...]"),
    ("Expectation", {"targets": "rtx17"}, "targets is 'rtx17'; it must be tuple[str, ...]"),
    ("Link", {"url": 1}, "url is 1; it must be str"),
]
WHOLE = (
    Recipe(), Profile("x", (1, 2), (1, 2), (1, 2)), Calibrator("entropy"), Plugin("P", "fp32"), variant(),
    Case("c", "", "", (), ()), claim(), LINK,
)  # fmt: skip


@pytest.mark.parametrize(("name", "field", "said"), TYPE_MISTAKES)
def test_a_field_of_another_type_is_refused(name: str, field: dict[str, Any], said: str) -> None:
    """Else a string is read letter by letter, and a pair of strings passes for two wishes."""
    whole: Any = next(each for each in WHOLE if type(each).__name__ == name)
    with pytest.raises(TypeError) as refused:
        dataclasses.replace(whole, **field)
    assert str(refused.value).startswith(f"{name}: ")
    assert said in str(refused.value)


def test_a_new_field_of_a_recipe_leaves_every_record_as_it_is() -> None:
    """A field that came later is left out of the hash where nothing is given."""
    assert Recipe().sha256() == "a1220055f358bf032a351ac2950e00ddcf5e39ac7a5928076cd02167ca75558c"


def broken(_: int) -> onnx.ModelProto:
    raise RuntimeError("nothing here")


@pytest.mark.parametrize(
    "build", [functools.partial(broken, 1), lambda: broken(2)], ids=["partial", "lambda"]
)
def test_a_builder_that_fails_is_named_with_its_line(build: Any) -> None:
    with pytest.raises(HandledError) as refused:
        Variant("v", "V", build).model_bytes()
    line = broken.__code__.co_firstlineno + 1
    said = str(refused.value)
    assert (said.startswith(f"{__file__}:{line}: "), said.endswith(": nothing here")) == (True, True)


@pytest.mark.parametrize(
    ("outcome", "level"),
    [
        (Class.BUILD_FAILED, "runs"),
        (Class.INACCURATE, "right numbers"),
        (Class.CRASHED, "precision"),
        (Class.BUILT, "runs"),
        (Class.API_REMOVED, "builds"),
    ],
)
def test_a_level_that_a_class_has_not_is_refused(outcome: Class, level: Any) -> None:
    """A failed build that runs would be held against nothing, and nobody would see it."""
    with pytest.raises(ValueError, match=f"its class has no level '{level}'; it may name"):
        Expectation.reported(outcome, "", LINK, level=level)

"""measured.yaml is written as it is read, and speaks for one target and version alone."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from harness.case import Case, Graph, Link, Variant, measured
from harness.case.floor import Asked
from harness.case.measured import Baseline, Measured, Result, read, text_of, with_measured
from harness.errors import HandledError
from harness.words import UNJUDGED, Basis, Class, Engine, Precision

pytestmark = pytest.mark.unit

RTX = Measured(
    "rtx17",
    Engine.TENSORRT_RTX,
    "1.7.1.116",
    "2026-01-02",
    {
        ("toy", "one"): Result(Class.BUILT),
        ("toy", "two"): Result(Class.BUILD_FAILED, "no-int8-convolution", ("/a, b", "/c: d")),
    },
)
ORT = Measured("ort117", Engine.ONNXRUNTIME, "1.17", "2026-01-03", {("toy", "one"): Result(Class.OK)})
ASKED = (Asked("/a, b", "Conv", Precision.INT8), Asked("/c: d", "Conv", Precision.INT8))
BASELINE = Baseline((RTX, ORT), {("toy", "one"): (), ("toy", "two"): ASKED})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / measured.FILE
    path.write_text(text_of(BASELINE), encoding="utf-8")
    assert read(path) == BASELINE
    text = path.read_text()
    assert text.startswith("# ")
    assert "[build_failed no-int8-convolution, '/a," in text
    assert "['/a, b', '/c:" in text
    path.write_text(text_of(read(path)), encoding="utf-8")
    assert path.read_text() == text


def test_a_file_that_was_found_good_is_checked_again_where_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    path = tmp_path / measured.FILE
    path.write_text(text_of(BASELINE), encoding="utf-8")
    assert read(path) == BASELINE
    (kept,) = (tmp_path / "__pycache__").iterdir()
    with monkeypatch.context() as unread:
        unread.setattr("harness.document.checked", None)
        assert read(path) == BASELINE
    for damaged in ("5", "[" * 100_000):
        kept.write_text(damaged)
        assert read(path) == BASELINE
    path.write_text(text_of(Baseline((RTX,), {})), encoding="utf-8")
    assert read(path) == Baseline((RTX,), {})
    path.write_text(text_of(BASELINE).replace("built", "bulit"), encoding="utf-8")
    with pytest.raises(HandledError, match="bulit"):
        read(path)


def test_what_is_known_of_precision_and_latency_stands_behind_the_nodes_to_blame(tmp_path: Path) -> None:
    lost = Result(Class.PRECISION_LOST, None, ("/a",), ("/b", "/c"), (0.0312, 0.0309, 1.0))
    bare = Result(Class.OK, None, (), (), (2.0, 1.0, 3.0))
    path = tmp_path / measured.FILE
    baseline = Baseline((replace(T4, cells={("toy", "one"): lost, ("toy", "two"): bare}),))
    path.write_text(text_of(baseline), encoding="utf-8")
    assert read(path) == baseline
    assert "[0.0312, 0.0309, 1.0]}]" in path.read_text()
    (claim,) = (each.expectation("toy", "one") for each in read(path).measured)
    assert claim is not None
    assert (claim.nodes, claim.untold, claim.ms) == (("/a",), ("/b", "/c"), (0.0312, 0.0309, 1.0))


T4 = replace(
    RTX, compute_capability="7.5", product="Tesla T4", driver="535", cells={("toy", "one"): Result(Class.OK)}
)
L4 = replace(
    T4, compute_capability="8.9", product="NVIDIA L4", driver="580", version="1.8.0.1", measured="2026-02-03"
)
AT_10 = replace(T4, compute_capability="10.0", product="NVIDIA B200", driver="", libraries="from a tarball")


def test_gpus_stand_under_their_target_by_compute_capability_and_product(tmp_path: Path) -> None:
    """Each with a version, a driver and a day of its own; what was measured without one stands where it always did."""
    path = tmp_path / measured.FILE
    path.write_text(text_of(Baseline((AT_10, L4, ORT, RTX, T4))), encoding="utf-8")
    assert read(path).measured == (RTX, T4, L4, AT_10, ORT)
    text = path.read_text()
    data = yaml.safe_load(text)["rtx17"]
    assert list(data) == ["engine", "version", "measured", "cells", "gpus"]
    assert data["cells"] == {
        "toy": {"one": "built", "two": ["build_failed no-int8-convolution", "/a, b", "/c: d"]}
    }
    card = {
        "version": "1.7.1.116",
        "driver": "535",
        "measured": "2026-01-02",
        "cells": {"toy": {"one": "ok"}},
    }
    assert data["gpus"]["7.5"] == {"Tesla T4": card}
    assert list(data["gpus"])[:2] == ["7.5", "8.9"]
    path.write_text(text_of(Baseline((L4,))), encoding="utf-8")
    assert read(path) == Baseline((L4,))
    assert "cells: {}" not in path.read_text()


def test_no_file_is_no_measurement(tmp_path: Path) -> None:
    assert read(tmp_path / measured.FILE) == Baseline()


def test_a_version_that_yaml_takes_for_a_number_is_written_as_text(tmp_path: Path) -> None:
    path = tmp_path / measured.FILE
    path.write_text(text_of(Baseline((ORT,))), encoding="utf-8")
    assert "version: '1.17'\n" in path.read_text()


#: Its fields stand on the lines 3 (engine) to 8 (the one cell).
GOOD = """schema: 1
rtx17:
  engine: tensorrt_rtx
  version: 1.7.1.116
  measured: '2026-01-02'
  cells:
    toy:
      one: built
"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((GOOD, ""), ": is empty; it needs `schema: 1`"),
        ((GOOD, "- a"), ":1: is not a mapping; write `schema: 1` at its top level"),
        (
            ("schema: 1", "schema: 2"),
            ":1: schema: is '2', which this version of the harness cannot read; write",
        ),
        (("schema: 1\n", ""), ":1: schema: is missing; add `schema: 1`"),
        (
            ("tensorrt_rtx", "tensorrt_rtz"),
            ":3: rtx17.engine: 'tensorrt_rtz' is not one of tensorrt, tensorrt_rtx, o",
        ),
        (("1.7.1.116", "one"), ":4: rtx17.version: 'one' is not in the right form; write the"),
        (("'2026-01-02'", "today"), ":5: rtx17.measured: 'today' is no day of the calendar; write a day"),
        (("2026-01-02", "2026-13-40"), ":5: rtx17.measured: '2026-13-40' is no day of the calendar; write"),
        (("    toy:\n      one: built", ""), ":6: rtx17.cells: is empty; it must be a mapping"),
        (
            ("built", "biult"),
            ":8: rtx17.cells.toy.one: 'biult' is not in the right form; write a class that",
        ),
        (("built", "[biult, /a]"), ":8: rtx17.cells.toy.one[0]: 'biult' is not in the right form; write"),
        (
            ("toy:\n      one", "toy[one]"),
            ":7: rtx17.cells.toy[one]: is the text 'built'; it must be a mapping",
        ),
        (("built", "[]"), ":8: rtx17.cells.toy.one: has fewer than 1 entries; fill it in"),
        (
            ("built", "built\n      one: ok"),
            ":9: rtx17.cells.toy.one: is given twice, first on line 8; delete",
        ),
        (("cells:", "cells: &a\n    x: *a"), ":6: rtx17.cells.x: is an alias; write out the value"),
        (("built", "[built, {ms: [1, 2]}]"), ":8: rtx17.cells.toy.one[1].ms: has fewer than 3 entries"),
        (("built", "[built, {us: [1, 2, 3]}]"), ":8: rtx17.cells.toy.one[1].us: is not a field"),
        (
            ("rtx17:", "asked: {toy: {one: {Conv: [/a]}}}\nrtx17:"),
            ":2: asked.toy.one.Conv: cannot be a name; write a",
        ),
        (("built", "'built"), ":9: is not YAML: found unexpected end of stream"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    path = tmp_path / measured.FILE
    path.write_text(GOOD)
    (entry,) = read(path).measured
    assert entry.cells == {("toy", "one"): Result(Class.BUILT)}
    path.write_text(GOOD.replace(*change))
    with pytest.raises(HandledError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}{said}")
    assert str(caught.value).endswith("with `trt-compat accept`")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cls", Class)
def test_each_class_that_can_be_measured_is_read_and_no_other(tmp_path: Path, cls: Class) -> None:
    path = tmp_path / measured.FILE
    path.write_text(GOOD.replace("built", cls))
    with pytest.raises(HandledError) if cls in UNJUDGED else contextlib.nullcontext():
        read(path)


@pytest.mark.parametrize("precision", Precision)
def test_each_precision_may_be_asked_for(tmp_path: Path, precision: Precision) -> None:
    path = tmp_path / measured.FILE
    path.write_text(GOOD.replace("rtx17:", f"asked: {{toy: {{one: {{{precision} Conv: [/a]}}}}}}\nrtx17:"))
    assert read(path).asked == {("toy", "one"): (Asked("/a", "Conv", precision),)}


ON_GPU = """schema: 1
rtx17:
  engine: tensorrt_rtx
  gpus:
    '8.9':
      NVIDIA L4:
        version: 1.7.1.116
        driver: '580'
        measured: '2026-01-02'
        cells:
          toy:
            one: built
"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("'8.9'", "sm_89"),
            ":5: rtx17.gpus.sm_89: cannot be a name; write a compute capability, such as '8.9'",
        ),
        (("built", "biult"), ":12: rtx17.gpus.8.9.NVIDIA L4.cells.toy.one: 'biult' is not in the right"),
        (
            ("        driver: '580'\n", ""),
            ":6: rtx17.gpus.8.9.NVIDIA L4.driver: is missing; add `driver: '580'`",
        ),
        (("NVIDIA L4:", "'':"), ":6: rtx17.gpus.8.9.: cannot be a name; write the product's name"),
        (("  gpus:", "  cells: {}\n  gpus:"), ":2: rtx17.version: is missing; add `version: 1.7.1.116`"),
    ],
)
def test_a_mistake_under_a_gpu_is_named_with_its_line(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    path = tmp_path / measured.FILE
    path.write_text(ON_GPU)
    assert [each.place for each in read(path).measured] == [("rtx17", "8.9", "NVIDIA L4")]
    path.write_text(ON_GPU.replace(*change))
    with pytest.raises(HandledError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}{said}")


def test_a_measurement_on_a_gpu_becomes_a_claim_about_its_compute_capability() -> None:
    """And names product and driver branch, and the libraries if they are not the image's."""
    claim = T4.expectation("toy", "one")
    assert claim is not None
    assert (claim.compute_capability, claim.product) == ("7.5", "Tesla T4")
    assert claim.note.endswith("(1.7.1.116; Tesla T4, driver 535)")
    elsewhere = replace(T4, libraries="from a tarball").expectation("toy", "one")
    assert elsewhere is not None
    assert elsewhere.note.endswith("; from a tarball)")
    bare = RTX.expectation("toy", "one")
    assert bare is not None
    assert (bare.compute_capability, bare.product) == (None, "")
    assert bare.note.endswith("rtx17 (1.7.1.116)")


def test_the_shipped_file_is_written_as_it_stands(tmp_path: Path) -> None:
    """Reading it and writing it changes no byte."""
    shipped = Path(__file__).parents[2] / "cases" / measured.FILE
    (tmp_path / measured.FILE).write_text(text_of(read(shipped)), encoding="utf-8")
    assert (tmp_path / measured.FILE).read_bytes() == shipped.read_bytes()


def test_a_measurement_becomes_a_claim_on_its_target_alone() -> None:
    claim = RTX.expectation("toy", "two")
    assert claim is not None
    assert (claim.outcome, claim.basis, claim.signature) == (
        Class.BUILD_FAILED,
        Basis.MEASURED,
        "no-int8-convolution",
    )
    where = {"engine": Engine.TENSORRT_RTX, "platform": "linux/amd64"}
    assert claim.covers(target="rtx17", version="1.7.1.116", **where)  # type: ignore[arg-type]
    assert not claim.covers(target="rtx17-sm75", version="1.7.1.116", **where)  # type: ignore[arg-type]
    assert not claim.covers(target="rtx17", version="1.8.0.1", **where)  # type: ignore[arg-type]
    assert RTX.expectation("toy", "three") is None


def test_claims_reach_their_variants_behind_the_written_ones() -> None:
    toy = Case(
        "toy",
        "A toy",
        "",
        (Link("https://example.org"),),
        (Variant("one", "One", Graph("g").model), Variant("two", "Two", Graph("g").model)),
    )
    (case,) = with_measured([toy], BASELINE)
    assert [[claim.targets for claim in variant.expectations] for variant in case] == [
        [("rtx17",), ("ort117",)],
        [("rtx17",)],
    ]
    assert toy.variants[0].expectations == ()

"""measured.yaml is written as it is read, and speaks for one target and version alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.case import Case, Graph, Link, Variant, measured
from harness.case.measured import Measured, read, with_measured, write
from harness.errors import HandledError
from harness.words import Class, Engine, Grade

pytestmark = pytest.mark.unit

RTX = Measured(
    "rtx17",
    Engine.TENSORRT_RTX,
    "1.7.1.116",
    "2026-01-02",
    {"toy[one]": (Class.BUILT, None), "toy[two]": (Class.BUILD_FAILED, "no-int8-convolution")},
)
ORT = Measured("ort117", Engine.ONNXRUNTIME, "1.17", "2026-01-03", {"toy[one]": (Class.OK, None)})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / measured.FILE
    write(path, (RTX, ORT))
    assert read(path) == (RTX, ORT)
    text = path.read_text()
    assert text.startswith("# ")
    assert "    toy[two]: build_failed no-int8-convolution\n" in text
    write(path, read(path))
    assert path.read_text() == text


def test_no_file_is_no_measurement(tmp_path: Path) -> None:
    assert read(tmp_path / measured.FILE) == ()


def test_a_version_that_yaml_takes_for_a_number_is_a_version(tmp_path: Path) -> None:
    path = tmp_path / measured.FILE
    path.write_text(
        "schema: 1\nort117: {engine: onnxruntime, version: 1.17, measured: 2026-01-03, cells: {}}\n"
    )
    assert [(entry.version, entry.measured) for entry in read(path)] == [("1.17", "2026-01-03")]


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(HandledError, match=r"measured\.yaml: cannot be written: No such file"):
        write(tmp_path / "nowhere" / measured.FILE, (RTX,))


def test_a_measurement_becomes_a_claim_on_its_target_alone() -> None:
    claim = RTX.expectation("toy[two]")
    assert claim is not None
    assert (claim.outcome, claim.grade, claim.signature) == (
        Class.BUILD_FAILED,
        Grade.MEASURED,
        "no-int8-convolution",
    )
    where = {"engine": Engine.TENSORRT_RTX, "platform": "linux/amd64"}
    assert claim.covers(target="rtx17", version="1.7.1.116", **where)  # type: ignore[arg-type]
    assert not claim.covers(target="rtx17-sm75", version="1.7.1.116", **where)  # type: ignore[arg-type]
    assert not claim.covers(target="rtx17", version="1.8.0.1", **where)  # type: ignore[arg-type]
    assert RTX.expectation("toy[three]") is None


def test_claims_reach_their_variants_behind_the_written_ones() -> None:
    toy = Case(
        "toy",
        "A toy",
        "",
        (Link("https://example.org"),),
        (Variant("one", "One", Graph("g").model), Variant("two", "Two", Graph("g").model)),
    )
    (case,) = with_measured([toy], [RTX, ORT])
    assert [[claim.targets for claim in variant.expectations] for variant in case] == [
        [("rtx17",), ("ort117",)],
        [("rtx17",)],
    ]
    assert toy.variants[0].expectations == ()

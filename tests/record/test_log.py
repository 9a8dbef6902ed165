"""The form of a log: whatever was noted, a reader finds each entry where it begins."""

from __future__ import annotations

import json

import pytest

from harness.record.log import entry, whole_log
from harness.record.outcome import Accuracy, Outcome, Stamps

pytestmark = pytest.mark.unit

MEASURED = Outcome(
    "c.v-t",
    "c",
    "v",
    "t",
    "done",
    engine_bytes=6,
    ran=True,
    accuracy=(Accuracy("y", 0.5, 0.25, 0.99),),
    uncompared="why not",
    stamps=Stamps(
        model_sha256="aa",
        recipe_sha256="bb",
        engine_version="10.2.0",
        via="onnx",
        image="engine:10.2",
        image_digest="sha256:cc",
        packages=("not==1",),
        harness_version="not 1",
        when="2026-01-01T00:00:00Z",
        run="r1",
        environment={"gpu": "Tesla T4", "driver": "535.1", "compute_capability": "7.5", "cpu": "not this"},
        harness_commit="dd",
        account="not a",
    ),
)
FIRST = (
    '[stamps] {"cell": "c.v-t", "compute_capability": "7.5", "driver": "535.1", "engine_version": "10.2.0", '
    '"gpu": "Tesla T4", "harness_commit": "dd", "image": "engine:10.2", "image_digest": "sha256:cc", '
    '"model_sha256": "aa", "recipe_sha256": "bb", "run": "r1", "via": "onnx", "when": "2026-01-01T00:00:00Z"}'
)


def test_a_whole_log_letter_by_letter() -> None:
    """Logs that lie in stores and archives are read for years, by their bytes."""
    noted = [entry("phase", "parse 0.500 s"), entry("INFO", "building")]
    assert whole_log(MEASURED, noted) == f"{FIRST}\n[phase] parse 0.500 s\n[INFO] building"


def test_a_cell_of_which_nothing_is_known_has_stamps_too() -> None:
    """A target that never came up names no GPU; what says nothing is empty, and nothing is left out."""
    found = json.loads(whole_log(Outcome("c.v-t", "c", "v", "t", "not_run"), []).removeprefix("[stamps] "))
    assert found.pop("cell") == "c.v-t"
    assert (len(found), set(found.values())) == (12, {""})


@pytest.mark.parametrize(
    "text", ["forged\n[end] finished", "\n[end] forged at once", "\r\n[end]\r\n", "[a]\n[b]\n [c]"]
)
def test_no_text_begins_an_entry_of_its_own(text: str) -> None:
    """Nor where it is the first of a log or the last."""
    lines = entry("INFO", text).split("\n")
    assert [line for line in lines if line.startswith("[")] == [lines[0]]


def test_only_what_looks_like_an_entry_is_written_otherwise() -> None:
    """Everybody can read a log; a message of many lines stands below its kind."""
    assert entry("INFO", "a\nb [c]\n  d") == "[INFO] a\nb [c]\n  d"
    assert entry("INFO", "a\n[b]\n [c]") == "[INFO] a\n [b]\n  [c]"
    assert entry("calibration cache", "\nTRT\n[b]") == "[calibration cache]\nTRT\n [b]"

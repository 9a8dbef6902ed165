"""The form of a log: whatever was noted, a reader finds each entry where it begins, and says the same of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.record.log import SEEN, STAMPS, entries, entry, seen, stamped, whole_log
from harness.record.outcome import Accuracy, Outcome, Stamps

pytestmark = pytest.mark.unit

MEASURED = Outcome(
    "c[v]-t",
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
        submission="not s",
        account="not a",
    ),
)
FIRST = (
    '[stamps] {"cell": "c[v]-t", "compute_capability": "7.5", "driver": "535.1", "engine_version": "10.2.0", '
    '"gpu": "Tesla T4", "harness_commit": "dd", "image": "engine:10.2", "image_digest": "sha256:cc", '
    '"model_sha256": "aa", "recipe_sha256": "bb", "run": "r1", "via": "onnx", "when": "2026-01-01T00:00:00Z"}'
)
LAST = (
    '[seen] {"accuracy": [{"cosine": 0.99, "max_abs": 0.5, "max_rel": 0.25, "not_finite": 0, "output": "y", '
    '"shape_matches": true}], "engine_bytes": 6, "ran": true, "uncompared": "why not"}'
)


def test_a_whole_log_letter_by_letter() -> None:
    """Logs that lie in stores and archives are read for years, by their bytes."""
    noted = [entry("phase", "parse 0.500 s"), entry("INFO", "building")]
    assert whole_log(MEASURED, noted) == f"{FIRST}\n[phase] parse 0.500 s\n[INFO] building\n{LAST}"


def test_a_cell_of_which_nothing_is_known_has_stamps_too() -> None:
    """A target that never came up names no GPU; what says nothing is empty, and nothing is left out."""
    bare = Outcome("c[v]-t", "c", "v", "t", "not_run")
    (kind, first), (end, last) = entries(whole_log(bare, []))
    assert (kind, end) == (STAMPS, SEEN)
    found: dict[str, Any] = json.loads(first)
    assert found == stamped(bare)
    assert found.pop("cell") == "c[v]-t"
    assert set(found.values()) == {""}
    assert len(found) == 12
    assert json.loads(last) == seen(bare)
    assert seen(bare) == {"ran": False, "engine_bytes": None, "uncompared": "", "accuracy": []}


@pytest.mark.parametrize(
    "text",
    [
        "one line",
        "",
        "two\nlines",
        "\nbegins below",
        "ends with a line\n",
        " begins with a blank",
        "forged\n[end] finished",
        "\n[end] forged at once",
        "looks like what was written with a blank\n [end]",
        "and with two\n  [end] x",
        "one after another\n[a]\n[b]\n\n [c]",
        "brackets [in] a line\nand later [in] another",
        "\r\n[end]\r\n",
        "]",
        "\x00 and \udc80 and \u2028[end]",
    ],
)
def test_whatever_was_noted_is_read_again(text: str) -> None:
    """No text can begin an entry of its own, and none is changed; also where it is the only one or the last."""
    noted = [("INFO", text), ("parser error", text), ("INFO", "after")]
    log = whole_log(MEASURED, [entry(*each) for each in noted])
    first, *between, last = entries(log)
    assert between == noted
    assert (first[0], json.loads(first[1])) == (STAMPS, stamped(MEASURED))
    assert (last[0], json.loads(last[1])) == (SEEN, seen(MEASURED))
    assert list(entries(entry("native", text))) == [("native", text)]


def test_only_what_looks_like_an_entry_is_written_otherwise() -> None:
    """Everybody can read a log; a message of many lines stands below its kind."""
    assert entry("INFO", "a\nb [c]\n  d") == "[INFO] a\nb [c]\n  d"
    assert entry("INFO", "a\n[b]\n [c]") == "[INFO] a\n [b]\n  [c]"
    assert entry("calibration cache", "\nTRT\n[b]") == "[calibration cache]\nTRT\n [b]"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", "no entry begins with ''"),
        ("stamps {}\n[INFO] x", "no entry begins with 'stamps {}'"),
        (" [INFO] x", "no entry begins with ' [INFO] x'"),
        ("[] x", "no entry begins with '[] x'"),
        ("[two\nlines] x", "no entry begins with '[two\\nlines] x'"),
        ("x" * 61, f"no entry begins with '{'x' * 60}'"),
    ],
)
def test_what_is_no_log_is_said_with_what_it_begins_with(log: str, said: str) -> None:
    """A stranger may send gigabytes without a line's end."""
    with pytest.raises(ValueError, match="no entry") as caught:
        list(entries(log))
    assert str(caught.value) == said


def test_the_entries_before_one_that_is_none_are_read() -> None:
    """A line without a bracket continues what came before; one with it begins an entry, or nothing that is known."""
    found = entries("[INFO] a\nb\n[open")
    assert next(found) == ("INFO", "a\nb")
    with pytest.raises(ValueError, match=r"no entry begins with '\[open'"):
        next(found)

"""A record survives JSON unchanged, and JSON that is no record is refused by the field that is wrong."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.plan import all_cells
from harness.record.from_json import OutdatedError, decode, fields_of
from harness.record.outcome import (
    Accuracy,
    Combination,
    Conversion,
    End,
    Latency,
    Layer,
    Message,
    Node,
    Outcome,
    ParserError,
    Stamps,
    Tactics,
    TensorUse,
    entry,
    whole_log,
)
from harness.words import Precision
from tests.report import factory

pytestmark = pytest.mark.unit

FULL = Outcome(
    cell="c.v-t",
    case="c",
    variant="v",
    target="t",
    state="done",
    key="a hash",
    builds_beside=3,
    reason="none",
    end=End("signalled", "killed by SIGSEGV", None, "SIGSEGV", 12345, 7, "700"),
    phases={"parse": 0.25, "build": 2.0},
    failed_phase="run",
    missing_api="IBuilderConfig.int8_calibrator",
    error="a sentence",
    parser_errors=(ParserError("text", "8", "/conv", "Conv"),),
    messages=(Message("ERROR", "sentence \N{EN DASH} with a dash"),),
    native_output="native",
    log_sha256="0" * 64,
    nodes=(Node("/conv", "Conv", "int8"),),
    layers=(
        Layer(
            "layer",
            "Convolution",
            "int8",
            inputs=(TensorUse("x", "int8", (1, -1, 4), "CHW4"),),
            weights=(TensorUse("w", "int8"),),
            outputs=(TensorUse("y", "fp32"),),
            tactic="0x1",
            onnx_nodes=("/conv", "/relu"),
            time_ms=0.5,
        ),
    ),
    layer_source="inspector",
    unparsed_layers=1,
    tactics=(
        Tactics(
            "layer",
            (Combination("Int8(4,1) -> Float(4,1)", 4.5, "0x1", 3, 1, True),),
            (Conversion("Float(4,1)", "Int8(4,1)", 3.0),),
            (Conversion("Float(4,1)", "Int8(4,1)", None, "x", "in", 1),),
        ),
    ),
    engine_bytes=10,
    ran=True,
    accuracy=(Accuracy("y", 0.5, 0.25, 0.999, 1, False),),
    uncompared="there is no reference",
    latency=Latency((1.0, 2.5), 3, "cuda_events", "a run", {"clock": "1 MHz"}, {"clock": "2 MHz"}),
    stamps=Stamps(
        "m", "r", "10.2", "docker", "image", "sha256:1", ("a==1",), "0.1", "2026", "run", {"gpu": "x"}
    ),
)


def through_json(data: dict[str, Any]) -> Outcome:
    return Outcome.from_json(json.loads(json.dumps(data)))


def test_a_full_record_comes_back_as_it_was() -> None:
    """No field of the full record is left at its default, so that a dropped one is noticed."""
    bare = Outcome("", "", "", "", "done")
    for each in dataclasses.fields(Outcome):
        if each.name not in ("state", "schema"):
            assert getattr(FULL, each.name) != getattr(bare, each.name), each.name
    assert through_json(FULL.to_json()) == FULL


def test_a_bare_record_takes_the_defaults() -> None:
    bare = Outcome("c.v-t", "c", "v", "t", "not_run")
    assert through_json(bare.to_json()) == bare
    few = {"cell": "c.v-t", "case": "c", "variant": "v", "target": "t", "state": "not_run", "schema": 2}
    assert through_json(few) == bare


@pytest.mark.parametrize(
    "kind", [Message, ParserError, End, TensorUse, Layer, Accuracy, Latency, Node, Stamps, Outcome]
)
def test_what_was_not_observed_is_nothing(kind: Any) -> None:
    """A record of an older harness lacks fields, and must not pass for an observation."""
    told = {
        each.name: each.default
        for each in dataclasses.fields(kind)
        if each.default is not dataclasses.MISSING
    }
    assert {name: value for name, value in told.items() if value} == (
        {"schema": 2} if kind is Outcome else {"shape_matches": True} if kind is Accuracy else {}
    )


def test_a_blank_record_names_its_cell_and_the_reason() -> None:
    (cell, *_) = all_cells(factory.matrix(), (factory.case(),))
    stamps = Stamps(when="2026")
    blank = Outcome.blank(cell, "not_run", "needs a GPU", stamps)
    assert blank == Outcome(
        cell.id, cell.case.name, cell.variant.name, cell.target.name, "not_run", "needs a GPU", stamps=stamps
    )
    assert Outcome.blank(cell, "not_run", "").stamps == Stamps()


def test_a_field_of_a_later_harness_is_passed_over() -> None:
    data = FULL.to_json() | {"invented": {"later": 1}}
    data["stamps"] = data["stamps"] | {"moon": "full"}
    assert through_json(data) == FULL


def test_whole_seconds_are_seconds() -> None:
    """JSON may write 2.0 as 2."""
    data = FULL.to_json()
    data["layers"][0]["time_ms"] = 2
    assert through_json(data).layers[0].time_ms == 2


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        *((schema, r"schema .*, this harness reads 2") for schema in (0, 3, "2", None)),
        (1, r"schema 1, written by an older version"),
    ],
)
def test_a_record_of_another_schema_is_refused(schema: object, said: str) -> None:
    """An older one's cell has an id of another form, so that it would be of no cell."""
    with pytest.raises(OutdatedError if schema == 1 else ValueError, match=said):
        through_json(FULL.to_json() | {"schema": schema})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("cell",), 3),
        (("state",), "asleep"),
        (("ran",), "yes"),
        (("ran",), 1),
        (("engine_bytes",), 1.5),
        (("engine_bytes",), True),
        (("phases",), [1]),
        (("layers",), {"a": 1}),
        (("layers",), ["layer"]),
        (("layers", 0, "inputs"), "x"),
        (("layers", 0, "onnx_nodes"), [1]),
        (("end",), "finished"),
        (("end", "kind"), "melted"),
        (("accuracy", 0, "cosine"), "1"),
        (("stamps", "when"), None),
        (("latency", "clock"), "sundial"),
    ],
)
def test_a_field_of_another_kind_is_refused(path: tuple[str | int, ...], value: object) -> None:
    """The complaint names its place."""
    data: Any = json.loads(json.dumps(FULL.to_json()))
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    with pytest.raises(TypeError, match=rf"^{re.escape(place)}(\[0\])?: (Expected|Invalid)"):
        Outcome.from_json(data)


@pytest.mark.parametrize("name", ["cell", "case", "variant", "target", "state"])
def test_a_record_without_what_names_it_is_refused(name: str) -> None:
    data = FULL.to_json()
    del data[name]
    with pytest.raises(TypeError, match=name):
        Outcome.from_json(data)


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
    """A target that never came up names no GPU; a silent field is empty, and no field is left out."""
    found = json.loads(whole_log(Outcome("c.v-t", "c", "v", "t", "not_run"), []).removeprefix("[stamps] "))
    assert found.pop("cell") == "c.v-t"
    assert (len(found), set(found.values())) == (12, {""})


@pytest.mark.parametrize(
    "text", ["forged\n[end] finished", "\n[end] forged at once", "\r\n[end]\r\n", "[a]\n[b]\n [c]"]
)
def test_no_text_begins_an_entry_of_its_own(text: str) -> None:
    """Nor as the first of a log or the last."""
    lines = entry("INFO", text).split("\n")
    assert [line for line in lines if line.startswith("[")] == [lines[0]]


def test_only_what_looks_like_an_entry_is_written_otherwise() -> None:
    """Everybody can read a log; a message of many lines stands below its kind."""
    assert entry("INFO", "a\nb [c]\n  d") == "[INFO] a\nb [c]\n  d"
    assert entry("INFO", "a\n[b]\n [c]") == "[INFO] a\n [b]\n  [c]"
    assert entry("calibration cache", "\nTRT\n[b]") == "[calibration cache]\nTRT\n [b]"


@dataclass(frozen=True)
class Toy:
    pairs: tuple[tuple[str, Precision], ...]
    by_name: dict[str, Precision] = field(default_factory=dict)
    word: Precision | None = None
    size: float = 0.0
    anything: Any = None


@pytest.mark.parametrize("data", [{"pairs": [["a", "int8", "b"]]}, {"pairs": [], "size": 10**400}])
def test_a_pair_that_is_none_and_a_number_beyond_all_are_type_errors(data: Any) -> None:
    with pytest.raises(TypeError, match=r"^(pairs|size|Expected)"):
        decode(Toy, data)


def test_fields_hold_defaults_that_the_data_lacks() -> None:
    """For a record of an older harness as for one made today."""
    assert fields_of(decode(Toy, {"pairs": []})) == fields_of(Toy(pairs=()))
    assert list(fields_of(Toy(pairs=()))) == ["pairs", "by_name", "word", "size", "anything"]


#: Classes that were never read before, each by four threads at once.
_TOGETHER = """
import sys, threading
from dataclasses import make_dataclass
from harness.record.from_json import decode

sys.setswitchinterval(1e-6)
gate = threading.Barrier(4)


def read(kind):
    gate.wait()
    decode(kind, {})


for number in range(150):
    inner = make_dataclass("Inner", [(f"i{n}", int, n) for n in range(20)])
    outer = make_dataclass("Outer", [(f"o{n}", inner | None, None) for n in range(20)])
    threads = [threading.Thread(target=read, args=(outer,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_may_read_a_class_for_the_first_time_at_once() -> None:
    """A run of several workers died of SIGSEGV."""
    done = subprocess.run([sys.executable, "-c", _TOGETHER], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

"""What is heard of a cell that ends badly, says too much or says it twice still becomes a true record."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agent.protocol import OF_A_JOB, Frame, FrameReader, ProtocolError
from harness.case import Case, Link, Variant
from harness.judge.classify import classify
from harness.judge.diagnosis import diagnose
from harness.matrix import load_matrix
from harness.plan import Cell
from harness.record.outcome import End, Latency, Node, Outcome, ParserError, Stamps, whole_log
from harness.run import observation as module
from harness.run.numbers.reference import Reference
from harness.run.observation import Observation
from harness.run.session import Event
from harness.words import Class
from tests.agent.test_protocol import SAID
from tests.near import SAME, near
from tests.run.bench import relu
from tests.run.prepared import prepare_variant

pytestmark = pytest.mark.unit

END: dict[str, Any] = {"kind": "finished", "exit_code": 0, "detail": "", "peak_rss_bytes": 10}


VARIANT = Variant("v", "V", relu)
CASE = Case("toy", "A toy", "", (Link("https://example.org"),), (VARIANT,))
TARGET = load_matrix(Path(__file__).parents[2] / "matrix.yaml").target("trt86")
CELL = Cell("toy.v-trt86", CASE, VARIANT, TARGET)


def event(type_: str, body: bytes = b"", /, **message: Any) -> Event:
    return Event({"type": type_, **message}, body)


def message(severity: str, text: str) -> Event:
    return event("message", severity=severity, text=text)


def heard(*events: Event) -> tuple[Outcome, Observation]:
    seen = Observation()
    seen.hear(events)
    return seen.outcome(CELL, prepare_variant(VARIANT), Stamps()), seen


def test_every_event_has_a_handler() -> None:
    """One without would end a cell as `infra_error`."""
    assert {name[4:] for name in vars(Observation) if name.startswith("_on_")} == set(OF_A_JOB)


def test_a_phase_that_was_begun_and_not_ended_is_the_one_that_failed() -> None:
    """The child died in it; the phases before keep their times."""
    outcome, seen = heard(
        event("phase_begin", name="parse"),
        event("phase", name="parse", seconds=0.5, ok=True),
        event("phase_begin", name="build"),
        event("end", **END | {"kind": "signalled", "signal": "SIGSEGV", "detail": "killed by SIGSEGV"}),
    )
    assert (outcome.phases, outcome.failed_phase) == ({"parse": 0.5}, "build")
    assert outcome.end is not None
    assert (outcome.end.kind, outcome.end.signal) == ("signalled", "SIGSEGV")
    assert not seen.succeeded


FINE = (
    event("phase_begin", name="build"),
    event("phase", name="build", seconds=0.5, ok=True),
    event("end", **END),
)


@pytest.mark.parametrize(
    ("more", "state", "reason"),
    [
        (event("unavailable", text="no GPU"), "not_run", "no GPU"),
        (event("agent_fault", text="a fault"), "infra_error", "a fault"),
        (event("failed", text="refused"), "done", ""),
        (event("missing_api", name="X"), "done", ""),
        (event("phase", name="load", seconds=0.1, ok=False), "done", ""),
        (event("phase_begin", name="load"), "done", ""),
        (event("end", **END | {"kind": "exited", "exit_code": 3}), "done", ""),
    ],
)
def test_whatever_goes_wrong_is_no_success(more: Event, state: str, reason: str) -> None:
    """Each by itself, before the job ended; what ended it speaks last."""
    outcome, seen = heard(*FINE)
    assert (seen.succeeded, outcome.state, outcome.reason) == (True, "done", "")
    outcome, seen = heard(*FINE, more) if more.type == "end" else heard(*FINE[:-1], more, FINE[-1])
    assert (seen.succeeded, outcome.state, outcome.reason) == (False, state, reason)
    assert not heard(*FINE[:-1])[1].succeeded


def test_a_fault_outranks_what_was_unavailable() -> None:
    outcome, _ = heard(event("unavailable", text="no GPU"), event("agent_fault", text="a fault"))
    assert (outcome.state, outcome.reason) == ("infra_error", "a fault")


@pytest.mark.parametrize(
    "hides",
    [
        event("agent_fault", text="a fault"),
        event("unavailable", text="no GPU"),
        event("missing_api", name="X"),
    ],
)
def test_who_broke_the_protocol_is_not_believed_that_something_else_was_to_blame(hides: Event) -> None:
    broke = "broke the protocol: not a frame: b'x'"
    outcome, seen = heard(hides, event("end", **END | {"kind": "exited", "detail": broke}))
    found = classify(outcome)
    assert (found.cls, found.reason, seen.succeeded) == (Class.CRASHED, broke, False)
    known = diagnose(outcome, found)
    assert known is not None
    assert (known.id, known.groups) == ("broken-protocol", {"how": "not a frame: b'x'"})


def test_a_log_is_bounded_and_says_what_it_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out of it is in the record neither; chatter fills half, so that what matters has its place."""
    monkeypatch.setattr(module, "LOG_LIMIT", 2000)
    long = "x" * 400
    outcome, seen = heard(
        *(message("VERBOSE", long) for _ in range(5)),
        *(event("native", text=long + "\n") for _ in range(5)),
        *(message("ERROR", long + str(number)) for number in range(5)),
        event("parser_error", text=long, code="", node="", operator=""),
        event("calibration_cache", b"z" * 400),
        *(message("VERBOSE", "Layers:\n" + long) for _ in range(5)),
        event("layers", b"{}" * 400, source="inspector"),
        event("phase", name="build", seconds=1.0, ok=True),
        event("end", **END),
    )
    assert [each.text for each in outcome.messages] == [long + "0", long + "1"]
    assert (outcome.native_output, outcome.parser_errors, outcome.phases) == ("", (), {"build": 1.0})
    assert seen.log[-2:] == ["[left out] 19 texts: this log has no room for more", "[end] finished "]
    assert [entry.partition("]")[0] for entry in seen.log[:-2]] == ["[VERBOSE"] * 2 + ["[ERROR"] * 2 + [
        "[phase"
    ]


def test_of_very_many_messages_the_first_and_the_last_are_kept() -> None:
    outcome, seen = heard(
        *(message("ERROR", str(number)) for number in range(1200)),
        *(event("parser_error", text=str(number), code="", node="", operator="") for number in range(300)),
        event("failed", text="f" * 100_000),
    )
    texts = [int(each.text) for each in outcome.messages]
    assert texts == [*range(500), *range(700, 1200)]
    assert [int(each.text) for each in outcome.parser_errors] == [*range(100), *range(200, 300)]
    assert len(outcome.error) == 1 << 16
    assert len(seen.log) == 1501


def test_how_it_ended_is_kept_whole() -> None:
    """Of two jobs the peak is the higher; one that could not tell its own takes the other's."""
    died = {"kind": "signalled", "signal": "SIGABRT", "detail": "killed", "peak_rss_bytes": None}
    end = event("end", **died)
    assert heard(end)[0].end == End("signalled", "killed", None, "SIGABRT", None)
    assert heard(event("end", **END), end)[0].end == End("signalled", "killed", None, "SIGABRT", 10)
    higher = heard(event("end", **END | {"peak_rss_bytes": 30}), event("end", **END))[0].end
    assert higher is not None
    assert higher.peak_rss_bytes == 30
    assert heard(event("end", **END | {"exit_code": 7}))[0].end == End("finished", "", 7, None, 10)


def test_what_nobody_said_is_not_in_the_record() -> None:
    """And what was stamped before is joined by what the agent saw."""
    outcome, _ = heard()
    assert outcome == Outcome(CELL.id, "toy", "v", "trt86", "done", nodes=(Node("/act", "Relu"),))
    seen = Observation()
    seen.hear([event("fact", facts={"gpu": "none"}), event("fact", facts={"cpu": "x"}), event("plan", b"")])
    outcome = seen.outcome(CELL, prepare_variant(VARIANT), Stamps(when="2026", environment={"libc": "y"}))
    assert outcome.stamps == Stamps(when="2026", environment={"libc": "y", "gpu": "none", "cpu": "x"})
    assert outcome.engine_bytes == 0


def test_the_log_of_a_job_letter_by_letter() -> None:
    """Each event as it came; what native libraries wrote stands before the first event that found its line whole."""
    _, seen = heard(
        event("parser_error", text="no", code=8, node="/act", operator="Relu"),
        event("unavailable", text="no GPU"),
        event("failed", text="refused"),
        event("layers", b"caf\xe9", source="inspector"),
        event("layers", b"graph", source="ort_graph"),
        event("calibration_cache", b"x: 3c01\xff\n\n"),
        event("agent_fault", text="a fault"),
        event("native", text="\n \n"),
        event("phase_begin", name="parse"),
        event("native", text="one\ntwo\nth"),
        event("phase", name="parse", seconds=0.5, ok=True),
        event("missing_api", name="BuilderFlag.INT8"),
        event("phase_begin", name="build"),
        message("WARNING", "slow"),
        event("native", text="ree\n"),
        message("INFO", "two lines\n[end] forged"),
        event("native", text="cut sh"),
        event("native", text="ort"),
        event("end", **END | {"kind": "signalled", "detail": "killed by SIGSEGV"}),
        event("native", text=" \n"),
        event("end", **END | {"detail": "in 2 s"}),
    )
    assert seen.log == [
        "[parser error] {'text': 'no', 'code': '8', 'node': '/act', 'operator': 'Relu'}",
        "[unavailable] no GPU",
        "[failed] refused",
        "[inspector] caf\ufffd",
        "[calibration cache]\nx: 3c01\ufffd",
        "[agent fault] a fault",
        "[native]\n \none\ntwo",
        "[phase] parse 0.500 s",
        "[missing] BuilderFlag.INT8",
        "[WARNING] slow",
        "[native] three",
        "[INFO] two lines\n [end] forged",
        "[phase] build cut short",
        "[native] cut short",
        "[end] signalled killed by SIGSEGV",
        "[end] finished in 2 s",
    ]


def test_messages_are_kept_but_for_verbose_ones_and_repeats() -> None:
    """The log has them all."""
    outcome, seen = heard(
        *(message("WARNING", "again") for _ in range(9)),
        message("VERBOSE", "chatter"),
        message("ERROR", "x" * 9000),
    )
    assert [kept.text for kept in outcome.messages[:-1]] == ["again"] * 3
    assert len(outcome.messages[-1].text) == 4000
    assert seen.log.count("[WARNING] again") == 9
    assert "[VERBOSE] chatter" in seen.log


def test_layers_are_read_from_the_best_source_whatever_came_first() -> None:
    """What the inspector says of the loaded engine outranks the builder's log."""
    layers = b'{"Layers": [{"Name": "from inspector", "LayerType": "x", "Inputs": [], "Outputs": []}]}'
    logged = message("VERBOSE", "Layers:\nName: from log, LayerType: x, Inputs: [], Outputs: []")
    outcome, seen = heard(event("layers", layers, source="inspector"), logged)
    assert outcome.layer_source == "inspector"
    assert [layer.name for layer in outcome.layers] == ["from inspector"]
    assert any(line.startswith("[inspector] ") for line in seen.log)
    assert heard(logged)[0].layer_source == "verbose_log"
    assert heard(VERBOSE_LOG, ORT_GRAPH)[0].layer_source == "ort_graph"
    assert heard()[0].layers == ()


VERBOSE_LOG = message("VERBOSE", "Layers:\nName: /act, LayerType: x, Inputs: [], Outputs: []")
ORT_GRAPH = event("layers", prepare_variant(VARIANT).model, source="ort_graph")


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        ("verbose_log", "/act", VERBOSE_LOG),
        ("ort_graph", "/act", ORT_GRAPH),
        ("inspector", "/act", event("layers", b'{"Layers": [{"Name": "/act"}, 7]}', source="inspector")),
    ],
)
def test_layers_of_every_source_are_read_with_node_and_times(source: str, name: str, said: Event) -> None:
    """What is said of them before or after."""
    spent = event("layer_times", times={name: [3.0, 1.0, 2.0]})
    for events in ((said, spent), (spent, said)):
        outcome, _ = heard(*events)
        (layer,) = outcome.layers
        assert (outcome.layer_source, layer.name, layer.time_ms) == (source, name, 2.0)
        assert layer.onnx_nodes == (("/act",) if name == "/act" else ())
        assert outcome.unparsed_layers == (source == "inspector")
        assert outcome.messages == ()


def test_a_layer_that_onnx_runtime_renamed_is_traced_by_the_model_it_was_given() -> None:
    """By what it makes."""
    renamed = relu()
    renamed.graph.node[0].name = "fused_1"
    outcome, _ = heard(event("layers", renamed.SerializeToString(), source="ort_graph"))
    assert [(layer.name, layer.onnx_nodes) for layer in outcome.layers] == [("fused_1", ("/act",))]


def test_outputs_are_held_against_the_reference() -> None:
    x = prepare_variant(VARIANT).inputs["x"]
    right = np.maximum(x, 0).astype("<f4")
    for values, off in ((right, 0.0), (right + np.float32(0.5), 0.5)):
        outcome, _ = heard(event("output", values.tobytes(), name="y", dtype="float32", shape=[1, 4]))
        assert outcome.ran
        (found,) = outcome.accuracy
        assert (found.output, round(found.max_abs, 6)) == ("y", off)


def test_an_output_that_the_wire_does_not_carry_shows_that_it_ran() -> None:
    """There is nothing to compare of a sequence or of strings, and what is beside them is compared."""
    alone = event("output", name="s", dtype="", shape=[])
    outcome, _ = heard(alone)
    assert outcome.ran
    values = np.maximum(prepare_variant(VARIANT).inputs["x"], 0).tobytes()
    outcome, _ = heard(alone, event("output", values, name="y", dtype="float32", shape=[1, 4]))
    assert [found.output for found in outcome.accuracy] == ["y"]


def test_why_outputs_were_not_compared_is_kept() -> None:
    """The reference has a reason where it has no numbers; a cell that did not run owes none."""
    reason = "the reference evaluator does not know compat::Odd"
    without = dataclasses.replace(prepare_variant(VARIANT), reference=Reference(None, reason))
    output = event("output", bytes(16), name="y", dtype="float32", shape=[1, 4])
    for events, uncompared in (((output,), reason), ((), "")):
        seen = Observation()
        seen.hear(events)
        outcome = seen.outcome(CELL, without, Stamps())
        assert (outcome.accuracy, outcome.uncompared) == ((), uncompared)
    assert heard(output)[0].uncompared == ""


def test_outputs_without_optimisations_stand_for_a_reference_that_is_not_there() -> None:
    """The reason stays beside what they are compared with; a reference that is there goes before them."""
    reason = "the evaluation was not done after 30 s"
    without = dataclasses.replace(prepare_variant(VARIANT), reference=Reference(None, reason))
    fields: dict[str, Any] = {"name": "y", "dtype": "float32", "shape": [1, 4]}
    events = (
        event("output", np.ones(4, np.float32).tobytes(), **fields),
        event("output", np.full(4, 1.5, np.float32).tobytes(), **fields, plain=True),
        event("output", name="s", dtype="", shape=[], plain=True),
    )
    seen = Observation()
    seen.hear(events)
    outcome = seen.outcome(CELL, without, Stamps())
    assert [(each.output, each.max_abs) for each in outcome.accuracy] == [("y", 0.5)]
    assert outcome.uncompared == reason
    assert heard(*events)[0].uncompared == ""


def test_parser_errors_native_output_and_removed_names_are_kept() -> None:
    outcome, seen = heard(
        event("parser_error", text="no", code=8, node="/act", operator="Relu"),
        event("native", text="first\n"),
        event("native", text="last\n"),
        event("missing_api", name="BuilderFlag.INT8"),
        event("failed", text="a sentence"),
        event("end", **END),
    )
    assert outcome.parser_errors == (ParserError("no", "8", "/act", "Relu"),)
    assert outcome.native_output == "first\nlast\n"
    flood, _ = heard(event("native", text="x" * 4000), event("native", text="last"))
    assert flood.native_output == "x" * 3996 + "last"
    assert (outcome.missing_api, outcome.error) == ("BuilderFlag.INT8", "a sentence")
    assert not seen.succeeded


LATENCY: dict[str, Any] = {"samples_ms": [0.5, 0.25], "warmup": 3, "scope": "one run"}


def test_a_timed_run_is_kept_whole() -> None:
    """All samples in order, sensors on both sides; a run on the CPU has no sensors."""
    sensors = {"before": {"temperature_c": "40"}, "after": {"temperature_c": "43"}}
    outcome, _ = heard(event("latency", **LATENCY, clock="cuda_events", **sensors))
    assert outcome.latency == Latency(
        (0.5, 0.25), 3, "cuda_events", "one run", {"temperature_c": "40"}, {"temperature_c": "43"}
    )
    plain, _ = heard(event("latency", **LATENCY, clock="monotonic"))
    assert plain.latency == Latency((0.5, 0.25), 3, "monotonic", "one run")


def test_others_on_the_gpu_stand_beside_what_its_sensors_said() -> None:
    timed = event(
        "latency", samples_ms=[1], warmup=1, clock="cuda_events", before={"power_w": "70"}, scope="a run"
    )
    seen = Observation()
    seen.note_others("nobody was timed", "")
    seen.hear([timed, event("end", **END)])
    for before, after in (("", ""), ("a (pid 1)", ""), ("", "b (pid 2)")):
        seen.note_others(before, after)
    latency = seen.outcome(CELL, prepare_variant(VARIANT), Stamps()).latency
    assert latency is not None
    assert latency.before == {"power_w": "70", "other_processes": "a (pid 1)"}
    assert latency.after == {"other_processes": "b (pid 2)"}
    seen.hear([timed])
    seen.note_others("", "")
    latency = seen.outcome(CELL, prepare_variant(VARIANT), Stamps()).latency
    assert latency is not None
    assert (latency.before, latency.after) == ({"power_w": "70"}, {})


#: One message of each kind, and what it carries.
TOLD = {
    **{kind: ({"type": kind, **fields}, body) for kind, (fields, body) in SAID.items()},
    "end": ({"type": "end", **END}, b""),
    "layers": ({"type": "layers", "source": "inspector"}, b'{"Layers": [{"Name": "/act"}, 7]}'),
    "ort_graph": (ORT_GRAPH.message, ORT_GRAPH.body),
}
ANYTHING = st.sampled_from(sorted(TOLD)).flatmap(
    lambda kind: st.tuples(near(json.dumps(TOLD[kind][0]).encode()), near(TOLD[kind][1]))
)


@SAME
@given(st.lists(ANYTHING, max_size=6))
def test_whatever_an_agent_says_is_a_record_that_is_read_again_and_a_log(
    said: list[tuple[bytes, bytes]],
) -> None:
    reader, events = FrameReader(OF_A_JOB), []
    for head, body in said:
        with contextlib.suppress(ProtocolError):
            events.append(Event(reader.read(Frame(head, body, b"")), body))
    outcome, seen = heard(*events)
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        kept = outcome.as_read()
        assert kept.as_read() == kept
        assert whole_log(kept, seen.log).startswith("[stamps] ")

"""The ONNX Runtime adapter: it runs where it was told to, or says that it cannot."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from harness.agent import gpu
from harness.agent.cuda import CudaError
from harness.agent.engines import Failed, MissingNeed, onnxruntime, said
from harness.agent.tensors import size

pytestmark = pytest.mark.unit

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


class Options(SimpleNamespace):
    """The options of a session; entries of its configuration are kept by their names."""

    def add_session_config_entry(self, name: str, value: str) -> None:
        setattr(self, name, value)


class Runtime:
    """ONNX Runtime with a provider that does not load: a warning, and the CPU."""

    SessionOptions = Options
    GraphOptimizationLevel = SimpleNamespace(ORT_ENABLE_ALL=99, ORT_DISABLE_ALL=0)

    def __init__(self, gives: list[str] | Exception) -> None:
        self._gives = gives
        self.asked: dict[str, Any] = {}

    def InferenceSession(self, _model: bytes, _options: Any, **asked: Any) -> Any:  # noqa: N802
        self.asked = asked
        if isinstance(self._gives, Exception):
            raise self._gives
        gives = self._gives
        return SimpleNamespace(get_providers=lambda: gives)


def session(monkeypatch: pytest.MonkeyPatch, runtime: Runtime, provider: str) -> Any:
    monkeypatch.setattr(onnxruntime, "ort", runtime)
    return onnxruntime._session(b"model", provider)


def test_cuda_is_asked_for_alone_without_tf32_and_without_a_second_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = Runtime([CUDA, CPU])
    session(monkeypatch, runtime, CUDA)
    assert runtime.asked["providers"] == [(CUDA, {"device_id": "0", "use_tf32": "0"})]
    assert runtime.asked["enable_fallback"] == 0


def test_a_session_that_fell_back_to_the_cpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers and latencies would be taken for the GPU's."""
    with pytest.raises(MissingNeed, match=r"needs CUDAExecutionProvider, .* gives CPUExecutionProvider"):
        session(monkeypatch, Runtime([CPU]), CUDA)


def test_the_cpu_needs_no_more_than_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime([CPU])
    session(monkeypatch, runtime, CPU)
    assert runtime.asked["providers"] == [(CPU, {})]


def test_what_the_runtime_raises_is_its_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failed, match="RuntimeError: no kernel for Mish"):
        session(monkeypatch, Runtime(RuntimeError("no kernel for Mish")), CPU)


def test_a_gpu_is_asked_for_by_the_provider_that_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline on the CPU must not be stamped with a GPU that it never touched, nor fail for want of one."""
    monkeypatch.setattr(gpu, "Driver", Mock(side_effect=CudaError("cuInit: 804")))
    for provider, expected in (("cuda", ["cuInit: 804"]), ("cpu", [])):
        heard: list[Any] = []
        onnxruntime.run(
            {"kind": "preflight", "provider": provider},
            b"",
            lambda _kind, _body=b"", heard=heard, **fields: heard.append(fields["text"]),
        )
        assert heard == expected


def entry(name: str, kind: str) -> Any:
    return SimpleNamespace(name=name, type=kind)


def given(*inputs: Any, outputs: tuple[Any, ...] = ()) -> Any:
    """Return a session that has these inputs and outputs."""
    return SimpleNamespace(get_inputs=lambda: inputs, get_outputs=lambda: outputs)


@pytest.mark.parametrize(("kind", "word"), onnxruntime._WORDS.items())
def test_inputs_of_every_type_and_shape_are_fed(kind: str, word: str) -> None:
    for shape, text in (((), b""), ((0, 3), b"0,3"), ((5,), b"5")):
        data = bytes(size(word, shape))
        feeds = onnxruntime._feeds(given(entry("x", kind)), {"x": data, "shape:x": text})
        assert feeds == {"x": (word, shape, data)}


def test_bytes_that_do_not_fill_an_input_never_get_to_the_engine() -> None:
    """It is given an address, and would read past the end."""
    parts = {"x": b"12", "shape:x": b"5"}
    with pytest.raises(ValueError, match=r"input x: 2 bytes are not int4\(5,\)"):
        onnxruntime._feeds(given(entry("x", "tensor(int4)")), parts)


class Old:
    """A binding as up to 1.17, which only takes types of NumPy's."""

    def bind_input(self, *_: Any) -> None:
        raise RuntimeError("Not a valid numpy type")


def test_what_an_old_version_cannot_be_given_is_said_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """No refusal of the model, which it may well run."""
    monkeypatch.setattr(onnxruntime, "numpy", np)
    session = given()
    session.io_binding = Old
    feeds = {"x": onnxruntime.Feed("bfloat16", (1,), b"12")}
    with pytest.raises(MissingNeed, match="needs an ONNX Runtime whose Python takes bfloat16 inputs; this"):
        said(onnxruntime._bound, session, feeds, "cpu")


@pytest.mark.parametrize(("plain", "works"), [(False, True), (True, True), (True, False)])
def test_outputs_without_optimisations_are_marked_and_their_failure_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, *, plain: bool, works: bool
) -> None:
    heard: list[Any] = []

    def session(_model: bytes, _provider: str, *, optimise: bool = True, save_to: str = "") -> Any:
        if save_to:
            Path(save_to).write_bytes(b"")
        made = given(outputs=(entry("b", "tensor(string)"),))
        made.run_with_iobinding = Mock(side_effect=None if works or optimise else RuntimeError("no kernel"))
        return made

    strings = SimpleNamespace(is_tensor=lambda: True, data_type=lambda: "tensor(string)")
    monkeypatch.setattr(onnxruntime, "_session", session)
    monkeypatch.setattr(onnxruntime, "_bound", lambda *_: SimpleNamespace(get_outputs=lambda: [strings]))
    onnxruntime._run(
        {"kind": "run", "weights": "", "timing": None, "plain": plain},
        {"model": b""},
        CPU,
        Mock(),
        lambda kind, _body=b"", **fields: heard.append((kind, fields.get("plain", False))),
    )
    assert [marked for kind, marked in heard if kind == "output"] == [False, *[True] * (plain and works)]


def test_outputs_that_the_wire_does_not_carry_are_named() -> None:
    heard: list[Any] = []
    sequence = SimpleNamespace(is_tensor=lambda: False)
    strings = SimpleNamespace(is_tensor=lambda: True, data_type=lambda: "tensor(string)")
    outputs = (entry("a", "seq(tensor(float))"), entry("b", "tensor(string)"))
    onnxruntime._emit_outputs(
        given(outputs=outputs),
        SimpleNamespace(get_outputs=lambda: [sequence, strings]),
        lambda kind, _body=b"", **fields: heard.append((kind, fields)),
    )
    assert [fields["text"] for kind, fields in heard if kind == "message"] == [
        "output a is seq(tensor(float)): not compared",
        "output b is tensor(string): not compared",
    ]
    assert [fields for kind, fields in heard if kind == "output"] == [
        {"name": "a", "dtype": "", "shape": []},
        {"name": "b", "dtype": "", "shape": []},
    ]


def test_the_time_on_the_host_is_that_between_two_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [3600.0]

    def work() -> None:
        now[0] += 0.25

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    once = onnxruntime._on_the_host(work)
    assert [once(), once()] == [250.0, 250.0]

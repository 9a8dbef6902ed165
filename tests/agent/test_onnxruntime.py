"""The ONNX Runtime adapter: it runs where it was told to, or says that it cannot."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from harness.agent.engines import Failed, Unavailable, onnxruntime

pytestmark = pytest.mark.unit

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


class Runtime:
    """ONNX Runtime as it behaves where a provider does not load: a warning, and the CPU."""

    SessionOptions = SimpleNamespace
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
    with pytest.raises(Unavailable, match=r"needs CUDAExecutionProvider, .* gives CPUExecutionProvider"):
        session(monkeypatch, Runtime([CPU]), CUDA)


def test_the_cpu_needs_no_more_than_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime([CPU])
    session(monkeypatch, runtime, CPU)
    assert runtime.asked["providers"] == [(CPU, {})]


def test_what_the_runtime_raises_is_its_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failed, match="RuntimeError: no kernel for Mish"):
        session(monkeypatch, Runtime(RuntimeError("no kernel for Mish")), CPU)


def test_nodes_that_ran_elsewhere_are_named_with_their_operator() -> None:
    def kernel(name: str, op: str, provider: str) -> dict[str, Any]:
        return {
            "cat": "Node",
            "name": f"{name}_kernel_time",
            "dur": 5,
            "args": {"op_name": op, "provider": provider},
        }

    events = [
        {"cat": "Session", "name": "model_run", "dur": 99},
        kernel("/conv", "Conv", CUDA),
        kernel("/shape", "Shape", CPU),
        kernel("/shape", "Shape", CPU),
        {"cat": "Node", "name": "/shape_fence_before", "dur": 1, "args": {"op_name": "Shape"}},
        {"cat": "Node", "name": "/old_kernel_time", "dur": 1},
    ]
    assert onnxruntime.elsewhere(json.dumps(events).encode(), CUDA) == {"/shape (Shape)": CPU}
    assert onnxruntime.elsewhere(json.dumps(events[:2]).encode(), CUDA) == {}


def test_devices_are_told_to_the_provider_that_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline on the CPU must not be stamped with a GPU that it never touched."""
    monkeypatch.setattr(onnxruntime, "device_facts", lambda: [{"gpu_uuid": "GPU-1"}, {"gpu_uuid": "GPU-2"}])
    for provider, uuids in (("cuda", ["GPU-1"]), ("cpu", [])):
        heard: list[Any] = []
        onnxruntime.run(
            {"kind": "devices", "provider": provider},
            b"",
            lambda _kind, _body=b"", heard=heard, **fields: heard.append(fields),
        )
        assert [fields["facts"]["gpu_uuid"] for fields in heard] == uuids

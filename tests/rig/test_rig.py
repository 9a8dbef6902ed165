"""A whole run on a machine with GPUs, as far as the rig is one: right when all is well, and honest when it is not.

Every failure of the machine is the target's `infra_error` with the call, the code and what to do; none is a crash of
the engine, a regression or something new. The rig cannot give the answers of real drivers and the real libraries.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.case import Graph
from harness.record.store import Store
from harness.run import trace
from tests import needs
from tests.agent.test_plugins import library
from tests.contract.bindings import VERSIONS, Bindings
from tests.rig.machine import GPUS, Rig
from tests.waiting import HANGS

pytestmark = [pytest.mark.contract, pytest.mark.timeout(2 * HANGS)]

CHOSEN = {
    version.id: version for version in VERSIONS if version.id in ("8.6", "10.0", "10.7", "10.16", "11.2")
}
NEWEST = CHOSEN["11.2"]
MakeRig = Callable[..., Rig]
_CUDA_35 = "CUDA initialization failure with error: 35"
_UPDATE = "the driver is too old for this CUDA: update it"

#: A machine's fault, and its part of the reason.
FAULTS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "driver too old": ({"fails": ("cuInit 35",)}, ("cuInit: 35 ", _UPDATE)),
    "forward compatibility": (
        {"fails": ("cuInit 804",)},
        (
            "cuInit: 804 CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
            "forward compatibility was attempted on non supported HW",
            "data-centre GPUs",
        ),
    ),
    "a code without advice": ({"fails": ("cuInit 3",)}, ("cuInit: 3 unknown error (no text)",)),
    "exclusive process": (
        {"fails": ("cuDevicePrimaryCtxRetain 46",)},
        ("cuDevicePrimaryCtxRetain: 46 CUDA_ERROR_DEVICE_UNAVAILABLE", "nvidia-smi -c DEFAULT"),
    ),
    "memory taken": (
        {"fails": ("cuMemAlloc_v2 2",)},
        ("cuMemAlloc_v2: 2 CUDA_ERROR_OUT_OF_MEMORY", "no memory left"),
    ),
    "copies fail": ({"fails": ("cuMemcpyDtoHAsync_v2 700",)}, ("cuMemcpyDtoHAsync_v2: 700",)),
    "lost after the preflight": ({"fails": ("cuInit 999 2",)}, ("cuInit: 999 CUDA_ERROR_UNKNOWN",)),
    "no libcuda": ({"libcuda": False}, ("no NVIDIA driver: libcuda.so.1", "was given no GPU")),
    "null parser": ({"null": "createNvOnnxParser"}, ("OnnxParser: ", "nullptr", _CUDA_35, _UPDATE)),
    "null network": ({"answers": {"Builder.create_network": None}}, ("create_network: it gave nothing",)),
    "runtime that crashes": (
        {"answers": {"Runtime.max_threads": "crash"}},
        ("killed by SIGSEGV in the check of the runtime",),
    ),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeRig]:
    """Return what makes a rig of a version; the interpreter and the libraries of one are made once."""
    if platform.machine() != "x86_64":
        pytest.skip("the stub returns structures as x86-64 does")
    needs.network()
    rigs: dict[tuple[str, bool], Rig] = {}

    def make(version: Bindings = NEWEST, **fields: Any) -> Rig:
        key = (version.id, fields.get("libcuda", True))
        if key not in rigs:
            rigs[key] = Rig(tmp_path_factory.mktemp("rig"), version)
        rig = replace(rigs[key], **fields)
        shutil.rmtree(rig.folder / "reports", ignore_errors=True)
        for counted in (*rig.folder.glob("lib/calls-*"), *rig.folder.glob("lib/held")):
            counted.unlink()
        return rig

    yield make
    for rig in rigs.values():
        shutil.rmtree(rig.folder, ignore_errors=True)


@pytest.mark.parametrize("version", CHOSEN.values(), ids=CHOSEN)
def test_a_healthy_machine_runs_the_whole_way(bench: MakeRig, version: Bindings) -> None:
    rig = bench(version)
    done = rig.run()
    assert done.returncode == 0, done.stdout + done.stderr
    for cell in rig.cells().values():
        assert (cell["class"], cell["precision"]) == ("ok", {"relu": "fp32"})
        assert {"parse", "build", "load", "run", "time", "profile"} <= cell["phases"].keys()
        assert cell["gpu"]
        assert cell["latency_ms"]["n"] >= 100


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_machine_is_no_fault_of_the_engine(bench: MakeRig, name: str) -> None:
    fields, said = FAULTS[name]
    blamed(bench(**fields), said)


@pytest.mark.parametrize("version", CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize(
    ("null", "made"), [("createInferBuilder", "Builder"), ("createInferRuntime", "Runtime")]
)
def test_a_null_pointer_is_no_crash_of_the_engine(
    bench: MakeRig, version: Bindings, null: str, made: str
) -> None:
    """The bindings of each version turn it into a TypeError of pybind11's."""
    blamed(
        bench(version, null=null),
        (f"{made}: TypeError", "nullptr", f"{null}: Error Code 6", _CUDA_35, _UPDATE),
    )


def blamed(rig: Rig, said: tuple[str, ...]) -> None:
    """Run, and hold that the machine is blamed for every cell, in these words."""
    done = rig.run()
    assert done.returncode == 3, done.stdout + done.stderr
    cells = rig.cells()
    assert {(cell["class"], cell["verdict"]) for cell in cells.values()} == {("infra_error", "infra")}
    for cell in cells.values():
        for words in said:
            assert words in cell["reason"]
    for word in ("crashed", "regressed", "new failure", "accept", "Traceback"):
        assert word not in done.stdout + done.stderr


def test_a_timed_run_has_its_gpu_alone_and_two_gpus_are_used_side_by_side(bench: MakeRig) -> None:
    """Preflights, builds and timed runs of four targets by four workers, as the driver saw them."""
    rig = bench(gpus=2, targets=("a", "b", "c", "d"))
    done = rig.run("-j", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    held = rig.held()
    assert {uuid for uuid, *_ in held} == set(GPUS)
    for gpu in GPUS:
        mine = [span for span in held if span[0] == gpu]
        # A preflight, and two builds and then two runs of each of two targets, each in one process.
        assert len(mine) == 10
        of_process = [[span for span in mine if span[1] == pid] for pid in {pid for _, pid, *_ in mine}]
        assert list(map(len, of_process)) == [5, 5]
        for run in (run for spans in of_process for run in spans[-2:]):
            assert all(
                end <= run[2] or run[3] <= begin for _, _, begin, end in mine if (begin, end) != run[2:]
            )
    first, second = ([span for span in held if span[0] == gpu] for gpu in GPUS)
    assert any(a[2] < b[3] and b[2] < a[3] for a in first for b in second), "one waited for the other"


def test_one_target_is_dealt_over_all_gpus_of_one_name(
    bench: MakeRig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each record names its GPU, and the trace has the work of both workers."""
    monkeypatch.setenv(trace.VARIABLE, str(tmp_path / "trace.json"))
    rig = bench(gpus=2, targets=("a",), again=11)
    done = rig.run("-j", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    with Store(rig.folder / "reports") as store:
        on = {each.cell: each.stamps.environment["gpu_uuid"] for each in store.outcomes()}
    assert (len(on), set(on.values())) == (12, set(GPUS))
    events = json.loads((tmp_path / "trace.json").read_text().rstrip(",\n") + "]")
    held = [each for each in events if each["name"] == "device held alone"]
    assert {each["args"]["device"] for each in held} == set(GPUS)
    assert sum(each["name"] == "run job" for each in events) == len(on)


@pytest.mark.parametrize(
    ("fails", "clock"),
    [
        ((), "cuda_graph"),
        (("cuStreamEndCapture 901",), "cuda_events"),
        (("cuGraphLaunch 700",), "cuda_events"),
    ],
)
def test_an_engine_that_is_not_captured_is_timed_by_launches(
    bench: MakeRig, fails: tuple[str, ...], clock: str
) -> None:
    rig = bench(fails=fails)
    done = rig.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert {(each["class"], each["latency_ms"]["clock"]) for each in rig.cells().values()} == {("ok", clock)}


def test_a_timing_beside_other_processes_says_so(bench: MakeRig) -> None:
    line = f"{GPUS[0]}, 4711, /usr/bin/python3"
    rig = bench(neighbours=(line, f"{GPUS[1]}, 1, elsewhere"))
    assert rig.run().returncode == 0
    for cell in rig.cells().values():
        assert cell["latency_ms"]["noise"] == "others used the GPU: python3 (pid 4711)"


def test_an_engine_that_refuses_a_context_is_not_the_machine(bench: MakeRig) -> None:
    """A context is made of a plan: that there is none may well be the plan's fault."""
    rig = bench(answers={"ICudaEngine.create_execution_context": None})
    rig.run()
    assert {cell["class"] for cell in rig.cells().values()} == {"load_failed"}


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(version, id=name, marks=() if name == "10.16" else pytest.mark.long)
        for name, version in CHOSEN.items()
    ],
)
def test_a_model_of_the_user_s_is_calibrated_with_own_batches_and_loads_own_plugins(
    bench: MakeRig, version: Bindings
) -> None:
    """In the real bindings, over a stub of the library and of the driver; where there are no calibrators it is said."""
    rig = bench(version)
    rig.write()
    folder = rig.folder
    (folder / "m.onnx").write_bytes(relu())
    np.savez(folder / "batches.npz", x=np.arange(6, dtype=np.float32).reshape(3, 1, 2))
    library(folder)
    words = (*("check", "m.onnx", "--via", "venv"), "--json", "out.json", "--html", "report")
    done = rig.harness(*words, "--plugin", "libmine.so", "--calibration", "batches.npz")
    (cell,) = json.loads((folder / "out.json").read_text())["cells"]
    removed = version.version.startswith("11")
    assert cell["class"] == ("api_removed" if removed else "ok"), done.stdout + done.stderr
    if removed:
        assert "IBuilderConfig.int8_calibrator" in cell["reason"]
        done = rig.harness(*words, "--plugin", "libmine.so")
        (cell,) = json.loads((folder / "out.json").read_text())["cells"]
        assert cell["class"] == "ok", done.stdout + done.stderr
    # Once where it is built, and once where it is run.
    log = Store(folder / "report").log(cell["log"])
    assert log.count("mine is here") == 2


def relu() -> bytes:
    graph = Graph("relu")
    graph.node("Relu", [graph.input("x", [1, 2])], name="relu", output="y")
    graph.output("y", [1, 2])
    return graph.model().SerializeToString()

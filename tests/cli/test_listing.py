"""`doctor`, `list` and `show` print what a person needs, and every line they offer can be pasted."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest

from harness.case import model_sha256
from harness.cli import doctor, main
from harness.matrix import load_matrix
from harness.record.outcome import Message
from harness.run.docker import Daemon
from harness.run.provision.host import Host, HostGpu
from tests import needs
from tests.cli import project
from tests.fixtures import Capture, Patch
from tests.reader import reader

pytestmark = pytest.mark.unit

BARE = Host("amd64", gpu_reason="nvidia-smi is not installed", docker_reason="nobody listens")
DOCKER = Daemon("28.0", "here", "amd64", nvidia_runtime=False, address="unix:///x")
GPU = HostGpu("GPU Nine", "GPU-9", "8.9", "600.1", 24000)


@pytest.mark.usefixtures("toy")
def test_doctor_ends_with_what_to_do(capsys: Capture) -> None:
    assert main(["doctor", "--reports", "out here"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    # How many there are depends on the GPUs of this machine.
    assert re.search(r"--reports 'out here' .* \d of 6", last)


@pytest.mark.usefixtures("toy")
def test_list_names_cells_and_targets(capsys: Capture) -> None:
    def listed(*words: str) -> list[str]:
        assert main(["list", *words]) == 0
        return capsys.readouterr().out.splitlines()

    assert listed("--target", "ort131") == ["toy.relu-ort131", "toy.weak-ort131", "toy.foreign-ort131"]
    assert listed("-k", "relu and not trt86") == ["toy.relu-ort131"]
    targets = listed("targets")
    assert targets[0].split()[0] == "trt86"
    assert targets[0].endswith("nvcr.io/nvidia/tensorrt:23.06-py3")
    assert "onnxruntime==1.31.1" in targets[1]


def test_an_image_of_which_no_source_speaks_is_marked(toy: Path, monkeypatch: Patch, capsys: Capture) -> None:
    """By `list` and, where it can run, by `doctor`."""
    targets = '{own: {engine: tensorrt, version: "10.4.0.26", image: "registry.example/own:1", needs: {}}}'
    (toy / "matrix.yaml").write_text(f"schema: 1\ntargets: {targets}\n", encoding="utf-8")
    assert main(["list", "targets"]) == 0
    said = "(no source says which TensorRT this image holds; a run will)\n"
    assert said in capsys.readouterr().out
    host = replace(BARE, docker=replace(DOCKER, nvidia_runtime=True), gpus=(GPU,), gpu_reason="")
    monkeypatch.setattr(doctor, "look_at_host", lambda: host)
    assert main(["doctor"]) == 0
    assert f"container {said}" in capsys.readouterr().out


def commands(cell: str, capsys: Capture, *words: str) -> list[str]:
    """Return the lines below "commands" of `show`, without comments."""
    assert main(["show", cell, *words]) == 0
    lines = capsys.readouterr().out.partition("\ncommands")[2].splitlines()[1:]
    return [line.strip() for line in lines if not line.strip().startswith("#")]


def test_show_prints_the_cell_whole(monkeypatch: Patch, capsys: Capture, tmp_path: Path) -> None:
    """Graph, recipe, claims with their links, and commands, of the cell that the README shows."""
    monkeypatch.chdir(project.TOP)
    assert main(["show", "conv_silu.int8-entropy-trt86", "--reports", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    flat = " ".join(out.split())
    for said in (
        "Conv                 /model.0/conv/Conv",
        "input   images float[1,3,64,64]",
        "weak typing; flags INT8; entropy calibrator",
        "ok on tensorrt ==8.6.1, compute capability 9.0 (measured)",
        f"last result: none is recorded in {tmp_path}",
        "trt-compat run -k conv_silu.int8-entropy-trt86 --target trt86",
        "nvcr.io/nvidia/tensorrt:23.06-py3",
        "commands, for the project's top folder, after `source .venv/bin/activate`",
        "docker run --rm -i --platform linux/amd64",
        "--gpus all",
        "uv venv",
        "nvcr.io/nvidia/tensorrt:23.06-py3 python3 repro.py conv_silu-int8-entropy.json",
        "--output conv_silu-int8-entropy.onnx",
    ):
        assert " ".join(said.split()) in flat, said
    assert "trtexec" not in out
    assert main(["show", "conv_silu.int8-entropy-trt92", "--reports", str(tmp_path)]) == 0
    claim = capsys.readouterr().out.partition("known about this cell\n")[2]
    assert "https://github.com/NVIDIA/TensorRT/issues/3640" in claim


def test_show_has_the_result_before_the_graph_and_wraps(
    toy: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    """What a reader came for is on the first screen; lines to paste and links are never broken."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(project.TOP)
    for cell in ("conv_silu.int8-entropy-trt86", "instance_norm.int8-as-reported-rtx17"):
        assert main(["show", cell, "--reports", str(toy / "reports")]) == 0
        out = capsys.readouterr().out
        order = [
            out.index(f"\n{word}") for word in ("last result", "known about", "recipe", "graph", "commands")
        ]
        assert order == sorted(order)
        told = out.partition("\ncommands")[0].replace(str(toy), "").splitlines()
        assert [
            line for line in told if len(line) > 80 and len(line.split()) > 1 and "sha256" not in line
        ] == []


def test_show_folds_a_long_graph(monkeypatch: Patch, capsys: Capture) -> None:
    """To the count of each operator."""
    monkeypatch.chdir(project.TOP)
    assert main(["show", "conv_silu.qdq-tail-rtx17"]) == 0
    folded = " ".join(capsys.readouterr().out.split())
    assert re.search(r"\d+ nodes: \d+ \w+, \d+", folded)


def test_the_saved_file_is_the_cells(monkeypatch: Patch, capsys: Capture, tmp_path: Path) -> None:
    """The program and the recipe are beside the model, which may not be called as they are."""
    monkeypatch.chdir(project.TOP)
    model = tmp_path / "mine.onnx"
    assert main(["show", "conv_silu.qdq-rtx17", "--output", str(model)]) == 0
    said = capsys.readouterr().out
    recipe = json.loads((tmp_path / "mine.json").read_text(encoding="utf-8"))
    assert recipe["needs"].startswith("TensorRT for RTX")
    assert recipe["model"] == "mine.onnx"
    assert "venv/bin/python repro.py mine.json" in said
    assert said.count(f"  cd {tmp_path}\n") == 2
    for name in ("repro.py", "mine.json"):
        assert main(["show", "conv_silu.qdq-rtx17", "--output", str(tmp_path / name)]) == 2
        assert "name the model" in capsys.readouterr().err


@pytest.mark.usefixtures("toy")
def test_show_takes_an_id_as_pytest_prints_it(capsys: Capture) -> None:
    assert main(["show", "matrix.yaml::toy.relu-ort131"]) == 0
    assert capsys.readouterr().out.startswith("toy.relu-ort131\n")


def test_every_printed_line_is_one_that_a_shell_can_read(
    monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    """One cell of each target: `bash -n` takes the lines, and none names a folder of the cache."""
    monkeypatch.chdir(project.TOP)
    cache = str(tmp_path / "cache")
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", cache)
    script = []
    for target in load_matrix(project.TOP / "matrix.yaml"):
        script += commands(f"conv_silu.int8-mark-conv-{target.name}", capsys, "--reports", str(tmp_path))
    assert not subprocess.run(["bash", "-n"], input="\n".join(script), text=True, check=False).returncode
    assert not [line for line in script if cache in line]


def test_the_saved_model_is_the_cells(toy: Path, capsys: Capture) -> None:
    """The --output line that `show` prints writes the bytes whose hash it prints."""
    line = next(line for line in commands("toy.relu-trt86", capsys) if "--output" in line)
    assert main(shlex.split(line)[1:]) == 0
    out = capsys.readouterr().out
    data = (toy / "toy-relu.onnx").read_bytes()
    assert f"sha256 {model_sha256(data)}" in out
    onnx.checker.check_model(onnx.load_model_from_string(data))
    assert any("trtexec --onnx=toy-relu.onnx" in line for line in out.splitlines())


def test_list_and_show_tell_the_last_result_and_whether_it_is_of_today(toy: Path, capsys: Capture) -> None:
    """The id stays the first word of a line."""
    name, told = "toy.relu-trt86", (Message("ERROR", "it will\nnot build"),)
    project.record(toy, name, failed_phase="build", messages=told, when="2026-01-02", via="docker")
    assert main(["show", name]) == 0
    out = capsys.readouterr().out
    assert "result (2026-01-02, docker)" in out
    assert "[ERROR] it will" in out
    assert main(["report"]) == 0
    capsys.readouterr()
    assert main(["list", "--target", "trt86"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert (first.split(maxsplit=1), second) == ([name, "build_failed (new)"], "toy.weak-trt86")
    (record,) = (toy / "reports" / "records").iterdir()
    record.unlink()
    project.record(toy, name, failed_phase="build", recipe_sha256="0" * 64)
    project.record(toy, "toy.relu-ort131", ran=True, uncompared="no reference")
    assert main(["show", name]) == 0
    said = capsys.readouterr().out
    assert "recipe has changed" in said
    assert "build_failed (new)" not in said
    assert main(["show", "toy.relu-ort131"]) == 0
    assert "compared: no reference" in capsys.readouterr().out


@pytest.mark.integration
@pytest.mark.usefixtures("toy")
def test_the_virtual_environment_lines_work_as_pasted_twice(capsys: Capture) -> None:
    needs.network()
    lines = [line for line in commands("toy.relu-ort131", capsys) if "/venv" in line]
    assert len(lines) == 3
    for _ in range(2):
        done = subprocess.run(
            ["bash", "-e"], input="\n".join(lines), text=True, capture_output=True, check=False, env=reader()
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "1.31.1"


@pytest.mark.usefixtures("toy")
def test_programs_get_json_of_what_people_get_in_lines(
    toy: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    def said(*words: str) -> Any:
        assert main([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    monkeypatch.setattr(doctor, "look_at_host", lambda: BARE)
    project.record(toy, "toy.relu-ort131", failed_phase="build", error="no luck")
    assert main(["report"]) == 0
    capsys.readouterr()
    cells = said("list", "-k", "relu")
    assert [cell["id"] for cell in cells] == ["toy.relu-trt86", "toy.relu-ort131"]
    assert [cell.get("class") for cell in cells] == [None, "build_failed"]
    assert [each["id"] for each in said("list", "targets")] == ["trt86", "ort131"]
    (result,) = said("show", "toy.relu-ort131")["results"]
    assert (result["class"], result["verdict"]) == ("build_failed", "new")
    targets = {each["id"]: each for each in said("doctor")["targets"]}
    assert targets["trt86"]["can_run"] is False
    assert targets["trt86"]["lacks"].startswith("needs an NVIDIA GPU")
    assert targets["ort131"] == {
        "id": "ort131",
        "can_run": True,
        "ways": ["virtual environment"],
        "lacks": None,
    }

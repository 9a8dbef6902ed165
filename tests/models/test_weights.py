"""Weights that stay beside a model: found, looked at, and read by engines from where they are brought."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.cli import main
from harness.errors import HandledError, InfraError
from harness.matrix import load_matrix
from harness.models import reading
from harness.models.answers import Answer
from harness.models.further import Asking, Questions
from harness.models.graphs import Cutter, outside
from harness.models.own.data import Given, OwnPrepared, fitted
from harness.models.own.model import OwnModel, Wanted, load_own, own_case, own_model
from harness.models.reading import held, read_beside
from harness.models.reduce import Search
from harness.models.rewrites import REWRITES, unquantised
from harness.models.rewrites.floats import half
from harness.models.trying import BuiltOrRun, Tries, run_models
from harness.models.workarounds import workarounds
from harness.plan import all_cells
from harness.run.docker.container import archive
from harness.run.local import How
from harness.run.provision.model import Via
from harness.words import Class
from tests import needs
from tests.integration.runs import ROOT
from tests.models.embedded import blocked, classifier, network
from tests.models.fake import judged, unbuilt

SMALL = 1 << 20


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a megabyte be too much to be read into a model."""
    monkeypatch.setattr(reading, "MOST_EVALUATED", SMALL)


def beside(path: Path) -> OwnModel:
    model, weights = read_beside(path, "give another")
    own = own_model(model, str(path), Wanted(), name="m")
    return OwnModel(own.label, own.variant, own.nodes, own.opset, own.wishes, weights=weights)


@pytest.mark.usefixtures("few")
@pytest.mark.unit
def test_large_weights_stay_in_their_file_and_small_ones_are_read(tmp_path: Path) -> None:
    path = write_chain(tmp_path, 3, 512)
    own = beside(path)
    assert own.weights is not None
    assert (own.weights.folder, own.weights.files, own.weights.size) == (
        tmp_path,
        ("weights.bin",),
        3 * SMALL,
    )
    assert len(own.variant.model_bytes()) < 2000
    assert fitted(own, Given()) == Given()
    model, weights = read_beside(write_chain(tmp_path / "small", 2, 64), "give another")
    assert weights is None
    assert len(model.graph.initializer[0].raw_data) == 64 * 64 * 4


@pytest.mark.usefixtures("few")
@pytest.mark.unit
def test_scales_are_read_whatever_their_size(tmp_path: Path) -> None:
    path = write_chain(tmp_path, 3, 512)
    model = onnx.load(path, load_external_data=False)
    model.graph.node[1].CopyFrom(onnx.helper.make_node("QuantizeLinear", ["m0", "w1"], ["r1"]))
    path.write_bytes(model.SerializeToString())
    held, _ = read_beside(path, "give another")
    assert [bool(each.raw_data) for each in held.graph.initializer] == [False, True, False]


@pytest.mark.usefixtures("few")
@pytest.mark.unit
@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("../weights.bin", "which is not beside it"),
        ("/etc/passwd", "which is not beside it"),
        ("", "which is not beside it"),
        ("nowhere.bin", "No such file"),
        ("short.bin", "has 5 bytes, and its weights take"),
    ],
)
def test_a_place_that_is_none_is_one_sentence(tmp_path: Path, place: str, sentence: str) -> None:
    path = write_chain(tmp_path / "model", 3, 512)
    (tmp_path / "weights.bin").write_bytes(b"elsewhere")
    (path.parent / "short.bin").write_bytes(b"short")
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[2].external_data[0].value = place
    path.write_bytes(model.SerializeToString())
    with pytest.raises(HandledError, match=sentence):
        read_beside(path, "give another")


@pytest.mark.usefixtures("few")
@pytest.mark.unit
def test_other_models_are_made_of_them_that_leave_them_where_they_are(tmp_path: Path) -> None:
    path = write_chain(tmp_path, 3, 512)
    model, _ = read_beside(path, "give another")
    halved = half(model)
    assert halved is not None
    assert outside(halved) == outside(model)
    halved_file = tmp_path / "half.onnx"
    halved_file.write_bytes(halved.SerializeToString())
    onnx.checker.check_model(str(halved_file), full_check=True)
    casts = {node.input[0] for node in halved.graph.node if node.op_type == "Cast"}
    assert casts >= {"w0", "w1", "w2"}
    quantised, _ = read_beside(write_chain(tmp_path, 3, 512, quantised=True), "give another")
    plain = unquantised(quantised, ["/m0", "/m1", "/m2"])
    assert plain is not None
    assert [list(node.input) for node in plain.graph.node] == [list(node.input) for node in model.graph.node]


@pytest.mark.unit
@pytest.mark.parametrize(
    "model", [blocked(), network("concat", depth=4), network("vector", depth=4), classifier()]
)
def test_no_rewrite_needs_weights_that_lie_elsewhere(model: onnx.ModelProto) -> None:
    """Those that write weights anew find nothing to change."""
    held = onnx.ModelProto()
    held.CopyFrom(model)
    for tensor in held.graph.initializer:
        if tensor.dims:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="weights.bin")
    names = {node.name for node in held.graph.node}
    for rewrite in REWRITES:
        made = rewrite.apply(held, names)
        assert made is None or rewrite.name != "zeros-in-kernel"
        if made is not None:
            assert {each.name for each in outside(made)} <= {each.name for each in outside(held)}


@pytest.mark.usefixtures("few")
@pytest.mark.unit
def test_weights_that_are_stored_quantised_stay_so_where_nobody_reads_them(tmp_path: Path) -> None:
    model, _ = read_beside(write_chain(tmp_path, 3, 512, quantised=True), "give another")
    stored, (first, *_) = model.graph.initializer[0], model.graph.node
    stored.data_type = onnx.TensorProto.INT8
    model.graph.node.remove(first)
    model.graph.node[0].input[0] = stored.name
    plain = unquantised(model, ["/m0", "/m1", "/m2"])
    assert plain is not None
    assert [node.input[0] for node in plain.graph.node if node.op_type == "DequantizeLinear"] == ["w0"]


@pytest.mark.usefixtures("few")
@pytest.mark.unit
def test_they_are_taken_into_a_model_that_has_room_for_them(tmp_path: Path) -> None:
    path = write_chain(tmp_path, 3, 512)
    model, weights = read_beside(path, "give another")
    assert held(model, weights) is None
    part = Cutter(model).cut([2, 3])
    assert part is not None
    whole = held(part, weights)
    assert whole is not None
    assert not outside(whole)
    assert whole.graph.initializer[0] == onnx.load(path).graph.initializer[1]
    assert held(whole, weights) is None
    assert held(part, None) is None
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(HandledError, match=r"cannot be read.*leave them there until this has ended"):
        held(part, weights)


@pytest.mark.usefixtures("few")
@pytest.mark.unit
def test_a_reduction_takes_them_in_once_so_few_nodes_are_left(tmp_path: Path) -> None:
    model, weights = read_beside(write_chain(tmp_path, 3, 512), "give another")
    seen: list[int] = []

    def shows(candidate: onnx.ModelProto) -> bool:
        seen.append(len(outside(candidate)))
        return any(node.name == "/m1" for node in candidate.graph.node)

    search = Search(model, shows, held=lambda found: held(found, weights))
    assert search.run()
    assert [node.name for node in search.best.graph.node] == ["/m1"]
    assert [list(each.dims) for each in search.best.graph.initializer] == [[1, 1]]
    assert seen[0] > 0
    assert seen[-1] == 0


@pytest.mark.usefixtures("few")
@pytest.mark.unit
def test_numbers_are_not_compared_without_them(tmp_path: Path) -> None:
    model, _ = read_beside(write_chain(tmp_path, 3, 512), "give another")
    found = workarounds(model, judged(model, **unbuilt("no luck")), judged)[0].tried
    assert all("weights stay" in each.uncompared for each in found if each.gain)


@pytest.mark.unit
def test_files_travel_in_pieces_and_one_that_shrinks_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    contents = {"a.bin": b"a" * 512, "deep/b.bin": b"b" * 250_000}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
        (tmp_path / name).chmod(0o600)
    pieces = list(archive(tmp_path, list(contents)))
    assert max(map(len, pieces)) < 100_000
    with tarfile.open(fileobj=io.BytesIO(b"".join(pieces))) as whole:
        held = {entry.name: (entry.mode, whole.extractfile(entry)) for entry in whole}
        assert {name: (mode, file.read()) for name, (mode, file) in held.items() if file} == {
            name: (0o444, data) for name, data in contents.items()
        }

    shrinking = archive(tmp_path, ["deep/b.bin"])
    next(shrinking)
    os.truncate(tmp_path / "deep/b.bin", 0)
    with pytest.raises(InfraError, match="changed its size"):
        list(shrinking)
    with pytest.raises(InfraError, match="No such file"):
        list(archive(tmp_path, ["nothing"]))


def run(own: OwnModel, names: tuple[str, ...], via: str) -> dict[str, Class]:
    matrix = load_matrix(ROOT / "matrix.yaml")
    cells = [cell for cell in all_cells(matrix, (own_case([own]),)) if cell.target.name in names]
    prepared = OwnPrepared({own.variant.name: Given(weights=own.weights)})
    judged = run_models(cells, prepared, How(via))  # type: ignore[arg-type]
    assert all("no reference" in each.outcome.uncompared for each in judged if each.outcome.ran)
    return {each.cell.target.name: each.classification.cls for each in judged}


@pytest.mark.contract
@pytest.mark.usefixtures("few")
@pytest.mark.integration
@pytest.mark.parametrize("via", ["venv", "docker"])
def test_engines_read_them_where_they_are_brought(tmp_path: Path, via: str) -> None:
    needs.network()
    if via == "docker":
        needs.docker()
        needs.base_image()
    own = beside(write_chain(tmp_path, 3, 512))
    found = run(own, ("rtx17", "ort117", "ort131"), via)
    assert found == {"rtx17": Class.BUILT, "ort117": Class.OK, "ort131": Class.OK}


@pytest.mark.contract
@pytest.mark.usefixtures("few")
@pytest.mark.integration
@pytest.mark.parametrize("via", ["venv", "docker"])
def test_what_is_made_of_a_model_reads_them_from_there_too(tmp_path: Path, via: Via) -> None:
    """Turing has no product in FP32: FP16 helps, and one product alone shows it."""
    needs.network()
    if via == "docker":
        needs.docker()
        needs.base_image()
    own = beside(write_chain(tmp_path, 3, 512, quantised=True))
    target = load_matrix(ROOT / "matrix.yaml").target("rtx17-sm75")
    given = Given(weights=own.weights)
    every = Questions(workarounds=True)
    with Tries(via=via, prepared=BuiltOrRun(given)) as tries:
        before = Answer(tries.judged(own.variant.model_bytes(), target, own.variant.recipe))
        *_, (_, (answer,)) = Asking(own, [before], every, tries, (), given).answers()
        found = answer.further
        assert found.blockers is not None
        assert [each.nodes for each in found.blockers.found][:1] == [("/m0",)]
        assert found.workarounds is not None
        assert found.workarounds.best == "half-products"


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.timeout(1800)
def test_more_than_anybody_evaluates_is_reduced_to_a_product_and_bisected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs.network()
    path, small = str(write_chain(tmp_path, 6, 5000)), tmp_path / "small.onnx"
    where = ("--matrix", str(ROOT / "matrix.yaml"), "--via", "venv")
    assert main(["reduce", path, "--target", "rtx17-sm75", "-o", str(small), *where]) == 0
    assert [node.op_type for node in onnx.load(small).graph.node] == ["MatMul"]
    assert small.stat().st_size < 1000
    assert main(["bisect", path, "--good", "rtx16", "--bad", "rtx17", "--symptom", "numbers", *where]) == 3
    said = capsys.readouterr().out
    assert "no numbers were" in said
    assert main(["bisect", path, "--good", "rtx16", "--bad", "rtx17", *where]) == 1
    assert "give the same" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("via", ["venv", "docker"])
def test_a_model_of_more_than_two_gigabytes_is_built(tmp_path: Path, via: str) -> None:
    needs.network()
    if via == "docker":
        needs.docker()
        needs.base_image()
    own = load_own(write_chain(tmp_path, 9, 7744))
    assert own.weights is not None
    assert own.weights.size > 2 << 30
    assert own.assumed[0].startswith("2.0 GiB of weights")
    assert run(own, ("rtx17",), via) == {"rtx17": Class.BUILT}


def write_chain(folder: Path, layers: int, width: int, *, quantised: bool = False) -> Path:
    """Write `model.onnx` and `weights.bin` of layers x width x width floats; return the model's path.

    `quantised` puts Q/DQ before each product, on both sides.
    """
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.Generator(np.random.PCG64(7))
    nodes, tensors, length = [], [], 4 * width * width
    with (folder / "weights.bin").open("wb") as file:
        for at in range(layers):
            file.write(
                (generator.standard_normal((width, width), np.float32) / np.float32(width**0.5)).tobytes()
            )
            tensor = TensorProto(name=f"w{at}", data_type=TensorProto.FLOAT, dims=[width, width])
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", "weights.bin"), ("offset", at * length), ("length", length)):
                tensor.external_data.add(key=key, value=str(value))
            tensors.append(tensor)
            sides = [f"w{at}", f"r{at}"]
            for number, side in enumerate(sides if quantised else ()):
                for operator, end in (("QuantizeLinear", "q"), ("DequantizeLinear", "dq")):
                    inputs = [sides[number], "scale", "zero"]
                    sides[number] = f"{side}/{end}"
                    nodes.append(helper.make_node(operator, inputs, [sides[number]], name=f"/{side}/{end}"))
            nodes.append(helper.make_node("MatMul", sides[::-1], [f"m{at}"], name=f"/m{at}"))
            nodes.append(helper.make_node("Relu", [f"m{at}"], [f"r{at + 1}"], name=f"/r{at}"))
    shape = [1, width]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("r0", f"r{layers}")]
    if quantised:
        tensors.append(numpy_helper.from_array(np.float32(0.1), "scale"))
        tensors.append(numpy_helper.from_array(np.int8(0), "zero"))
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"

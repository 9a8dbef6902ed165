"""Weights that stay beside a model: found, looked at, and read by engines from where they are brought."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import onnx
import pytest

from harness.errors import HandledError
from harness.matrix import load_matrix
from harness.models import reading
from harness.models.further import Asking, Questions
from harness.models.own import Given, OwnPrepared, Wanted, fitted, own_case
from harness.models.own.model import OwnModel, load_own, own_model
from harness.models.reading import read_beside
from harness.models.running import How, run_models
from harness.models.tries import OnlyBuilt, Tries
from harness.plan import all_cells
from harness.run.docker.stream import tarred
from harness.words import Class
from tests import needs
from tests.integration.runs import ROOT
from tests.models.beside import write_chain

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
def test_no_other_model_is_made_of_them_but_parts(tmp_path: Path) -> None:
    own = beside(write_chain(tmp_path, 3, 512))
    every = Questions(ladder=True, leave_float="auto", workarounds=True)
    asking = Asking(own, [], every, Tries(prepared=OnlyBuilt()), (), Given(weights=own.weights))
    assert asking.asked == Questions()


@pytest.mark.unit
def test_files_travel_in_pieces_and_one_that_shrinks_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.docker.stream._PIECE", 1000)
    (tmp_path / "deep").mkdir()
    contents = {"a.bin": b"a" * 512, "deep/b.bin": b"b" * 2500}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    pieces = list(tarred(tmp_path, list(contents)))
    assert max(map(len, pieces)) <= 1024
    with tarfile.open(fileobj=io.BytesIO(b"".join(pieces))) as archive:
        held = {entry.name: archive.extractfile(entry) for entry in archive}
        assert {name: file.read() for name, file in held.items() if file} == contents
    slow = tarred(tmp_path, ["deep/b.bin"])
    next(slow)
    (tmp_path / "deep/b.bin").write_bytes(b"")
    with pytest.raises(OSError, match="became shorter"):
        list(slow)


def run(own: OwnModel, names: tuple[str, ...], via: str) -> dict[str, Class]:
    matrix = load_matrix(ROOT / "matrix.yaml")
    cells = [cell for cell in all_cells(matrix, (own_case([own]),)) if cell.target.name in names]
    prepared = OwnPrepared({own.variant.name: Given(weights=own.weights)})
    judged = run_models(cells, prepared, How(via))  # type: ignore[arg-type]
    assert all("no reference was computed" in each.outcome.uncompared for each in judged if each.outcome.ran)
    return {each.cell.target.name: each.classification.cls for each in judged}


@pytest.mark.usefixtures("few")
@pytest.mark.integration
@pytest.mark.timeout(600)
@pytest.mark.parametrize("via", ["venv", "docker"])
def test_engines_read_them_where_they_are_brought(tmp_path: Path, via: str) -> None:
    needs.network()
    if via == "docker":
        needs.docker()
        needs.base_image()
    own = beside(write_chain(tmp_path, 3, 512))
    found = run(own, ("rtx17", "ort117", "ort131"), via)
    assert found == {"rtx17": Class.BUILT, "ort117": Class.OK, "ort131": Class.OK}


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
    assert own.assumed == ("2.0 GiB of weights stay in their files; no reference is computed",)
    assert run(own, ("rtx17",), via) == {"rtx17": Class.BUILT}

"""Own models: the recipe and the wishes that follow from a file, shapes in trtexec's words, given data."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case import Profile, Typing
from harness.case.graph_reader import extents
from harness.cli import main
from harness.cli.check_lines import head
from harness.errors import HandledError
from harness.models import reading
from harness.models.own import model as own_model_module
from harness.models.own.data import Given, OwnPrepared, fitted
from harness.models.own.model import Wanted, load_own, own_case, own_model, word
from harness.models.own.shapes import Shapes, made_up, parse_shapes
from harness.run.child import ChildFailed
from harness.run.numbers import given as given_arrays
from harness.run.numbers.given import read_npz
from harness.words import Precision
from tests.models import data
from tests.run.test_prepared_in_child import endless

pytestmark = pytest.mark.unit


def dynamic() -> onnx.ModelProto:
    """Return a MatMul of a batch that nobody fixed, beside a fixed second input."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 2])
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, ["batch", 2])
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "y"], ["z"], name="/mm")], "g", [x, y], [z])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def saved(tmp_path: Path, model: onnx.ModelProto, name: str = "Some Model.onnx") -> Path:
    path = tmp_path / name
    onnx.save(model, path)
    return path


def test_dynamic_dimensions_are_one_unless_told_and_that_is_said(tmp_path: Path) -> None:
    own = load_own(saved(tmp_path, dynamic()))
    assert (own.variant.name, own.opset) == ("some-model", "17")
    assert own.variant.recipe.profiles == (Profile("x", (1, 4), (1, 4), (1, 4)),)
    assert [each.split()[-1] for each in own.assumed] == ["x:1x4"]
    told = load_own(
        saved(tmp_path, dynamic()), Wanted(shapes=Shapes(maximum={"x": (8, 4)}, minimum={"x": (2, 4)}))
    )
    assert told.variant.recipe.profiles == (Profile("x", (2, 4), (8, 4), (8, 4)),)
    assert told.assumed == ()


def test_a_constant_is_no_input_though_it_is_sparse() -> None:
    model = dynamic()
    model.graph.sparse_initializer.add().values.name = "x"
    assert own_model(model, "m.onnx", Wanted(), name="m").variant.recipe.profiles == ()


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        (Shapes(optimum={"xx": (1, 4)}), "has no input 'xx'; did you mean 'x'?"),
        (Shapes(optimum={"x": (1, 5)}), "input 'x' is ?x4 and cannot be 1x5"),
        (Shapes(optimum={"y": (4, 3)}), "input 'y' is 4x2 and cannot be 4x3"),
        (Shapes(optimum={"x": (1, 4, 1)}), "input 'x' is ?x4 and cannot be 1x4x1"),
        (Shapes({"x": (8, 4)}, {"x": (4, 4)}, {"x": (2, 4)}), "least shape 8x4, the usual 4x4 and the largest 2x4"),
        (Shapes({"x": (1, 4)}, {"x": (9, 4)}, {"x": (8, 4)}), "least shape 1x4, the usual 9x4 and the largest 8x4"),
        (Shapes({"x": (2, 4)}, {"x": (1, 4)}), "least shape 2x4, the usual 1x4 and the largest 1x4; give --minShapes"),
    ],
)  # fmt: skip
def test_a_shape_that_cannot_be_the_model_s_is_one_sentence(shapes: Shapes, sentence: str) -> None:
    with pytest.raises(HandledError, match=f"m.onnx: .*{re.escape(sentence)}"):
        own_model(dynamic(), "m.onnx", Wanted(shapes=shapes), name="m")


def test_shapes_are_trtexec_s_words() -> None:
    assert parse_shapes("x:1x3x640x640,'in:0':7", "--shapes") == {"x": (1, 3, 640, 640), "in:0": (7,)}
    for text in ("x", "x:", "x:1xa", ":1x2", "x:-1x3"):
        with pytest.raises(HandledError, match=r"--shapes .*write NAME:SIZExSIZE"):
            parse_shapes(text, "--shapes")


def test_the_recipe_follows_from_the_graph_s_own_types(tmp_path: Path) -> None:
    model = dynamic()
    for each in (*model.graph.input, *model.graph.output):
        each.type.tensor_type.elem_type = TensorProto.FLOAT16
    half = saved(tmp_path, model)
    own = load_own(half, Wanted(flags=("TF32",)))
    assert own.variant.recipe.flags == ("FP16", "TF32")
    assert own.wishes == (("/mm", Precision.FP16),)
    assert load_own(half, Wanted(nodes="none")).wishes == ()
    assert load_own(half, Wanted(typing=Typing.STRONG)).variant.recipe.flags == ()


def test_a_flag_that_no_version_has_is_one_sentence() -> None:
    for flag, near in (("INT88", "INT8"), ("fp16", "FP16")):
        said = (
            f"--flag names the builder flag '{flag}', which no version of TensorRT has; did you mean '{near}'"
        )
        with pytest.raises(HandledError, match=said):
            Wanted(flags=("TF32", flag))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "No such file"),
        (b"", "it is empty"),
        (b"no model", "it is text, which begins 'no model'"),
        ("Stra\u00dfe ".encode() * 1000, "it is text, which begins 'Stra\u00dfe"),
        (b"PK\x03\x04" + b"\0" * 40, "it is a ZIP archive"),
        (b"\x1f\x8b\x08" + b"\xff" * 40, "it is packed by gzip"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        (b"\xff\xff\xff\xff", r"Wire format|is no ONNX model \("),
        (data.model().SerializeToString()[:-9], "it is cut off, or damaged"),
    ],
)
def test_a_file_that_is_no_model_is_one_sentence(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    path = tmp_path / "x.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(HandledError, match=f"x.onnx: .*({sentence}).*; give the path of an .onnx file"):
        load_own(path)


def test_weights_beside_the_model_are_read_with_it_and_missed_where_they_are_not(tmp_path: Path) -> None:
    model = dynamic()
    weights = numpy_helper.from_array(np.ones((4, 2), np.float32), "y")
    del model.graph.input[1]
    model.graph.initializer.append(weights)
    path = tmp_path / "beside.onnx"
    onnx.save(model, path, save_as_external_data=True, location="beside.data", size_threshold=0)
    (tensor,) = onnx.load_model_from_string(load_own(path).variant.model_bytes()).graph.initializer
    assert np.array_equal(numpy_helper.to_array(tensor), np.ones((4, 2), np.float32))
    (tmp_path / "beside.data").unlink()
    with pytest.raises(HandledError, match=r"are to lie in 'beside\.data'.*; put it beside the model"):
        load_own(path)


def test_weights_that_fit_into_no_model_stay_in_their_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    side = 1 << 15
    tensor = TensorProto(name="y", dims=[side, side], data_type=1, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.data"), ("length", str(4 * side * side))):
        tensor.external_data.add(key=key, value=value)
    model = dynamic()
    model.graph.initializer.append(tensor)
    with (tmp_path / "w.data").open("wb") as file:
        file.truncate(4 * side * side)
    own = load_own(saved(tmp_path, model))
    assert (str(own.weights), len(own.variant.model_bytes()) < 1000) == ("4.0 GiB", True)
    assert main(["new", "big", "--from", own.label, "--cases", str(tmp_path / "cases")]) == 2
    assert "4.0 GiB of weights" in capsys.readouterr().err
    (tmp_path / "w.data").unlink()
    with pytest.raises(HandledError, match=r"w\.data: No such file"):
        load_own(Path(own.label))


def test_two_models_of_one_name_are_refused() -> None:
    one, other = (own_model(dynamic(), label, Wanted(), name="x") for label in ("a/x.onnx", "b/x.onnx"))
    with pytest.raises(HandledError, match=r"b/x.onnx: is called 'x' here, and so is a/x.onnx"):
        own_case([one, other])
    assert [word(each) for each in ("Yolo V8 (int8)", "__", "ü")] == ["yolo-v8-int8", "model", "model"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"x": np.ones((1, 4), np.float32)}, "input 'y' is not in --inputs"),
        ({"x": np.ones((2, 4), np.float32)}, "input 'x' is 1x4 and --inputs has 2x4"),
        ({"x": np.ones((1, 4), np.float64)}, "input 'x' is float32 and --inputs has float64"),
        ({"z": np.ones(1, np.float32)}, "has no input 'z'"),
    ],
)
def test_given_inputs_that_do_not_fit_are_one_sentence(given: dict[str, np.ndarray], sentence: str) -> None:
    own = own_model(dynamic(), "m.onnx", Wanted(), name="m")
    with pytest.raises(HandledError, match=f"m.onnx: .*{sentence}"):
        fitted(own, Given(given))


def test_what_is_expected_has_the_shape_that_the_model_says() -> None:
    own = own_model(dynamic(), "m.onnx", Wanted(), name="m")
    inputs = {"x": np.ones((1, 4), np.float32), "y": np.ones((4, 2), np.float32)}
    fitted(own, Given(inputs, {"z": np.ones((7, 2), np.float32)}))
    with pytest.raises(HandledError, match=r"m\.onnx: outputs are expected, and nobody says of which inputs"):
        fitted(own, Given(expected={"z": np.ones((7, 2), np.float32)}))
    for shape, said in (((7, 3), "7x3"), ((2,), "2"), ((), "a scalar")):
        with pytest.raises(
            HandledError, match=rf"m.onnx: output 'z' is \?x2 and what is expected has {said};"
        ):
            fitted(own, Given(expected={"z": np.ones(shape, np.float32)}))
    for odd in (np.nan, np.inf):
        with pytest.raises(
            HandledError, match="what is expected of output 'z' holds NaN, or infinities alone"
        ):
            fitted(own, Given(expected={"z": np.full((7, 2), odd, np.float32)}))
    fitted(own, Given(inputs, {"z": np.array([[np.inf, 1]], np.float32)}))
    with pytest.raises(HandledError, match="holds NaN"):
        fitted(own, Given(expected={"z": np.array([[np.nan, 1]], np.float32)}))


def test_given_data_are_what_the_model_is_run_on_and_held_to() -> None:
    own = own_model(dynamic(), "m.onnx", Wanted(), name="m")
    inputs = {"x": np.full((1, 4), 2, np.float32), "y": np.ones((4, 2), np.float32)}
    ready = OwnPrepared({"m": Given(inputs)}).of(own.variant)
    assert ready.reference.outputs is not None
    assert ready.reference.outputs["z"].tolist() == [[8, 8]]
    wrong = {"z": np.zeros((1, 2), np.float32)}
    held = OwnPrepared({"m": Given(inputs, wrong)}).of(own.variant).reference.outputs
    assert held is not None
    assert held["z"].tolist() == [[0, 0]]
    assert set(OwnPrepared().of(own.variant).inputs) == {"x", "y"}
    assert not OwnPrepared().of(own.variant).plain


def test_what_nobody_can_feed_is_only_built() -> None:
    model = data.model("Identity", number=TensorProto.STRING)
    own = own_model(model, "m.onnx", Wanted(), name="m")
    assert "tensor of string" in OwnPrepared().of(own.variant).unfed


def test_npz_files_that_are_none_are_one_sentence(tmp_path: Path) -> None:
    np.savez(tmp_path / "good.npz", x=np.ones(2))
    np.savez(tmp_path / "empty.npz")
    np.savez(tmp_path / "text.npz", x=np.array(["a"]))
    np.save(tmp_path / "one.npy", np.ones(2))
    (tmp_path / "bad.npz").write_bytes(b"no zip")
    assert list(read_npz(tmp_path / "good.npz", "--inputs")) == ["x"]
    for name, sentence in (
        ("empty.npz", "holds no array"),
        ("text.npz", "no array of numbers"),
        ("one.npy", "it is no .npz file"),
        ("bad.npz", "cannot be read"),
        ("none.npz", "No such file"),
    ):
        with pytest.raises(HandledError, match=f"--inputs .*{sentence}"):
            read_npz(tmp_path / name, "--inputs")


def test_made_up_indices_name_rows_that_the_table_has() -> None:
    """Token types look up a table of two; other integers go to 7."""
    edges = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, 64]) for name in ("ids", "types")]
    tables = [
        numpy_helper.from_array(np.zeros((1000, 4), np.float32), "e"),
        numpy_helper.from_array(np.zeros((2, 4), np.int8), "t"),
        numpy_helper.from_array(np.array(0.1, np.float32), "scale"),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["t", "scale"], ["d"], name="/d"),
        helper.make_node("Gather", ["e", "ids"], ["a"], name="/e"),
        helper.make_node("Cast", ["types"], ["small"], name="/c", to=TensorProto.INT32),
        helper.make_node("Gather", ["d", "small"], ["b"], name="/t"),
        helper.make_node("Add", ["a", "b"], ["y"], name="/add"),
    ]
    out = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64, 4])]
    own = own_model(
        helper.make_model(helper.make_graph(nodes, "g", edges, out, tables)), "m", Wanted(), name="m"
    )
    ready = OwnPrepared().of(own.variant)
    assert (ready.inputs["ids"].max(), ready.inputs["types"].max()) == (7, 1)
    assert ready.reference.outputs is not None


def looking_up(rows: int, number: int, axis: int = 0, *, bare: bool = False) -> onnx.ModelProto:
    """Return a model whose input is looked up in a table, with invalid nodes without inputs where those are wanted."""
    table = numpy_helper.from_array(np.zeros((rows, 4), np.float32), "table")
    node = helper.make_node("Gather", ["table", "ids"], ["y"], name="/look", axis=axis)
    ids = helper.make_tensor_value_info("ids", number, [64])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    odd = [onnx.NodeProto(op_type=op, name=op) for op in ("Gather", "Cast", "DequantizeLinear") if bare]
    return helper.make_model(helper.make_graph([node, *odd], "g", [ids], [out], [table]))


@pytest.mark.parametrize(
    "model",
    [
        looking_up(1000, TensorProto.UINT8),
        looking_up(1000, TensorProto.INT64, axis=2),
        looking_up(1000, TensorProto.INT64, axis=-3),
        looking_up(1000, TensorProto.INT64, bare=True),
    ],
)
def test_more_rows_than_an_index_has_numbers_or_an_axis_too_many_are_no_fault_of_the_machinery(
    model: onnx.ModelProto,
) -> None:
    """The engine names the fault of such a model."""
    assert made_up(model, ())["ids"].shape == (64,)


def hostile(folder: Path) -> dict[str, str]:
    """Make files that are no files to read, and return what is said of each by its name."""
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    (folder / "endless").symlink_to("/dev/zero")
    (folder / "folder").mkdir()
    return {
        "pipe": "it is no plain file",
        "loop": "Too many levels",
        "endless": "it is no plain file",
        "folder": "Is a directory",
    }


def test_a_model_that_is_no_plain_file_is_one_sentence(tmp_path: Path) -> None:
    """A pipe was waited for, and a device read until the memory was full."""
    for name, said in hostile(tmp_path).items():
        with pytest.raises(HandledError, match=rf"{name}: cannot be read \({said}"):
            load_own(tmp_path / name)


def test_a_model_that_ends_the_process_that_reads_it_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """onnx works on a stranger's model in a child."""
    path = saved(tmp_path, dynamic())

    def here(*_: object) -> None:
        raise AssertionError("the model was read in this process")

    monkeypatch.setattr(own_model_module, "read_beside", here)
    assert load_own(path).label == str(path)

    def crashed(*_: object, **__: object) -> None:
        raise ChildFailed("was killed by SIGSEGV")

    monkeypatch.setattr(reading, "stream", crashed)
    with pytest.raises(HandledError, match=r"was killed by SIGSEGV"):
        load_own(path)


def test_a_relative_path_is_read_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, dynamic())
    monkeypatch.chdir(tmp_path)
    assert load_own(Path(path.name)).label == path.name


def test_arrays_that_are_no_plain_file_or_a_bomb_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = hostile(tmp_path)
    monkeypatch.setattr(given_arrays, "LARGE", 1 << 20)
    np.savez_compressed(tmp_path / "bomb", x=np.zeros(1 << 20, np.uint8))
    head = np.lib.format.header_data_from_array_1_0(np.zeros(1))
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as packed, packed.open("x.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {**head, "shape": (1 << 60,)})
    # A header that is parsed in Python raises the errors of Python's parser.
    for name, form in {
        "comma.npz": "{'descr': ',<f8', 'fortran_order': False, 'shape': (3,), }",
        "cut.npz": "{'descr",
    }.items():
        (tmp_path / name).write_bytes(b"\x93NUMPY\1\0v\0" + form.ljust(117).encode() + b"\n" + bytes(24))
    found |= {"bomb.npz": "it unpacks to 1 MiB, and may to 1", "huge.npz": "", "comma.npz": "", "cut.npz": ""}
    for name, said in found.items():
        with pytest.raises(HandledError, match=rf"^--inputs .*{name}: cannot be read \({said}"):
            read_npz(tmp_path / name, "--inputs")


@pytest.mark.parametrize("extent", [0, -1])
def test_an_extent_below_one_is_dynamic(tmp_path: Path, extent: int) -> None:
    """Paddle's exporter writes -1: what the user gives is taken, and the engine is sent no such extent."""
    model = data.model()
    for each in (*model.graph.input, *model.graph.output):
        each.type.tensor_type.shape.dim.add().dim_value = 3
        each.type.tensor_type.shape.dim[0].dim_value = extent
    onnx.save(model, tmp_path / "m.onnx")
    own = load_own(tmp_path / "m.onnx", Wanted(shapes=Shapes(optimum={"x": (2, 3)})))
    assert own.variant.recipe.profiles[0].optimum == (2, 3)
    sent = onnx.load_model_from_string(own.variant.model_bytes()).graph
    assert [extents(end) for end in (*sent.input, *sent.output)] == [(None, 3)] * 2


def test_what_the_evaluator_is_too_slow_for_is_built_and_run_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.models.own.data._SECONDS", 2)
    own = own_model(endless(), "m.onnx", Wanted(), name="m")
    ready = OwnPrepared().of(own.variant)
    assert set(ready.inputs) == {"x"}
    assert ready.reference.outputs is None
    assert "was not done after 2 s" in ready.reference.reason
    assert ready.plain


_BRANCHES = (
    "{{ c = Constant<value = bool {{1}}>() y = If(c) <then_branch = a () => (float[2,2] t) {{ {then} }}, "
    "else_branch = b () => (float[2,2] e) {{ {other} }}> }}"
)


@pytest.mark.parametrize(
    ("body", "wanted", "words"),
    [
        ("{ y = Relu(x) }", "auto", "1 node, opset 17; none is quantised"),
        ("{ y = Relu(x) }", "none", "1 node, opset 17; held to no precision"),
        (
            "{ s = Constant<value = float {0.1}>() q = QuantizeLinear(x, s) y = DequantizeLinear(q, s) }",
            "auto",
            "3 nodes, opset 17; 2 Q/DQ nodes, none at a node of the main graph that multiplies",
        ),
        (
            _BRANCHES.format(then="t = Relu(x)", other="n = Neg(x) e = Abs(n)"),
            "auto",
            "2 nodes and 3 in branches and loops, opset 17; none is quantised",
        ),
        (
            _BRANCHES.format(
                then="s = Constant<value = float {0.1}>() t = QuantizeLinear(x, s)", other="e = Abs(x)"
            ),
            "auto",
            "opset 17; 1 Q/DQ node, none at a node of the main graph that multiplies",
        ),
    ],
)
def test_nodes_of_branches_are_counted_and_pairs_that_ask_nothing_are_named(
    body: str, wanted: str, words: str
) -> None:
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[2,2] x) => (float[2,2] y) {body}'
    own = own_model(onnx.parser.parse_model(text), "m.onnx", Wanted(nodes=wanted), name="m")
    (line, *_) = head(own)
    assert line.startswith("m.onnx: ")
    assert words in line


@pytest.mark.parametrize(
    ("opset", "body", "words"),
    [
        (13, "y = Relu(x)", ""),
        (
            12,
            "s = Constant<value = float {0.1}>() q = QuantizeLinear(x, s) y = DequantizeLinear<axis = 0>(q, s)",
            "axis",
        ),
        (17, "c = Cast<to = 6>(x) y = Div(c, x)", "inconsistent type"),
        (99, "y = Relu<mine = 1>(x)", ""),
        (17, "y = mine.Anything<mine = 1>(x)", ""),
    ],
)
def test_what_onnx_itself_does_not_allow_is_told(opset: int, body: str, words: str) -> None:
    """DequantizeLinear has an axis from opset 13 on; of an opset that onnx does not know nothing is told."""
    opsets = f'["": {opset}, "mine": 1]'
    text = f"<ir_version: 8, opset_import: {opsets}> g (float[2,2] x) => (float[2,2] y) {{ {body} }}"
    own = own_model(onnx.parser.parse_model(text), "m.onnx", Wanted(), name="m")
    assert len(own.assumed) == bool(words)
    assert all("no valid ONNX" in line and words in line for line in own.assumed)


def test_made_up_indices_are_within_what_they_name_whatever_reads_them() -> None:
    """Through Unsqueeze and Expand too, and of GatherND by its first axis."""
    value, node = helper.make_tensor_value_info, helper.make_node
    stored = [
        numpy_helper.from_array(np.zeros((1, 4), np.float32), "one"),
        numpy_helper.from_array(np.array([1]), "last"),
        numpy_helper.from_array(np.array([9, 4]), "to"),
    ]
    nodes = [
        node("Unsqueeze", ["batch", "last"], ["b1"]),
        node("Expand", ["b1", "to"], ["b2"]),
        node("ScatterElements", ["one", "b2", "x"], ["y"], axis=0, reduction="add"),
        node("GatherND", ["three", "places"], ["z"]),
    ]
    inputs = [
        value("batch", 7, ["n"]),
        value("x", 1, ["n", 4]),
        value("three", 1, [3, 2]),
        value("places", 7, [8, 1]),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [value(name, 1, None) for name in "yz"], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    sizes = {"batch": (9,), "x": (9, 4)}
    found = made_up(model, [Profile(name, size, size, size) for name, size in sizes.items()])
    assert set(found["batch"].tolist()) == {0}
    assert set(found["places"].ravel().tolist()) <= {0, 1, 2}


def test_arrays_set_the_sizes_of_dynamic_inputs_that_no_option_names() -> None:
    model = dynamic()
    (name, *_) = [each.name for each in model.graph.input]
    usual = own_model(dynamic(), "m.onnx", Wanted(), name="m").variant.recipe.profiles[0].optimum
    given = (usual[0] + 1, *usual[1:])
    taken = own_model(model, "m.onnx", Wanted(arrays={name: given}), name="m")
    assert taken.variant.recipe.profiles[0].optimum == given
    assert not taken.made_up
    named = Wanted(shapes=Shapes({}, {name: usual}, {}), arrays={name: given})
    assert own_model(dynamic(), "m.onnx", named, name="m").variant.recipe.profiles[0].optimum == usual


def test_the_opsets_of_all_domains_are_told() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "mine": 3, "unused": 1]>
        g (float[2] x) => (float[2] y) { y = mine.Own(x) }"""
    assert own_model(onnx.parser.parse_model(text), "m.onnx", Wanted(), name="m").opset == "17, mine 3"

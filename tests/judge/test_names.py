# ruff: noqa: E501  (patterns and texts stand on one line)
"""The table of names that are gone or not there yet, and the operators with the version that reads them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from harness.judge.findings import explain
from harness.judge.logs import lacked_name
from harness.judge.names import by_name, load_names, named, read_since, removed
from harness.judge.signatures import load_signatures

pytestmark = pytest.mark.unit

CAPABILITIES = Path(__file__).parents[1] / "contract" / "data" / "capabilities.tsv"
ENDED = {each.id for each in load_signatures() if each.ends}
CALLS = [(name, row.now, row.url) for row in load_names() if row.signature in ENDED for name in row.names]


def columns(name: str) -> dict[str, str]:
    """Return which versions have a name, as their bindings show."""
    lines = [line for line in CAPABILITIES.read_text("utf-8").splitlines() if not line.startswith("#")]
    return next((row for row in csv.DictReader(lines, delimiter="\t") if row["name"] == name), {})


def test_every_table_is_that_of_a_signature() -> None:
    assert {row.signature for row in load_names()} <= {signature.id for signature in load_signatures()}


@pytest.mark.parametrize(("old", "new", "url"), CALLS, ids=[old for old, _, _ in CALLS])
def test_every_line_has_its_place_in_nvidias_guide(old: str, new: str, url: str) -> None:
    assert url.startswith("https://docs.nvidia.com/deeplearning/tensorrt/11.")
    assert old
    assert new


def test_what_the_bindings_show_is_gone_in_11_and_was_there_in_10() -> None:
    """The names that the adapter asks for; NVIDIA's guide alone covers the others."""
    shown = {old: columns(old) for old, _, _ in CALLS}
    told = {name: found for name, found in shown.items() if found}
    assert len(told) >= 5
    for name, found in told.items():
        assert [found[version] for version in ("11.0", "11.2", "11.4")] == ["-"] * 3, name
        assert found["10.16"] == "yes", name


def test_a_name_is_told_where_it_is_missing_and_not_where_it_is_mentioned() -> None:
    """In the words of Python, of compilers and of trtexec."""
    for name, row in by_name().items():
        owner, _, bare = name.rpartition(".")
        owner = owner or "IBuilder"
        complaints = (
            f"AttributeError: '{owner}' object has no attribute '{bare}'",
            f"main.cpp:1:2: error: 'class nvinfer1::{owner}' has no member named '{bare}'",
            f"main.cpp:1:2: error: '{bare}' is not a member of 'nvinfer1::{owner}'",
        )
        for text in [f"Unknown option: {name} 1"] if bare.startswith("--") else complaints:
            expected = by_name().get(f"{owner}.{bare}", row)
            assert named(lacked_name(text)) == expected, text
        for text in (
            f"DeprecationWarning: use another call than {bare}.",
            f"config.{bare.strip('-')} = 1 << 30",
        ):
            assert lacked_name(text) == "", text


def test_a_mention_is_no_cause() -> None:
    """Neither as an engine's advice, nor in a warning, nor in a line of source."""
    text = """onnx_to_tensorrt.py:148: DeprecationWarning: Use set_memory_pool_limit instead.
  config.max_workspace_size = 1 << 30
[TRT] [W] Try decreasing the workspace size with IBuilderConfig::setMaxWorkspaceSize()."""
    assert explain(text).causes == ()
    assert explain("[TRT] [W] context.execute_async_v2 was deprecated in 8.5").causes == ()


def test_another_programs_name_is_none_of_these() -> None:
    assert named("torch.int4") is None
    assert named("NoneType.execute_async_v2") is None
    assert named("destroy") is None
    assert named("IRuntime.destroy") is not None
    assert explain("AttributeError: module 'torch' has no attribute 'fp4'").causes == ()


def test_one_message_may_lack_several_names() -> None:
    lines = (
        "a.cpp:1:1: error: 'kFP16' is not a member of 'nvinfer1::BuilderFlag'",
        "a.cpp:2:1: error: 'class nvinfer1::IBuilder' has no member named 'platformHasFastFp16'",
        "a.cpp:3:1: error: 'class nvinfer1::IOptimizationProfile' has no member named 'setShapeValues'; did you mean 'x'?",
        "a.cpp:4:1: error: no matching function for call to 'nobody()'",
    )
    found = explain("\n".join(lines))
    assert [(each.id, each.where) for each in found.causes] == [
        ("builder-flag-gone", 1),
        ("name-gone", 2),
        ("name-gone", 3),
    ]
    assert found.unknown == (lines[3],)


@pytest.mark.parametrize(
    ("operator", "first", "lower"),
    [
        ("LayerNormalization", "from 8.6 on", "opset 16"),
        ("Mish", "from 10.0 on", "opset 17"),
        ("CastLike", "from 9.2 or before it, after 8.6", "opset 14"),
        ("Attention", "from 10.14 on", "opset 22"),
        ("RotaryEmbedding", "from 10.15 on", "opset 22"),
        ("Swish", "from 11.0 on", "opset 23"),
        ("DFT", "from 11.2 on", "opset 16"),
        ("SequenceConstruct", "in no version that is known here", "opset 10"),
        ("QLinearMatMul", "in no version that is known here", "opset 9"),
        ("Conv", "from 8.5 or before it", ""),
        ("Det", "in no version that is known here", "opset 10"),
        ("NobodysOwn", None, ""),
    ],
)
def test_an_operator_is_told_with_the_version_that_reads_it(
    operator: str, first: str | None, lower: str
) -> None:
    said = read_since(operator)
    assert said.get("first") == first
    assert lower in said.get("lower", "")


def test_no_name_is_given_twice() -> None:
    assert len(by_name()) == sum(len(row.names) for row in load_names())


def test_the_names_that_go_between_two_versions_are_those_of_the_bindings_with_their_remedies() -> None:
    found = {each.name: each for each in removed("10.6.0.26", "11.0.0.114")}
    assert found["BuilderFlag.FP16"].signature == "weak-typing-removed"
    assert "strong typing" in found["BuilderFlag.FP16"].now
    assert found["BuilderFlag.FP16"].gone == "11.0.0"
    # Of a class that goes its members are not told one by one.
    assert "CalibrationAlgoType" in found
    assert not any(name.startswith("CalibrationAlgoType.") for name in found)
    assert "Builder.build_engine" not in found
    assert "Builder.build_engine" in {each.name for each in removed("8.6.1", "10.0.1.6")}
    assert removed("11.0.0.114", "11.4.0.106") == ()

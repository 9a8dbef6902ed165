# ruff: noqa: E501  (a row stands on one line)
"""The table of TensorRT's interface: read as it was written, made again from sources that are small."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.judge.names import named
from harness.matrix.interface import Name, interfaces, numbers
from tools.interface import sources
from tools.interface.__main__ import TABLE, written
from tools.interface.table import Fact, Listing, rows

pytestmark = pytest.mark.unit

#: The last version that each major has in the table of Python.
STEPS = (("8.6.1", "10.0.1"), ("10.16.1", "11.0.0"))
#: NVIDIA/TensorRT#4799 lists them.
WENT_WITH_11 = (
    "BatchTilePlugin_TRT", "BatchedNMSDynamic_TRT", "BatchedNMS_TRT", "Clip_TRT", "CoordConvAC", "LReLU_TRT", "NMSDynamic_TRT",
    "NMS_TRT", "Normalize_TRT", "Proposal", "SpecialSlice_TRT", "Split",
)  # fmt: skip


def name(kind: str, full: str) -> Name:
    return interfaces()[kind].names[full]


@pytest.mark.parametrize(
    ("kind", "full", "has", "lacks"),
    [
        ("python", "BuilderFlag.FP16", ("8.6", "10.16"), {"11.0": "gone", "11.4": "gone"}),
        ("python", "Builder.build_engine", ("8.6",), {"10.0": "gone", "11.4": "gone"}),
        ("python", "INetworkDefinition.add_plugin_v3", ("10.0", "11.4"), {"8.6": "new"}),
        ("python", "Builder.build_engine_with_config", ("10.6", "11.4"), {"8.6": "new", "10.5": "new"}),
        ("python", "plugin.register", ("10.6", "11.4"), {"10.5": "new"}),
        ("c++", "BuilderFlag.kFP16", ("7.2", "10.16"), {"11.0": "gone"}),
        ("c++", "IBuilder.buildEngineWithConfig", ("8.6", "10.6", "11.1"), {"10.0": "gone", "10.5": "gone"}),
        ("c++", "IBuilder.platformHasFastFp16", ("8.6", "10.16"), {"11.0": "gone"}),
        ("trtexec", "--fp16", ("8.6", "10.16"), {"11.0": "gone"}),
        ("trtexec", "--workspace", ("8.6",), {"10.0": "gone"}),
        ("trtexec", "--memPoolSize", ("8.6", "11.1"), {"8.2": "new"}),
        *(
            ("plugin", each, ("8.6", "10.16"), {"11.0": "gone"})
            for each in WENT_WITH_11
            if each != "NMSDynamic_TRT"
        ),
    ],
)
def test_a_name_is_there_from_its_birth_to_its_end(
    kind: str, full: str, has: tuple[str, ...], lacks: dict[str, str]
) -> None:
    found = name(kind, full)
    assert {version: found.lacking(numbers(version)) for version in has} == dict.fromkeys(has, "")
    assert {version: found.lacking(numbers(version)) for version in lacks} == lacks


def test_the_version_that_took_a_name_or_brings_it_is_told() -> None:
    assert name("python", "BuilderFlag.FP16").changed("gone", numbers("11.4")) == "11.0.0"
    assert name("c++", "IBuilder.buildEngineWithConfig").changed("gone", numbers("10.2")) == "10.0.1"
    assert name("python", "Builder.build_engine_with_config").changed("new", numbers("10.0")) == "10.6.0"


def test_a_member_is_found_by_the_class_that_inherits_it() -> None:
    found = interfaces()["python"].member("IConvolutionLayer", "precision")
    assert found
    assert found.full == "ILayer.precision"
    assert interfaces()["c++"].member("IInt8EntropyCalibrator2", "readCalibrationCache")
    assert interfaces()["python"].member("ILayer", "num_bindings") is None


def test_arguments_that_came_or_went_are_known() -> None:
    found = {
        each.full: each.spans
        for each in interfaces()["python"].arguments["ICudaEngine.create_execution_context"]
    }
    assert found["ICudaEngine.create_execution_context(strategy=)"] == (("10.0.1", ""),)
    reader = interfaces()["python"].arguments["Runtime.deserialize_cuda_engine"]
    assert reader[0].spans == (("10.0.1", "11.0.0"),)


@pytest.mark.parametrize(("before", "after"), STEPS)
def test_every_name_that_a_major_took_has_its_row_among_the_names(before: str, after: str) -> None:
    """A member whose class went with it needs none of its own."""
    some = interfaces()["python"].names
    gone = {
        each.full: each
        for each in some.values()
        if not each.lacking(numbers(before)) and each.lacking(numbers(after))
    }
    assert len(gone) > 100
    without = [
        full
        for full, each in gone.items()
        if each.owner not in gone and not (named(full) or named(each.bare))
    ]
    assert not without
    major = after.partition(".")[0]
    assert {row.since.partition(".")[0] for full in gone if (row := named(full))} == {major}


def test_the_table_stays_small() -> None:
    assert TABLE.stat().st_size < 300_000


def fact(**fields: object) -> Fact:
    return Fact(**fields)  # type: ignore[arg-type]


def test_lives_follow_from_what_each_version_lists() -> None:
    listings: dict[str, Listing] = {
        "1.0.0": {"A": fact(), "A.f": fact(arguments=("x",), note="Superseded by g. (A.h)"), "B": fact()},
        "2.0.0": {"A": fact(), "A.f": fact(arguments=("x", "y")), "A.g": fact(returns="B"), "B": fact()},
        "3.0.0": {"A": fact(), "A.g": fact(returns="B", arguments=("z",)), "B": fact()},
        "4.0.0": {"A": fact(), "A.f": fact(arguments=("y",)), "B": fact(bases=("A",))},
    }
    found = rows(listings)
    assert [(each.first, each.gone) for each in found["A.f"].lives] == [("", "3.0.0"), ("4.0.0", "")]
    assert [(each.first, each.gone) for each in found["A.g"].lives] == [("2.0.0", "4.0.0")]
    assert [(each.first, each.gone) for each in found["A.f"].arguments["y"]] == [("2.0.0", "")]
    assert [(each.first, each.gone) for each in found["A.f"].arguments["x"]] == [("", "4.0.0")]
    text = written({"python": listings, "c++": {}})
    assert "lives\tpython\tA\t..3.0.0,4.0.0..\tf" in text.splitlines()
    assert "lives\tpython\tA\t2.0.0..4.0.0\tg>B" in text.splitlines()
    assert "bases\tpython\tB\tA" in text.splitlines()


HEADER = """
namespace nvinfer1 {
//! \\deprecated Deprecated in TensorRT 9.1. Superseded by kNEW.
enum class TRT_DEPRECATED_ENUM Mode : int32_t { kOLD TRT_DEPRECATED_ENUM = 0, //!< old
  kNEW = 1 };
class IEngine : public INoCopy {
public:
    virtual ~IEngine() noexcept = default;
    //!
    //! \\brief Gets it.
    //!
    //! \\deprecated Deprecated in TensorRT 9.1. Superseded by getB().
    //!
    //! \\see getB
    //!
    TRT_DEPRECATED int32_t getA() const noexcept { return mImpl->getA(); }
    IContext* getB(char const* name) noexcept;
protected:
    apiv::VEngine* mImpl;
};
class IContext : public INoCopy {};
struct Dims { static constexpr int32_t MAX_DIMS{8}; int32_t nbDims; };
namespace v_1_0 { class IReader : public IBase {}; }
using IReader = v_1_0::IReader;
using Old = Dims;
} // namespace nvinfer1
extern "C" TENSORRTAPI void* createEngine_INTERNAL(void* logger, int32_t version) noexcept;
"""
OPTIONS = """
void BuildOptions::parse(Arguments& arguments)
{
    getAndDelOption(arguments, "--fast", fast);
    getFormats(inputFormats, "--inputIOFormats");
    sample::gLogWarning << "--gone was removed" << std::endl;
}
void SafeBuilderOptions::parse(Arguments& arguments)
{
    getAndDelOption(arguments, "--std", standard);
}
"""
PLUGINS = """| Plugin | Name | Versions |
|---|---|---|
| [onePlugin](onePlugin) [DEPRECATED] | One_TRT | 1, 2 |
| [twoPlugin](twoPlugin) | Two_TRT | 1 |
"""


@pytest.fixture
def clone(tmp_path: Path) -> sources.Clone:
    """Return a clone with one release, as NVIDIA's is laid out."""
    files = {
        "VERSION": "9.1.0.4\n", "include/NvInfer.h": HEADER, "include/NvInferImpl.h": "class VEngine {};",
        "include/NvOnnxParser.h": "class IParser { public: bool parse(); }; enum class OnnxParserFlag { kA };",
        "samples/common/sampleOptions.cpp": OPTIONS, "plugin/README.md": PLUGINS, "plugin/one.cpp": 'NAME{"One_TRT"};',
    }  # fmt: skip
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    author = ("-c", "user.name=t", "-c", "user.email=t@t")
    for command in (("init", "-q", "-b", "release/9.1"), ("add", "."), (*author, "commit", "-qm", "1")):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    return sources.Clone(tmp_path)


def test_headers_give_public_members_enumerators_and_what_is_said_of_their_end(clone: sources.Clone) -> None:
    (release,) = clone.releases()
    assert release.version == "9.1.0"
    found = sources.headers(clone, release)
    assert {*found} == {
        "Mode", "Mode.kOLD", "Mode.kNEW", "IEngine", "IEngine.getA", "IEngine.getB", "IContext", "Dims", "Dims.MAX_DIMS",
        "Dims.nbDims", "Old", "IReader", "createEngine_INTERNAL",
    }  # fmt: skip
    assert found["IEngine.getA"].note == "Deprecated in TensorRT 9.1. Superseded by getB(). (NvInfer.h)"
    assert found["IEngine.getB"].returns == "IContext"
    assert found["IEngine"].bases == ("INoCopy",)
    assert found["IReader"].bases == ("IBase",)
    assert {*sources.parser(clone, release)} == {
        "IParser",
        "IParser.parse",
        "OnnxParserFlag",
        "OnnxParserFlag.kA",
    }


def test_options_and_plugins_are_those_that_the_sources_read_and_write(clone: sources.Clone) -> None:
    (release,) = clone.releases()
    assert {*sources.trtexec(clone, release)} == {"--fast", "--inputIOFormats"}
    assert {*sources.plugins(clone, release)} == {"One_TRT", "One_TRT.1", "One_TRT.2"}

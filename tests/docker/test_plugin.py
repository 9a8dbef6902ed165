"""The plugin does what cases/q_plugin_dq.py specifies: compiled against each version's headers."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.docker import toolchain
from tests.docker.toolchain import CUDA_STUB, FLOAT_LINEAR, INT8_CHW4, INT8_CHW32, INT8_LINEAR, PLUGIN, Built

TOP = Path(__file__).parents[2]
each_version = pytest.mark.parametrize("headers", toolchain.each_version())

#: The formats of the first input that each word accepts, by the case's docstring.
SPECIFIED = {
    "int8_linear": [INT8_LINEAR],
    "int8_vectorised": [INT8_CHW4, INT8_CHW32],
    "fp32": [FLOAT_LINEAR],
    "int8_fp32": [FLOAT_LINEAR, INT8_LINEAR],
}
#: Bytes of a tensor of 2 x 5 x 3 x 7 in FP32 linear, INT8 linear, INT8 CHW4 (8 channels) and INT8 CHW32.
SIZES = [2 * 5 * 3 * 7 * 4, 2 * 5 * 3 * 7, 2 * 8 * 3 * 7, 2 * 32 * 3 * 7]
SOURCE, DESTINATION, STREAM, DEVICE_TO_DEVICE = 0x7000000001, 0x7000000002, 0x7000000003, 3


def table(word: str) -> dict[str, Any]:
    """Return what every instance of the plugin must answer, however it was made."""
    echoes = {
        f"output {kind} {layout}": [[kind, layout]]
        for kind, layout in (FLOAT_LINEAR, INT8_LINEAR, INT8_CHW4, INT8_CHW32)
    }
    return {"input": SPECIFIED[word], **echoes, "second": [INT8_LINEAR], "output of two": [INT8_LINEAR]}


def check(seen: dict[str, Any], *, has_v3: bool) -> None:
    """Hold what a registry saw against the specification."""
    versions = ("1", "2") if has_v3 else ("1",)
    for version, word in itertools.product(versions, SPECIFIED):
        one = seen[f"{version} {word}"]
        assert (one["name"], one["type"], one["version"]) == ("CompatIdentity", "CompatIdentity", version)
        assert (one["namespace"], one["field"], one["outputs"]) == ("", "formats", 1)
        # The output's type is the first input's, INT8 here, whatever the second's is.
        assert (one["output type"], one["same shape"]) == (2, True)
        assert one["plan"] == word
        # Made, cloned, and read back from the plan.
        assert one["tables"] == [table(word)] * 3
    for version in versions:
        assert seen[f"{version} unclosed"]["plan"] == "fp32"
        assert seen[f"{version} nonsense"]["plugin"] is None
        assert seen[f"{version} "]["plugin"] is None
    if not has_v3:
        assert seen["2 fp32"] is None


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Built]:
    """Return what compiles each version once, in whatever order the tests run."""
    return functools.cache(
        lambda headers: toolchain.compile_all(headers, tmp_path_factory.mktemp(headers.name))
    )


@pytest.fixture
def built(compiled: Callable[[Path], Built], headers: Path) -> Built:
    return compiled(headers)


@pytest.mark.contract
@each_version
def test_the_compiled_plugin_keeps_the_specification(built: Built, headers: Path) -> None:
    """Compiled without a warning, linked, registered on loading, and led through a builder's and runtime's calls."""
    seen = built.drive("drive_library.py")
    check(seen, has_v3=toolchain.header_version(headers)[0] >= 10)
    for one in (value for value in seen.values() if value and "codes" in value):
        assert one["codes"] == [0, 0, 0, 0]
        assert one["copies"] == [[DESTINATION, SOURCE, size, DEVICE_TO_DEVICE, STREAM] for size in SIZES]


@pytest.fixture(scope="module")
def formats(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Compile formats.h alone: no TensorRT, no CUDA."""
    needs.program("g++")
    folder = tmp_path_factory.mktemp("formats")
    (folder / "formats.cpp").write_text(
        f'#include "{PLUGIN / "formats.h"}"\n'
        "using namespace compat;\n"
        'extern "C" int32_t parse(char const* text, int32_t length) {\n'
        "    return static_cast<int32_t>(parseFormats(text, length));\n"
        "}\n"
        'extern "C" bool takes(int32_t formats, int32_t position, Choice const* all, int32_t inputs) {\n'
        "    return accepts(static_cast<Formats>(formats), position, all, inputs);\n"
        "}\n"
        'extern "C" size_t bytes(Choice const* choice, int64_t const* extents, int32_t rank) {\n'
        "    return bytesOf(*choice, extents, rank);\n"
        "}\n",
        encoding="utf-8",
    )
    library = folder / "formats.so"
    toolchain.run(
        ["g++", *toolchain.FLAGS, "-fvisibility=default", str(folder / "formats.cpp"), "-o", str(library)]
    )
    loaded = ctypes.CDLL(str(library))
    loaded.takes.restype = ctypes.c_bool
    loaded.bytes.restype = ctypes.c_size_t
    return loaded


#: Types and layouts by the numbers that formats.h uses, and one more of each that nothing accepts.
TYPES, LAYOUTS = (0, 1, 2), (0, 1, 3, 5)
CHOICES = list(itertools.product(TYPES, LAYOUTS))


@pytest.mark.contract
@pytest.mark.parametrize("word", SPECIFIED)
def test_it_decides_on_formats_by_the_specification(formats: ctypes.CDLL, word: str) -> None:
    """Every combination of types and layouts, with one input and with two."""
    code = formats.parse(word.encode(), len(word))
    assert formats.parse(word.upper().encode(), len(word)) == formats.parse(word.encode(), -1) == 0
    for inputs in (1, 2):
        for combination in itertools.product(CHOICES, repeat=inputs + 1):
            flat = (ctypes.c_int32 * (2 * inputs + 2))(*itertools.chain(*combination))
            first, *others, last = map(list, combination)
            expected = [first in SPECIFIED[word], *(other == INT8_LINEAR for other in others), last == first]
            assert [formats.takes(code, each, flat, inputs) for each in range(inputs + 1)] == expected


@pytest.mark.contract
@pytest.mark.parametrize(
    ("choice", "extents", "size"),
    [
        (FLOAT_LINEAR, (1, 16, 64), 4096),
        (INT8_LINEAR, (1, 16, 64), 1024),
        (INT8_CHW4, (1, 16, 64), 4 * 16 * 64),
        (INT8_CHW4, (1, 32, 16, 16), 8192),
        (INT8_CHW32, (1, 33, 2, 2), 256),
        (INT8_CHW32, (8, 8), 64),
        (INT8_LINEAR, (), 1),
        (INT8_LINEAR, (3, 0, 5), 0),
        (INT8_LINEAR, (1 << 20, 1 << 13), 1 << 33),
    ],
)
def test_it_copies_as_many_bytes(
    formats: ctypes.CDLL, choice: list[int], extents: tuple[int, ...], size: int
) -> None:
    """Vectorised layouts round up the channels, third from the end; a tensor may pass 4 GiB."""
    kind, layout = choice
    array = (ctypes.c_int64 * max(1, len(extents)))(*extents)
    assert formats.bytes((ctypes.c_int32 * 2)(kind, layout), array, len(extents)) == size


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def compile_in(root: Path, tensorrt: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the images' build script with TensorRT in `tensorrt` and CUDA's stub."""
    cuda = root / "cuda"
    (cuda / "lib").mkdir(parents=True)
    (cuda / "include").symlink_to(CUDA_STUB)
    (cuda / "lib" / "libcudart_static.a").write_bytes(b"!<arch>\n")
    return subprocess.run(
        ["sh", str(PLUGIN / "build.sh"), str(root / "plugins")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TENSORRT_ROOT": str(tensorrt), "CUDA_ROOT": str(cuda), **environment},
    )


@pytest.mark.contract
@each_version
def test_the_images_script_compiles_a_plugin_that_registers_itself(
    built: Built, headers: Path, tmp_path: Path
) -> None:
    tensorrt = tmp_path / "tensorrt"
    tensorrt.mkdir()
    (tensorrt / "include").symlink_to(headers)
    (tensorrt / "lib").symlink_to(built.folder)
    done = compile_in(tmp_path, tensorrt)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    library = tmp_path / "plugins" / "libcompat_identity.so"
    assert contents(tmp_path / "plugins") == [library.name]
    check(built.drive("drive_library.py", str(library)), has_v3=toolchain.header_version(headers)[0] >= 10)


@pytest.mark.contract
def test_the_images_script_says_what_the_image_lacks(tmp_path: Path) -> None:
    """An image without headers is made all the same: most cells need no plugin."""
    needs.program("g++")
    done = compile_in(tmp_path, tmp_path)
    assert done.returncode == 0
    assert contents(tmp_path / "plugins") == ["absent"]
    said = (tmp_path / "plugins" / "absent").read_text(encoding="utf-8")
    assert "NvInferRuntime.h: No such file or directory" in said


@pytest.mark.unit
def test_the_images_script_needs_no_compiler_to_say_so(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "dirname", "mkdir", "rm"):
        (tools / name).symlink_to(needs.program(name))
    done = compile_in(tmp_path, tmp_path, PATH=str(tools))
    assert (done.returncode, done.stderr) == (0, "")
    said = (tmp_path / "plugins" / "absent").read_text(encoding="utf-8")
    assert said == "the image it was to be compiled in has no g++\n"


@pytest.mark.contract
def test_a_plugin_that_does_not_compile_fails_the_image(tmp_path: Path) -> None:
    """Headers that are there but are not TensorRT's: the script must not take that for an image without them."""
    needs.program("g++")
    tensorrt = tmp_path / "tensorrt"
    (tensorrt / "include").mkdir(parents=True)
    (tensorrt / "lib").mkdir()
    (tensorrt / "include" / "NvInferRuntime.h").write_text("", encoding="utf-8")
    empty = tmp_path / "empty.cpp"
    empty.write_text("", encoding="utf-8")
    toolchain.run(["g++", "-shared", str(empty), "-o", str(tensorrt / "lib" / "libnvinfer.so")])
    done = compile_in(tmp_path, tensorrt)
    assert done.returncode != 0
    assert "nvinfer1" in done.stderr

"""TensorRT in a virtual environment: its libraries and bindings as wheels, and the module that no wheel holds."""

from __future__ import annotations

import base64
import hashlib
import shlex
import subprocess
import zipfile
from pathlib import Path

import pytest

from harness.matrix import load_matrix
from harness.run.commands import command_lines
from harness.run.provision import packages
from harness.run.provision.packages import INDEX_VARIABLE, Wheels, wheels_of
from harness.run.provision.prepare import prepare
from harness.words import Engine
from tests import needs
from tests.run.provision.factory import target

ROOT = Path(__file__).parents[3]
NVIDIA = "https://pypi.nvidia.com"
STUB = ROOT / "tests" / "contract" / "stub.c"
#: As NVIDIA's package does: the bindings, which import it first, then find the libraries loaded.
LOAD = b"""import ctypes, glob, os
for each in sorted(glob.glob(os.path.dirname(__file__) + "/*.so.*")):
    ctypes.CDLL(each)
"""


@pytest.mark.unit
@pytest.mark.parametrize(
    ("pin", "name", "version"),
    [
        ("tensorrt==8.6.1", "tensorrt", "8.6.1"),
        ("tensorrt-cu12==10.0.1", "tensorrt-cu12", "10.0.1"),
        ("tensorrt-cu13==11.2.1.2", "tensorrt-cu13", "11.2.1.2"),
    ],
)
def test_wheels_are_asked_for_instead_of_source_packages(pin: str, name: str, version: str) -> None:
    libraries, bindings = f"{name}-libs", f"{name}-bindings"
    assert wheels_of([pin, "numpy==1.26.4"]) == Wheels(
        ("--extra-index-url", NVIDIA, "--only-binary", libraries, "--only-binary", bindings),
        (f"{libraries}=={version}", f"{bindings}=={version}", "numpy==1.26.4"),
        shim=True,
    )
    alone = (
        "tensorrt-rtx-cu12==1.7.1.116",
        "tensorrt-cu12-bindings==10.0.1",
        "onnxruntime-gpu[cuda]==1.31.1",
    )
    assert wheels_of(alone) == Wheels((), alone)


@pytest.mark.unit
def test_every_tensorrt_of_the_matrix_is_asked_for_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INDEX_VARIABLE, raising=False)
    matrix = load_matrix(ROOT / "matrix.yaml")
    found = [each for each in matrix if each.engine is Engine.TENSORRT and each.packages]
    assert len(found) >= 9
    for each in found:
        create, install = packages.venv_commands(each, Path("venv"))
        assert create[0] == "venv"
        assert not set(install) & set(each.packages)
        assert NVIDIA in install
        assert command_lines(each, "venv")[2].startswith("mkdir -p build/")
    rtx = matrix.target("rtx17")
    assert packages.venv_commands(rtx, Path("venv"))[1][-1] == rtx.packages[0]
    assert len(command_lines(rtx, "venv")) == 3


def make_wheel(index: Path, name: str, version: str, files: dict[str, bytes]) -> None:
    """Put a wheel into a folder that is a package index."""
    module = name.replace("-", "_")
    about = f"{module}-{version}.dist-info"
    files = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
    }
    record = ""
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    (index / name).mkdir(parents=True)
    wheel = f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(index / name / wheel, "w") as archive:
        for path, content in {**files, f"{about}/RECORD": f"{record}{about}/RECORD,,\n".encode()}.items():
            archive.writestr(path, content)
    (index / name / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')


def stub_libraries(gcc: str, major: str, folder: Path) -> dict[str, bytes]:
    """Compile what stands for NVIDIA's libraries: all symbols are in the first, for `stub.c` is loaded once only."""
    names = ["nvinfer", "nvinfer_plugin", "nvonnxparser", "nvparsers"]
    found = {}
    for source, name in zip([str(STUB), *["/dev/null"] * 3], names, strict=True):
        library = folder / f"lib{name}.so.{major}"
        command = [
            gcc,
            "-shared",
            "-fPIC",
            f"-Wl,-soname,{library.name}",
            "-x",
            "c",
            source,
            "-o",
            str(library),
        ]
        subprocess.run(command, check=True)
        found[f"tensorrt_libs/{library.name}"] = library.read_bytes()
    return found


@pytest.mark.contract
@pytest.mark.integration
@pytest.mark.parametrize(
    ("pin", "soname"),
    [("tensorrt==8.6.1", "8"), ("tensorrt-cu12==10.0.1", "10"), ("tensorrt-cu13==11.2.1.2", "11")],
)
def test_tensorrt_installs_from_wheels_and_imports(
    pin: str, soname: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bindings are NVIDIA's; its index and the libraries there are stood for: nothing of the engine runs."""
    needs.network()
    gcc = needs.program("gcc")
    name, _, version = pin.partition("==")
    files = {"tensorrt_libs/__init__.py": LOAD} | stub_libraries(gcc, soname, tmp_path)
    make_wheel(tmp_path / "index", f"{name}-libs", version, files)
    monkeypatch.setenv(INDEX_VARIABLE, (tmp_path / "index").as_uri())
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    # The engine's packages, all from one cache: the bindings are some MB.
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path.parent / "uv"))
    chosen = target(engine=Engine.TENSORRT, packages=(pin,), version=version)
    made = prepare(chosen, "venv")
    assert made.packages == (f"{name}-bindings=={version}", f"{name}-libs=={version}")
    asked = "import tensorrt; print(tensorrt.__version__, tensorrt.Builder.__name__)"
    command = [made.python, "-I", "-c", asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [version, "Builder"], done.stderr
    # The lines to paste write the same module.
    (line,) = [line for line in command_lines(chosen, "venv") if line.startswith("mkdir")]
    subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True)
    by_hand = tmp_path / shlex.split(line)[-1]
    (installed,) = Path(made.folder).glob("lib/python*/site-packages/tensorrt/__init__.py")
    assert by_hand.read_text() == installed.read_text()

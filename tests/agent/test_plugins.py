"""Which plugin is loaded, and that an image without one is never held against the product."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.agent.engines import MissingNeed
from harness.agent.engines.tensorrt import api, plugins
from tests import needs

NEEDED: dict[str, Any] = {"plugin": {"op": "CompatIdentity", "formats": "fp32"}}
NOT_NEEDED: dict[str, Any] = {"plugin": None}


def version(*, takes: bool = True) -> Any:
    """Return a stand-in for a version's module, whose network takes plugins or not."""
    return SimpleNamespace(
        INetworkDefinition=SimpleNamespace(**({"add_plugin_v2": object()} if takes else {}))
    )


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the agent at a folder for compiled plugins, empty at first."""
    monkeypatch.setattr(plugins, "FOLDER", str(tmp_path))
    return tmp_path


def load(module: Any, recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Load the plugins of a recipe and return the libraries that are loaded."""
    loaded: list[str] = []
    monkeypatch.setattr(api, "trt", module)
    monkeypatch.setattr(ctypes, "CDLL", loaded.append)
    plugins.load(recipe, None, {})
    return loaded


@pytest.mark.unit
def test_the_images_library_is_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "libcompat_identity.so").write_bytes(b"")
    assert load(version(), NEEDED, monkeypatch) == [str(folder / "libcompat_identity.so")]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("module", "recipe"),
    [(version(), NOT_NEEDED), (version(takes=False), NEEDED)],
    ids=["not needed", "TensorRT for RTX"],
)
def test_nothing_is_loaded_where_it_is_of_no_use(
    module: Any, recipe: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorRT for RTX has no call that adds a plugin: its parser has to say so itself."""
    (folder / "libcompat_identity.so").write_bytes(b"not a library")
    assert load(module, recipe, monkeypatch) == []


@pytest.mark.unit
def test_an_image_without_it_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingNeed, match=r"compiled plugin; .* holds none$"):
        load(version(), NEEDED, monkeypatch)
    (folder / "absent").write_text("the image it was to be compiled in has no g++\n", encoding="utf-8")
    with pytest.raises(MissingNeed, match=r"^needs the image's compiled plugin; the image .* no g\+\+$"):
        load(version(), NEEDED, monkeypatch)


@pytest.mark.unit
def test_a_library_that_does_not_load_is_no_fault_of_the_product(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "libcompat_identity.so").write_bytes(b"not a library")
    monkeypatch.setattr(api, "trt", version())
    with pytest.raises(MissingNeed, match=r"compiled plugin, which does not load: .*libcompat_identity\.so"):
        plugins.load(NEEDED, None, {})


def library(folder: Path) -> bytes:
    """Return a library that says a word when it is loaded."""
    source = folder / "mine.c"
    source.write_text(
        "#include <unistd.h>\n"
        "__attribute__((constructor)) static void here(void)"
        '{ if (write(2, "mine is here\\n", 13)) {} }\n'
    )
    subprocess.run(
        [needs.program("gcc"), "-shared", "-fPIC", "-o", str(folder / "libmine.so"), str(source)], check=True
    )
    return (folder / "libmine.so").read_bytes()


@pytest.mark.contract
def test_own_libraries_are_loaded_out_of_memory_and_one_that_does_not_load_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a container no file that a program could be loaded from can be written."""
    recipe = {"plugin": None, "libraries": [{"name": "libmine.so", "sha256": "1"}]}
    monkeypatch.setattr(api, "trt", version())
    plugins.load(recipe, None, {"library:1": library(tmp_path)})
    assert capfd.readouterr().err == "mine is here\n"
    with pytest.raises(
        MissingNeed, match=r"^needs a libmine\.so that loads beside this version: libmine\.so: .*short"
    ):
        plugins.load(recipe, None, {"library:1": b"\x7fELF"})

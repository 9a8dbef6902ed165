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


class Registry:
    """A registry that keeps its creators."""

    def __init__(self) -> None:
        self.creators: list[Any] = []

    def register_creator(self, creator: Any, namespace: str) -> None:
        assert namespace == ""
        self.creators.append(creator)


def version(*classes: str, takes: bool = True, reads: bool = True) -> Any:
    """Return a stand-in for a version's module: which plugin classes it has, and whether a network takes plugins."""

    class Field:
        def __init__(self, name: str, data: bytearray, _kind: object) -> None:
            self.name = name
            self.data = SimpleNamespace(tobytes=lambda: bytes(data) if reads else b"i" * len(data))

    registry = Registry()
    made = {name: type(name, (), {"__init__": lambda _: None}) for name in classes}
    return SimpleNamespace(
        **made,
        INetworkDefinition=SimpleNamespace(**({"add_plugin_v2": None} if takes else {})),
        PluginField=Field,
        PluginFieldType=SimpleNamespace(CHAR=0),
        PluginFieldCollection=list,
        PluginFieldCollection_=list,
        get_plugin_registry=lambda: registry,
        registry=registry,
    )


V2 = ("IPluginV2DynamicExt", "IPluginCreator")
V3 = (*V2, "IPluginV3", "IPluginV3OneCore", "IPluginV3OneBuild", "IPluginV3OneRuntime", "IPluginCreatorV3One")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the agent at a folder for compiled plugins, empty at first."""
    monkeypatch.setattr(plugins, "FOLDER", str(tmp_path))
    monkeypatch.setattr(plugins, "_registered", [])
    return tmp_path


def load(module: Any, recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Load the plugins of a recipe and return the versions of the Python plugins that are then registered."""
    monkeypatch.setattr(api, "trt", module)
    plugins.load(recipe, None, {})
    return [creator.plugin_version for creator in module.registry.creators]


@pytest.mark.unit
@pytest.mark.parametrize(("classes", "registered"), [(V2, ["1"]), (V3, ["1", "2"])])
def test_without_a_library_the_plugin_is_the_one_in_python(
    classes: tuple[str, ...], registered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """9.x has the one class, 10.0 and later both."""
    assert load(version(*classes), NEEDED, monkeypatch) == registered


@pytest.mark.unit
def test_the_images_library_goes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "libcompat_identity.so").write_bytes(b"")
    loaded: list[str] = []
    monkeypatch.setattr(ctypes, "CDLL", loaded.append)
    assert load(version(*V3), NEEDED, monkeypatch) == []
    assert loaded == [str(folder / "libcompat_identity.so")]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("module", "recipe"),
    [(version(*V3), NOT_NEEDED), (version(*V3, takes=False), NEEDED), (version(takes=False), NEEDED)],
    ids=["not needed", "TensorRT for RTX", "TensorRT for RTX without classes"],
)
def test_nothing_is_loaded_where_it_is_of_no_use(
    module: Any, recipe: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorRT for RTX has the classes and no call that adds a plugin: its parser has to say so itself."""
    (folder / "libcompat_identity.so").write_bytes(b"not a library")
    assert load(module, recipe, monkeypatch) == []


@pytest.mark.unit
def test_an_image_without_it_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingNeed, match=r"takes none written in Python; .* holds none$"):
        load(version(), NEEDED, monkeypatch)
    (folder / "absent").write_text("the image it was to be compiled in has no g++\n", encoding="utf-8")
    with pytest.raises(MissingNeed, match=r"^needs the image's compiled plugin, .*; the image .* no g\+\+$"):
        load(version(), NEEDED, monkeypatch)


@pytest.mark.unit
def test_attributes_that_arrive_spoilt_are_no_fault_of_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingNeed, match="cannot read its attributes with the NumPy here"):
        load(version(*V3, reads=False), NEEDED, monkeypatch)


@pytest.mark.unit
def test_a_library_that_does_not_load_is_no_fault_of_the_product(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "libcompat_identity.so").write_bytes(b"not a library")
    with pytest.raises(MissingNeed, match=r"compiled plugin, which does not load: .*libcompat_identity\.so"):
        load(version(*V3), NEEDED, monkeypatch)


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
    monkeypatch.setattr(api, "trt", version(*V3))
    plugins.load(recipe, None, {"library:1": library(tmp_path)})
    assert capfd.readouterr().err == "mine is here\n"
    with pytest.raises(
        MissingNeed, match=r"^needs a libmine\.so that loads beside this version: libmine\.so: .*short"
    ):
        plugins.load(recipe, None, {"library:1": b"\x7fELF"})

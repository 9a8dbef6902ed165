"""Loads the plugins of a recipe: the image's compiled ones, and the user's libraries."""

import ctypes
import glob
import os
from typing import Any, Dict

from harness.agent.engines import MissingNeed
from harness.agent.engines.tensorrt import api

#: The folder of an image with the compiled plugin, or a file `absent` with the reason for its lack.
FOLDER = os.environ.get("COMPAT_PLUGIN_DIR", "/opt/compat/plugins")


def load(recipe: Dict[str, Any], logger: Any, parts: Dict[str, bytes]) -> None:
    """Make the plugins known that come with TensorRT, the user's libraries, and CompatIdentity if needed.

    Raises MissingNeed if the image lacks it, and for a library that does not load. TensorRT for RTX has no call that
    adds a plugin: no library is loaded, and its parser reports it.
    """
    for library in recipe.get("libraries", ()):
        _load_own(library["name"], parts["library:" + library["sha256"]])
    taken = api.has("INetworkDefinition.add_plugin_v2") or api.has("INetworkDefinition.add_plugin_v3")
    if recipe["plugin"] is not None and taken:
        _load_compiled()
    # Without this the parser cannot find InstanceNormalization_TRT when NATIVE_INSTANCENORM is off.
    if api.has("init_libnvinfer_plugins"):
        api.trt.init_libnvinfer_plugins(logger, "")


def _load_own(name: str, data: bytes) -> None:
    """Load a library out of memory, for there may be no place that a program can be loaded from."""
    handle = os.memfd_create("plugin")
    with open(handle, "wb", closefd=False) as file:
        file.write(data)
    try:
        ctypes.CDLL("/proc/self/fd/%d" % handle)
    except OSError as error:
        why = str(error).replace("/proc/self/fd/%d" % handle, name)
        raise MissingNeed("needs a %s that loads beside this version: %s" % (name, why)) from error


def _load_compiled() -> None:
    """Load the image's compiled plugins, which register themselves."""
    paths = sorted(glob.glob(os.path.join(FOLDER, "*.so")))
    for path in paths:
        try:
            ctypes.CDLL(path)
        except OSError as error:
            raise MissingNeed("needs the image's compiled plugin, which does not load: %s" % error) from error
    if not paths:
        raise MissingNeed("needs the image's compiled plugin; %s" % _absent())


def _absent() -> str:
    try:
        with open(os.path.join(FOLDER, "absent")) as file:
            return " ".join(file.read().split())
    except OSError:
        return "%s holds none" % FOLDER

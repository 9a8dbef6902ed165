"""Targets for tests: a tiny package stands for an engine, so that real environments are made in a second."""

from __future__ import annotations

from typing import Any

from harness.matrix import Build, Needs, Target
from harness.words import Engine

#: Pure Python, no dependencies, and its module tells its version.
PIN = "packaging==24.1"


def target(**changes: Any) -> Target:
    """Return a package-index target for linux/amd64 that needs nothing, with `changes`."""
    fields: dict[str, Any] = {
        "name": "toy",
        "label": "Toy",
        "group": "toys",
        "engine": Engine.ONNXRUNTIME,
        "version": "24.1",
        "platform": "linux/amd64",
        "image": None,
        "build": Build(kind="packages", base="python:3.11-slim"),
        "digest": None,
        "python": "3.11",
        "packages": (PIN,),
        "needs": Needs(gpu=False, architecture="x86_64"),
        "compute_capability": None,
        "timeout_s": 60.0,
        "memory_mib": 512,
        "sources": (),
        "notes": "",
        "line": 1,
    }
    return Target(**(fields | changes))


def arm64(**changes: Any) -> Target:
    """Return the same target for linux/arm64."""
    return target(platform="linux/arm64", needs=Needs(gpu=False, architecture="aarch64"), **changes)


def gpu_target(**changes: Any) -> Target:
    """Return a target like TensorRT 8.6: a published image that needs a GPU."""
    needs = Needs(gpu=True, architecture="x86_64", driver=">=530", compute_capability=">=6.0,<=9.0")
    return target(
        **(
            {"name": "trt86", "image": "registry.invalid/tensorrt:23.06", "build": None, "needs": needs}
            | changes
        )
    )

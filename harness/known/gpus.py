"""Which GPUs a compute capability stands for, by the names that they are sold under."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

#: Where the table was read; older ones: https://developer.nvidia.com/cuda-legacy-gpus.
SOURCE = "https://developer.nvidia.com/cuda-gpus"


@dataclass(frozen=True)
class Generation:
    """GPUs of one compute capability: their architecture, examples, and whether they are Jetson boards."""

    capability: str
    architecture: str
    examples: str
    jetson: bool = False


GENERATIONS = (
    Generation("6.0", "Pascal", "P100"),
    Generation("6.1", "Pascal", "GTX 10, P4, P40"),
    Generation("6.2", "Pascal", "Jetson TX2", jetson=True),
    Generation("7.0", "Volta", "V100"),
    Generation("7.2", "Volta", "Jetson Xavier", jetson=True),
    Generation("7.5", "Turing", "T4, RTX 20, GTX 16"),
    Generation("8.0", "Ampere", "A100, A30"),
    Generation("8.6", "Ampere", "RTX 30, A10, A40"),
    Generation("8.7", "Ampere", "Jetson Orin", jetson=True),
    Generation("8.9", "Ada", "RTX 40, L4, L40"),
    Generation("9.0", "Hopper", "H100, H200"),
    Generation("10.0", "Blackwell", "B200"),
    Generation("10.3", "Blackwell", "B300"),
    Generation("11.0", "Blackwell", "Jetson Thor", jetson=True),
    Generation("12.0", "Blackwell", "RTX 50, RTX PRO"),
    Generation("12.1", "Blackwell", "GB10"),
)


def gpus(specifier: str, *, jetson: bool = False) -> tuple[Generation, ...]:
    """Return the generations that a specifier of compute capabilities takes in; none for "", which says nothing."""
    fits = SpecifierSet(specifier)
    return tuple(
        each for each in GENERATIONS if specifier and each.jetson is jetson and each.capability in fits
    )


def gpus_said(specifier: str, *, jetson: bool = False) -> str:
    """Return the GPUs in words: "Turing (T4, RTX 20, GTX 16), Ada (RTX 40, L4, L40)"; boards by their names alone."""
    found: dict[str, list[str]] = {}
    for each in gpus(specifier, jetson=jetson):
        found.setdefault(each.architecture, []).append(each.examples)
    if jetson:
        return " or ".join(name for names in found.values() for name in names)
    return ", ".join(f"{architecture} ({', '.join(names)})" for architecture, names in found.items())

"""A claim in words: its class, predicate, source and GPUs; and the GPUs of a compute capability, as they are sold."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from harness.case import Expectation
from harness.text import clip
from harness.words import PREDICATE, Class, claimed


@dataclass(frozen=True)
class Generation:
    """GPUs of one compute capability: their architecture, examples, and whether they are Jetson boards."""

    capability: str
    architecture: str
    examples: str
    jetson: bool = False


#: From https://developer.nvidia.com/cuda-gpus; older ones: https://developer.nvidia.com/cuda-legacy-gpus.
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
    """Return the GPU generations that a specifier of compute capabilities takes in; () for ""."""
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


_LONGEST_NOTE = 200


def drawn(claim: Expectation) -> Class:
    """Return the class that a claim is shown as: "it builds" is no word on a run."""
    return Class.BUILT if claim.outcome is Class.OK and claim.level == "builds" else claim.outcome


def says(claim: Expectation) -> str:
    """Return a claim as a predicate, with its GPUs unless it is about every one."""
    return f"{claimed(claim.outcome, claim.level)}{_on_gpus(claim)}"


def _on_gpus(claim: Expectation) -> str:
    """Return the generation that a claim is about, and which GPUs that is: " on SM 12.0 (RTX 50)"; "" for all."""
    capability = claim.compute_capability
    if not capability:
        return ""
    known = next((f" ({each.examples})" for each in GENERATIONS if each.capability == capability), "")
    return f" on SM {capability}{known}"


def built_but(claim: Expectation) -> str:
    """Return the predicate of an engine that was only built, and fails when it is run as a claim says."""
    return f"{PREDICATE[Class.BUILT]}, but {says(claim)}"


def on_precision(claim: Expectation) -> bool:
    """Tell whether a claim says anything of the precision: not that something builds, runs or gives right numbers."""
    return claim.outcome is not Class.OK or claim.level in (None, "precision")


def source(claim: Expectation) -> str:
    """Return the title of a claim's source, "" without one."""
    return (claim.source.title or claim.source.url) if claim.source else ""


def seen_by(claim: Expectation) -> str:
    """Return a claim's provenance and note: "reported by users in TensorRT issue 3640: on Orin"."""
    note = clip(claim.note, _LONGEST_NOTE)
    if not claim.source:
        return note
    where = f"{claim.provenance} in {source(claim)}"
    return f"{where}: {note}" if note else where

"""Runs the agent's TensorRT adapter against real Python bindings that stand on `stub.c`; a program of its own.

It is started with the bindings, the agent's code and the stub on its paths, reads one JSON object from standard input
and writes one to standard output. It needs the standard library and `harness.agent` alone, as the agent does.

Every look-up, overload and argument conversion is done by the bindings themselves. Only afterwards, where the stub's
own answer would be of no use (a count of 65537 layers, uninitialised dimensions), a call or property answers by
`engine.ANSWERS` or by the scenario. Each member is wrapped for this, and the wrapper notes its name.
"""

from __future__ import annotations

from tests.contract.probe.jobs import log_slot, spoken
from tests.contract.probe.wrap import Module, Probe, note_instances

__all__ = ["Module", "Probe", "log_slot", "note_instances", "spoken"]

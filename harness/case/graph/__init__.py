"""Builds small ONNX graphs, deterministic to the byte, with the Q/DQ spelling that quantisers export."""

from harness.case.graph.layers import Graph
from harness.case.graph.quantised import Quantiser

__all__ = ["Graph", "Quantiser"]

"""A version-matrix regression test harness for TensorRT."""

__version__ = "0.1.0"

"""A machine with GPUs, as far as one can be had without: a fake nvidia-smi, a fake CUDA driver, the real bindings.

The driver (`cuda.c`) is a library in C on the host's memory, whose every call can be made to fail with any code. The
bindings are NVIDIA's own, of each version, on the library that tests/contract/stub.c stands in for: its factories give
null as NVIDIA's do. What that cannot answer, the contract test's wrapper around the bindings answers (`shim.py`), with
an engine that has one input and one output and copies what is above zero. No kernel runs, and nothing here says what
TensorRT would do.
"""

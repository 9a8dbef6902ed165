"""NVIDIA's own runtime library, without its builder, under the agent: the one real core of TensorRT that can be had."""

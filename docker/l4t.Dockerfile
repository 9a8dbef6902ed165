# A TensorRT image for Jetson. It carries CUDA and TensorRT; the board's NVIDIA runtime adds driver and devices, which
# belong to the group "video" there.
ARG BASE=nvcr.io/nvidia/l4t-tensorrt:r8.6.2-devel
FROM ${BASE}
USER 65534:65534

# A monthly TensorRT image from NGC, as it is but for its user. The harness starts Python in it directly: the image's
# own entry point greets on standard output, which is the agent's stream.
ARG BASE=nvcr.io/nvidia/tensorrt:24.07-py3
FROM ${BASE}
USER 65534:65534

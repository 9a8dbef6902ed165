# A TensorRT that no monthly image holds (9.x), from NVIDIA's public tarball on a CUDA image with the cuDNN it needs.
ARG BASE=nvcr.io/nvidia/cuda:12.2.2-cudnn8-devel-ubuntu22.04
FROM ${BASE}
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ca-certificates curl python3 python3-pip \
 && rm -rf /var/lib/apt/lists/*
ARG TENSORRT_URL
ARG TENSORRT_WHEEL
# The static libraries are most of the tarball and of no use here.
RUN mkdir /opt/tensorrt \
 && curl --fail --location --silent --show-error "${TENSORRT_URL}" \
  | tar --extract --gzip --strip-components=1 --no-same-owner --exclude='*.a' --directory=/opt/tensorrt \
 && pip3 install --no-cache-dir --no-deps "/opt/tensorrt/python/${TENSORRT_WHEEL}"
ENV LD_LIBRARY_PATH=/opt/tensorrt/lib:/usr/local/cuda/lib64 \
    PATH=/opt/tensorrt/bin:/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
USER 65534:65534

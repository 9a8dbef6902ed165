# A TensorRT that no monthly image holds (9.x), from NVIDIA's public tarball on a CUDA image with the cuDNN it needs.
# BUILDER has to have a CUDA toolkit; BASE may be the -runtime image of the same release.
ARG BASE=nvcr.io/nvidia/cuda:12.2.2-cudnn8-devel-ubuntu22.04
ARG BUILDER=${BASE}

FROM ${BUILDER} AS builder
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# hadolint ignore=DL3008 # Ubuntu drops old versions from its archive, so that a pinned one stops building
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ca-certificates curl g++ \
 && rm -rf /var/lib/apt/lists/*
ARG TENSORRT_URL
# The static libraries are most of the tarball and of no use here.
RUN mkdir /opt/tensorrt \
 && curl --fail --location --silent --show-error "${TENSORRT_URL}" \
  | tar --extract --gzip --strip-components=1 --no-same-owner --exclude='*.a' --directory=/opt/tensorrt
COPY plugin /opt/compat/source
RUN sh /opt/compat/source/build.sh /opt/compat/plugins

FROM ${BASE}
# hadolint ignore=DL3008 # Ubuntu drops old versions from its archive, so that a pinned one stops building
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends python3 python3-pip \
 && rm -rf /var/lib/apt/lists/*
COPY --from=builder /opt/tensorrt /opt/tensorrt
ARG TENSORRT_WHEEL
RUN pip3 install --no-cache-dir --no-deps "/opt/tensorrt/python/${TENSORRT_WHEEL}"
ENV LD_LIBRARY_PATH=/opt/tensorrt/lib:/usr/local/cuda/lib64 \
    PATH=/opt/tensorrt/bin:/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ARG BASE
ARG ENGINE_VERSION=unknown
LABEL trt-compat=image \
      org.opencontainers.image.base.name=${BASE} \
      org.opencontainers.image.version=${ENGINE_VERSION}
COPY --from=builder /opt/compat/plugins /opt/compat/plugins
USER 65534:65534

# A monthly TensorRT image from NGC, as it is but for its user and this project's plugin, which is compiled against the
# TensorRT in it. The harness starts Python in it directly: the image's own entry point greets on standard output, which
# is the agent's stream.
ARG BASE=nvcr.io/nvidia/tensorrt:24.07-py3
ARG BUILDER=${BASE}

FROM ${BUILDER} AS builder
COPY plugin /opt/compat/source
RUN sh /opt/compat/source/build.sh /opt/compat/plugins

FROM ${BASE}
ARG BASE
ARG ENGINE_VERSION=unknown
LABEL trt-compat=image \
      org.opencontainers.image.base.name=${BASE} \
      org.opencontainers.image.version=${ENGINE_VERSION}
COPY --from=builder /opt/compat/plugins /opt/compat/plugins
USER 65534:65534

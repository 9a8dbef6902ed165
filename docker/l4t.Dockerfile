# A TensorRT image for Jetson. It carries CUDA and TensorRT; the board's NVIDIA runtime adds driver and devices, which
# belong to the group "video" there. The plugin is compiled in BUILDER, which has to be a -devel image: the -runtime
# images have no headers.
ARG BASE=nvcr.io/nvidia/l4t-tensorrt:r8.6.2-devel
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

# An engine from the package index. The packages in site/ were resolved on the host for this image's platform, so
# nothing is downloaded or run here: no network, no certificates of the host, no emulation for another architecture.
ARG BASE=python:3.11-slim
FROM ${BASE}
ARG BASE
ARG PYTHON=3.11
ARG ENGINE_VERSION=unknown
LABEL trt-compat=image \
      org.opencontainers.image.base.name=${BASE} \
      org.opencontainers.image.version=${ENGINE_VERSION}
COPY site /opt/engine
# Where python.org's and Debian's Python look for .pth files; a path file works under `python -I` too, PYTHONPATH not.
COPY engine.pth /usr/local/lib/python${PYTHON}/site-packages/engine.pth
COPY engine.pth /usr/local/lib/python${PYTHON}/dist-packages/engine.pth
USER 65534:65534

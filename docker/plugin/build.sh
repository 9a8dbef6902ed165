#!/bin/sh
# Compiles the plugin into the folder that is given. Where the image lacks the compiler, the headers or the libraries
# the folder gets a file `absent` with the reason: cells that need the plugin are then not run, and all others are.
set -eu
source=$(dirname "$0")/compat_identity.cpp
folder=$1
mkdir -p "$folder"

if ! command -v g++ >"$folder/log" 2>&1; then
    echo "the image it was to be compiled in has no g++" >"$folder/absent"
    rm "$folder/log"
    exit 0
fi

set -- -std=c++17 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Wno-deprecated-declarations
# Where NVIDIA's packages put nothing into the compiler's own paths: the tarball, and CUDA.
for root in "${TENSORRT_ROOT:-/opt/tensorrt}" "${CUDA_ROOT:-/usr/local/cuda}"; do
    set -- "$@" -isystem "$root/include" "-L$root/lib" "-L$root/lib64"
done
# The static CUDA runtime: the library then needs nothing that TensorRT does not bring.
libraries="-lnvinfer -lcudart_static -lrt -ldl -lpthread"

printf '#include <NvInferRuntime.h>\n#include <cuda_runtime_api.h>\n' >"$folder/probe.cpp"
# shellcheck disable=SC2086 # the libraries are several words
if ! g++ "$@" "$folder/probe.cpp" -o "$folder/probe" $libraries >"$folder/log" 2>&1; then
    reason=$(grep -m 1 -E 'fatal error|cannot find|error:' "$folder/log" || echo "g++ fails")
    echo "the image it was to be compiled in lacks what that takes: ${reason##*error: }" >"$folder/absent"
    rm -f "$folder/log" "$folder/probe" "$folder/probe.cpp"
    exit 0
fi
rm "$folder/log" "$folder/probe" "$folder/probe.cpp"

# From here on a failure is a fault of the plugin, and fails the image.
# shellcheck disable=SC2086
g++ "$@" -Wl,-z,defs -Wl,--exclude-libs,ALL "$source" -o "$folder/libcompat_identity.so" $libraries

// What TensorRT's headers and the plugin need of CUDA, for machines without a toolkit.
#pragma once
#include <cstddef>

extern "C" {
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef int cudaError_t;
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3 };
cudaError_t cudaMemcpyAsync(
    void* to, void const* from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream);
}

// A copy by the whole grid, 16 bytes a thread and step: the rate that memory can be read and
// written at.
//
// Cost: what it is there to measure. Source: this project's own.
#pragma once

#include "arguments.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void copy_words(const typename Policy::Parameters&,
                                           const PrimitiveArguments& launch) {
  const long long stride = static_cast<long long>(blockDim.x) * gridDim.x;
  long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < launch.count; i += stride) launch.to[i] = launch.from[i];
}

}  // namespace persistent_bfs

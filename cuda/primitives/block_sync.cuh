// The barrier of one block, again and again with nothing between.
//
// Cost: what it is there to measure. Source: this project's own.
#pragma once

#include "arguments.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void sync_block(const typename Policy::Parameters&,
                                           const PrimitiveArguments& launch) {
  for (int repeat = 0; repeat < launch.repeats; ++repeat) __syncthreads();
}

}  // namespace persistent_bfs

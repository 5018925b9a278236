// The searches' own device-wide barrier, again and again with nothing between.
//
// Leaves in words[0] how often it was waited for, so that a barrier left out is seen.
//
// Cost: what it is there to measure. Source: this project's own.
#pragma once

#include "../barrier.cuh"
#include "../warp_primitives.cuh"
#include "arguments.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void sync_grid(const typename Policy::Parameters&,
                                          const PrimitiveArguments& launch) {
  GridBarrier barrier;
  for (int repeat = 0; repeat < launch.repeats; ++repeat) barrier.wait();
  if (is_grid_leader()) launch.words[0] = barrier.waits();
}

}  // namespace persistent_bfs

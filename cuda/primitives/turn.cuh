// A turn of a WHILE node: one thread counts the turns left and sets the node's condition.
//
// Cost: a load, a store and the condition, which is the least a loop in a graph must do.
#pragma once

#include "../warp_primitives.cuh"
#include "arguments.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void count_turn(const typename Policy::Parameters&,
                                           const PrimitiveArguments& launch) {
  if (is_grid_leader()) {
    const int left = launch.words[0] - 1;
    launch.words[0] = left;
    cudaGraphSetConditional(launch.condition, left > 0);
  }
}

}  // namespace persistent_bfs

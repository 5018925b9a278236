// Nothing: what a launch costs before there is any work. And nothing, as a node of a graph whose
// blocks come while the node in front still runs.
//
// Cost: what they are there to measure. Source: this project's own.
#pragma once

#include "../platform.cuh"
#include "arguments.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void empty_kernel(const typename Policy::Parameters&,
                                             const PrimitiveArguments&) {}

template <class Policy>
__device__ __forceinline__ void empty_dependent(const typename Policy::Parameters&,
                                                const PrimitiveArguments&) {
  let_next_grid_begin();
  wait_for_grid_in_front();
}

}  // namespace persistent_bfs

// Nothing: what a launch costs before there is any work.
//
// Cost: what it is there to measure. Source: this project's own.
#pragma once

#include "arguments.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void empty_kernel(const typename Policy::Parameters&,
                                             const PrimitiveArguments&) {}

}  // namespace persistent_bfs

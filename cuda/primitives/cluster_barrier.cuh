// The barrier of a thread block cluster, again and again with nothing between.
//
// Cost: what it is there to measure. Source: this project's own.
#pragma once

#include "arguments.cuh"
#include "clusters.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void sync_cluster(const typename Policy::Parameters&,
                                             const PrimitiveArguments& launch) {
  for (int repeat = 0; repeat < launch.repeats; ++repeat) cluster_barrier();
}

}  // namespace persistent_bfs

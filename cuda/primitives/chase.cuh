// Dependent loads: one thread follows a ring whose places are a cache line apart, in random order.
//
// Each load's address is the load before it, so their latencies add up; how large the ring is says
// which memory answers. It goes on from words[0] and leaves there where it came to, so that a ring
// too large for a cache is never walked where it was walked before. Source: the pointer chase of
// L. McVoy, C. Staelin, "lmbench: Portable Tools for Performance Analysis", USENIX 1996.
#pragma once

#include "../warp_primitives.cuh"
#include "arguments.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void chase_loads(const typename Policy::Parameters&,
                                            const PrimitiveArguments& launch) {
  if (is_grid_leader()) {
    int place = launch.words[0];
    for (int repeat = 0; repeat < launch.repeats; ++repeat) place = launch.next[place];
    launch.words[0] = place;
  }
}

}  // namespace persistent_bfs

// Append with one atomic a warp: ballots count the warp's discoveries, lane 0 reserves their slots.
//
// All 32 lanes must call together. Cost: a ballot for each neighbour of the batch and, if any lane
// discovered a vertex, one atomic and one shuffle. Source: A. Adinets, "CUDA Pro Tip: Optimized
// Filtering with Warp-Aggregated Atomics", 2014.
#pragma once

#include "frontier.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::append {

struct Warp {
  NextFrontier next;
  int lane;

  // Bit i of `discovered` says that this lane discovered neighbours[i].
  template <int N>
  __device__ __forceinline__ void push(const vertex_t (&neighbours)[N], unsigned discovered) {
    unsigned ballots[N];
    int total = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      ballots[i] = __ballot_sync(FULL_WARP, discovered >> i & 1u);
      total += __popc(ballots[i]);
    }
    if (total == 0) return;
    int slot = 0;
    if (lane == 0) slot = atomicAdd(next.size, total);
    slot = __shfl_sync(FULL_WARP, slot, 0);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int mine = slot + lanes_below(ballots[i], lane);
      if ((discovered >> i & 1u) && mine < next.capacity) next.vertices[mine] = neighbours[i];
      slot += __popc(ballots[i]);
    }
  }
};

}  // namespace persistent_bfs::append

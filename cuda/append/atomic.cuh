// Append with one atomic a discovery, on the one counter of the next frontier.
//
// Cost: as many atomics to one address as vertices are discovered; L2 serialises them. The
// baseline that the aggregated appends are measured against.
#pragma once

#include "frontier.cuh"

namespace persistent_bfs::append {

struct Atomic {
  NextFrontier next;
  int lane;

  template <int N>
  __device__ __forceinline__ void push(const vertex_t (&neighbours)[N], unsigned discovered) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (discovered >> i & 1u) {
        const int slot = atomicAdd(next.size, 1);
        if (slot < next.capacity) next.vertices[slot] = neighbours[i];
      }
    }
  }
};

}  // namespace persistent_bfs::append

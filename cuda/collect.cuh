// The frontier of one level, collected from the distances into the queue.
//
// Where a tier leaves a frontier to the grid, it is in no queue: a tier keeps its own in shared
// memory, as much of it as finds room. Cost: a read of every distance, coalesced, and a barrier
// after it; some microseconds a million vertices.
#pragma once

#include "append/warp.cuh"
#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// By every thread of the grid.
template <class Policy>
__device__ __forceinline__ void collect_frontier(const typename Policy::Parameters& parameters,
                                                 int depth, const NextFrontier& next) {
  constexpr int BATCH = 4;
  const Workers workers;
  append::Warp<Policy> append{parameters, next, workers.lane};
  const long long step = static_cast<long long>(workers.warps) * BATCH * WARP_SIZE;
  for (long long first = static_cast<long long>(workers.warp) * BATCH * WARP_SIZE;
       first < parameters.vertices; first += step) {
    vertex_t vertices[BATCH];
    unsigned found = 0;
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      const long long v = first + i * WARP_SIZE + workers.lane;
      vertices[i] = static_cast<vertex_t>(v);
      if (v < parameters.vertices && load_relaxed(parameters.distances + v) == depth) {
        found |= 1u << i;
      }
    }
    append.push(vertices, found);
  }
  append.finish();
}

}  // namespace persistent_bfs

// The predecessors of vertices that a search has not reached, where its reset left them alone.
//
// A search that pulls by bitmaps looks at every unvisited vertex once in any case, and says then
// that it has no predecessor yet (pull/by_bits.cuh); one that never pulled says so at its end.
// Cost: a read of 4n bytes, and a store for each vertex unreached; the reset saves one for every
// vertex. Source: this project's own.
#pragma once

#include "frontier.cuh"
#include "types.cuh"

namespace persistent_bfs {

// By every thread of the grid, when the last level is over.
template <class Parameters>
__device__ __forceinline__ void fill_unreached(const Parameters& parameters) {
  const unsigned vertices = parameters.vertices;
  const unsigned threads = blockDim.x * gridDim.x;
  for (unsigned v = blockIdx.x * blockDim.x + threadIdx.x; v < vertices; v += threads) {
    if (load_relaxed(parameters.distances + v) == UNVISITED) {
      parameters.predecessors[v] = NO_PREDECESSOR;
    }
  }
}

}  // namespace persistent_bfs

// Everything a search must find in its first level: distances and predecessors cleared, the source
// at distance 0 and alone in the frontier, the state at its beginning.
//
// Cost: one store for four vertices (two with predecessors), coalesced; where frontiers are dense,
// one for 32 vertices and each of the three bitmaps.
#pragma once

#include "dense.cuh"
#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// All of an array from device memory gets `value`, but entry `one` gets `its`; by every thread of
// the grid, four entries each at a time.
__device__ __forceinline__ void fill_but_one(int* array, int size, int value, int one, int its) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * gridDim.x;
  const unsigned whole = static_cast<unsigned>(size) / 4;
  int4* const fours = reinterpret_cast<int4*>(array);
  for (unsigned i = thread; i < whole; i += threads) {
    const int place = one - static_cast<int>(4 * i);
    fours[i] = {place == 0 ? its : value, place == 1 ? its : value, place == 2 ? its : value,
                place == 3 ? its : value};
  }
  const unsigned last = 4 * whole + thread;
  if (last < static_cast<unsigned>(size)) {
    array[last] = last == static_cast<unsigned>(one) ? its : value;
  }
}

template <class Policy>
__device__ __forceinline__ void reset(const typename Policy::Parameters& parameters,
                                      const SearchRequest& request) {
  fill_but_one(parameters.distances, parameters.vertices, UNVISITED, request.source, 0);
  if constexpr (Policy::predecessors) {
    fill_but_one(parameters.predecessors, parameters.vertices, NO_PREDECESSOR, request.source,
                 NO_PREDECESSOR);
  }
  reset_bitmaps<Policy>(parameters, request.source);
  if (is_grid_leader()) {
    parameters.queue[0] = request.source;
    SearchState fresh = {};
    unsigned edges = 0;
    if constexpr (Policy::counts_edges) {
      edges = degree_of(parameters, request.source);
      fresh.totals[0].largest_degree = edges;
      parameters.edge_begin[0] = 0;
    }
    fresh.totals[0].count = FrontierCount::pack(1, edges);
    fresh.totals[0].discovered = 1;
    fresh.max_depth = request.max_depth;
    *parameters.state = fresh;
    if constexpr (Policy::trace) {
      parameters.trace[0].end_nanoseconds = 0;
      parameters.trace[0].edges = 0;
    }
  }
}

template <class Policy>
__device__ __forceinline__ void reset_search(const typename Policy::Parameters& parameters,
                                             const LaunchArguments& launch) {
  reset<Policy>(parameters, launch.request);
}

}  // namespace persistent_bfs

// Everything a search must find in its first level: distances and predecessors cleared, the source
// at distance 0 and alone in the frontier, the state at its beginning.
//
// Cost: one store a vertex (two with predecessors), coalesced; where frontiers are dense, one for
// 32 vertices and each of the three bitmaps.
#pragma once

#include "dense.cuh"
#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void reset(const typename Policy::Parameters& parameters,
                                      const SearchRequest& request) {
  const unsigned stride = blockDim.x * gridDim.x;
  const unsigned vertices = parameters.vertices;
  for (unsigned v = blockIdx.x * blockDim.x + threadIdx.x; v < vertices; v += stride) {
    parameters.distances[v] = v == static_cast<unsigned>(request.source) ? 0 : UNVISITED;
    if constexpr (Policy::predecessors) parameters.predecessors[v] = NO_PREDECESSOR;
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

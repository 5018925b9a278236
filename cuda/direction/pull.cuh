// Pull: unvisited vertices look for a parent in the frontier, and stop at the first they find.
//
// A lane an unvisited vertex; a vertex is in the frontier if its distance is this level's. Nobody
// else writes an unvisited vertex, so there is no claim to win. Cost: a look at every vertex, and
// of an unvisited one's arcs only those before the first parent: little when the frontier is a
// large part of the graph, everything when it is small. Needs the transposed graph if directed.
// Source: the bottom-up step of S. Beamer, K. Asanovic, D. Patterson, "Direction-Optimizing
// Breadth-First Search", SC 2012.
#pragma once

#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::direction {

template <class Policy>
struct Pull {
  static constexpr int BATCH = 4;

  static __device__ __forceinline__ bool pulls(const typename Policy::Parameters&,
                                               const Frontier&) {
    return true;
  }

  // As Push::expand; the edges are those looked at.
  static __device__ __forceinline__ unsigned long long expand(
      const typename Policy::Parameters& parameters, const Frontier& frontier,
      const NextFrontier& next, const Workers& workers) {
    typename Policy::template Append<Policy> append{parameters, next, workers.lane};
    unsigned long long edges = 0;
    const long long step = static_cast<long long>(workers.warps) * WARP_SIZE;
    for (long long first = static_cast<long long>(workers.warp) * WARP_SIZE;
         first < parameters.vertices; first += step) {
      const long long v = first + workers.lane;
      const bool unvisited =
          v < parameters.vertices && load_relaxed(parameters.distances + v) == UNVISITED;
      if (!__any_sync(FULL_WARP, unvisited)) continue;
      edges += look(parameters, frontier.depth, static_cast<vertex_t>(v), unvisited, append,
                    workers.lane);
    }
    append.finish();
    return edges;
  }

 private:
  template <class Append>
  static __device__ __forceinline__ int look(const typename Policy::Parameters& parameters,
                                             int depth, vertex_t v, bool unvisited,
                                             Append& append, int lane) {
    using Offset = typename Policy::Offset;
    const Offset begin = unvisited ? __ldg(parameters.in_row_offsets + v) : 0;
    const int degree =
        unvisited ? static_cast<int>(__ldg(parameters.in_row_offsets + v + 1) - begin) : 0;
    vertex_t parent = NO_PREDECESSOR;
    int looked = 0;
    while (__any_sync(FULL_WARP, parent == NO_PREDECESSOR && looked < degree)) {
      if (lane == 0) count_lane_slots(BATCH * WARP_SIZE);
      if (parent != NO_PREDECESSOR) continue;
      vertex_t neighbours[BATCH];
      bool in_frontier[BATCH];
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        neighbours[i] = looked + i < degree ? __ldg(parameters.in_col_indices + begin + looked + i)
                                            : NO_PREDECESSOR;
      }
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        in_frontier[i] = neighbours[i] != NO_PREDECESSOR &&
                         load_relaxed(parameters.distances + neighbours[i]) == depth;
      }
#pragma unroll
      for (int i = BATCH - 1; i >= 0; --i) {
        if (in_frontier[i]) parent = neighbours[i];
      }
      looked += degree - looked < BATCH ? degree - looked : BATCH;
    }
    const bool discovered = parent != NO_PREDECESSOR;
    if (discovered) {
      store_relaxed(parameters.distances + v, depth + 1);
      if constexpr (Policy::predecessors) parameters.predecessors[v] = parent;
    }
    const vertex_t batch[1] = {v};
    append.push(batch, discovered);
    return looked;
  }
};

}  // namespace persistent_bfs::direction

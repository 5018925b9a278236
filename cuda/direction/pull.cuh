// Pull: unvisited vertices look for a parent in the frontier, and stop at the first they find.
//
// A lane an unvisited vertex, a warp 32 in a row. Whether a neighbour is in the frontier, and how
// the discoveries enter the next one, is the frontier's own affair: by distances and an append
// where it is sparse, by bitmaps where it is dense. Nobody else writes an unvisited vertex, so
// there is no claim to win. Cost: a look at every vertex, and of an unvisited one's arcs only those
// before the first parent: little when the frontier is a large part of the graph, everything when
// it is small. Needs the transposed graph if directed. Source: the bottom-up step of S. Beamer, K.
// Asanovic, D. Patterson, "Direction-Optimizing Breadth-First Search", SC 2012.
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
    Pulled pulled(parameters, frontier, next, workers.lane);
    unsigned long long edges = 0;
    const long long step = static_cast<long long>(workers.warps) * WARP_SIZE;
    long long v = static_cast<long long>(workers.warp) * WARP_SIZE + workers.lane;
    bool unvisited = is_unvisited(parameters, v);
    for (; v - workers.lane < parameters.vertices; v += step) {
      // Whether the next vertex is visited is known by the time this one is done with; nobody but
      // this lane changes it.
      const bool looks = unvisited;
      unvisited = is_unvisited(parameters, v + step);
      if (!__any_sync(FULL_WARP, looks)) continue;
      edges += look(parameters, frontier.depth, static_cast<vertex_t>(v), looks, pulled,
                    workers.lane);
    }
    pulled.finish();
    return edges;
  }

 private:
  using Pulled = typename Policy::Form::template Pulled<Policy>;

  static __device__ __forceinline__ bool is_unvisited(
      const typename Policy::Parameters& parameters, long long v) {
    return v < parameters.vertices && load_relaxed(parameters.distances + v) == UNVISITED;
  }

  static __device__ __forceinline__ int look(const typename Policy::Parameters& parameters,
                                             int depth, vertex_t v, bool unvisited,
                                             Pulled& pulled, int lane) {
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
        in_frontier[i] = neighbours[i] != NO_PREDECESSOR && pulled.contains(neighbours[i]);
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
    pulled.enter(v, discovered, degree);
    return looked;
  }
};

}  // namespace persistent_bfs::direction

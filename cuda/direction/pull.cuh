// Pull: unvisited vertices look for a parent in the frontier, and stop at the first they find.
//
// A lane an unvisited vertex for the first arcs of its row, where most find a parent; what is left
// of long rows is searched by the whole warp, one after another. A vertex is in the frontier if its
// distance is this level's. Nobody else writes an unvisited vertex, so there is no claim to win.
// Cost: a look at every vertex, and
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
  static constexpr int LANE_ARCS = 16;  // of a row, before the warp takes over

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
    for (int step = 0; step < LANE_ARCS; step += BATCH) {
      const bool looking = parent == NO_PREDECESSOR && step < degree;
      if (!__any_sync(FULL_WARP, looking)) break;
      if (lane == 0) count_lane_slots(BATCH * WARP_SIZE);
      if (!looking) continue;
      vertex_t neighbours[BATCH];
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        neighbours[i] = step + i < degree ? __ldg(parameters.in_col_indices + begin + step + i)
                                          : NO_PREDECESSOR;
      }
      bool in_frontier[BATCH];
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        in_frontier[i] = neighbours[i] != NO_PREDECESSOR &&
                         load_relaxed(parameters.distances + neighbours[i]) == depth;
      }
#pragma unroll
      for (int i = BATCH - 1; i >= 0; --i) {
        if (in_frontier[i]) parent = neighbours[i];
      }
      looked += degree - step < BATCH ? degree - step : BATCH;
    }
    const bool unfinished = parent == NO_PREDECESSOR && degree > LANE_ARCS;
    for (unsigned left = __ballot_sync(FULL_WARP, unfinished); left != 0; left &= left - 1) {
      const int owner = __ffs(left) - 1;
      const Offset row = __shfl_sync(FULL_WARP, begin, owner);
      const int length = __shfl_sync(FULL_WARP, degree, owner);
      const vertex_t found = look_together(parameters, depth, row, length, lane, looked);
      if (lane == owner) parent = found;
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

  // A parent among the arcs of one row past the first LANE_ARCS, by the whole warp.
  template <class Offset>
  static __device__ __forceinline__ vertex_t look_together(
      const typename Policy::Parameters& parameters, int depth, Offset row, int length, int lane,
      int& looked) {
    for (int step = LANE_ARCS; step < length; step += WARP_SIZE) {
      if (lane == 0) count_lane_slots(WARP_SIZE);
      const int arc = step + lane;
      vertex_t neighbour = NO_PREDECESSOR;
      bool in_frontier = false;
      if (arc < length) {
        neighbour = __ldg(parameters.in_col_indices + row + arc);
        in_frontier = load_relaxed(parameters.distances + neighbour) == depth;
        ++looked;
      }
      const unsigned found = __ballot_sync(FULL_WARP, in_frontier);
      if (found != 0) return __shfl_sync(FULL_WARP, neighbour, __ffs(found) - 1);
    }
    return NO_PREDECESSOR;
  }
};

}  // namespace persistent_bfs::direction

// Edge-list mapping: every arc of the graph is tested at every level, a lane an arc.
//
// An arc is visited if its near end's distance is this level's. Perfectly balanced and coalesced,
// but m tests a level whatever the frontier, and the near ends stored too (4 bytes an arc).
// Source: the edge-centric kernel of D. Kirk, W. Hwu, "Programming Massively Parallel
// Processors", chapter on graph traversal.
#pragma once

#include "frontier.cuh"
#include "mapping.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct EdgeList : FixedMapping {
  static constexpr int BATCH = 4;

  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    constexpr int CHUNK = BATCH * WARP_SIZE;
    unsigned long long edges = 0;
    const long long arcs = graph.arcs;
    const long long step = static_cast<long long>(workers.warps) * CHUNK;
    for (long long first = static_cast<long long>(workers.warp) * CHUNK; first < arcs;
         first += step) {
      vertex_t sources[BATCH];
      vertex_t neighbours[BATCH];
      unsigned valid = 0;
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const long long arc = first + i * WARP_SIZE + workers.lane;
        sources[i] = arc < arcs ? __ldg(graph.arc_sources + arc) : 0;
        neighbours[i] = arc < arcs ? __ldg(graph.col_indices + arc) : 0;
        if (arc < arcs && load_relaxed(graph.distances + sources[i]) == frontier.depth) {
          valid |= 1u << i;
        }
      }
      edges += __popc(valid);
      if (workers.lane == 0) {
        const long long left = arcs - first < CHUNK ? arcs - first : CHUNK;
        count_lane_slots(static_cast<unsigned>((left + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE));
      }
      if (__any_sync(FULL_WARP, valid)) visit(sources, neighbours, valid, Places{});
    }
    return edges;
  }
};

}  // namespace persistent_bfs::advance

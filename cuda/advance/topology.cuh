// Topology-driven mapping: every thread tests every vertex at every level.
//
// A vertex is in the frontier if its distance is this level's; no queue is read. Cost: n tests a
// level whatever the frontier, so n x levels in all: good when nearly all vertices are in nearly
// every frontier, hopeless on deep graphs. Source: P. Harish, P. J. Narayanan, HiPC 2007.
#pragma once

#include "advance/thread.cuh"
#include "frontier.cuh"
#include "mapping.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct Topology : FixedMapping {
  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    unsigned long long edges = 0;
    const long long vertices = graph.vertices;
    const long long step = static_cast<long long>(workers.warps) * WARP_SIZE;
    for (long long first = static_cast<long long>(workers.warp) * WARP_SIZE; first < vertices;
         first += step) {
      const long long v = first + workers.lane;
      const bool member = v < vertices && load_relaxed(graph.distances + v) == frontier.depth;
      if (!__any_sync(FULL_WARP, member)) continue;
      Row<Policy> row;
      if (member) {
        row.source = static_cast<vertex_t>(v);
        row.begin = __ldg(graph.row_offsets + v);
        row.degree = degree_of(graph, row.source);
      }
      edges += row.degree;
      Thread::rows(graph, row, workers.lane, visit);
    }
    return edges;
  }
};

}  // namespace persistent_bfs::advance

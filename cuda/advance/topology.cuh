// Topology-driven mapping: every thread tests every vertex at every level.
//
// Of a sparse frontier the distances say who is in it: n tests a level whatever the frontier, so n
// x levels in all: good when nearly all vertices are in nearly every frontier, hopeless on deep
// graphs. Of a dense one its bitmap does, a word for 32 vertices; a warp compacts the words it
// tests and shares long rows. Source: P. Harish, P. J. Narayanan, HiPC 2007.
#pragma once

#include "advance/thread.cuh"
#include "dense.cuh"
#include "frontier.cuh"
#include "mapping.cuh"
#include "rows.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct Topology : FixedMapping {
  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    if constexpr (Policy::dense) {
      return by_bits<Policy>(graph, frontier, workers, visit);
    } else {
      return by_distances<Policy>(graph, frontier, workers, visit);
    }
  }

 private:
  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long by_bits(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    unsigned edges = 0;  // of one thread
    each_member(bits_of(graph, frontier), bitmap_words(graph), workers, [&](vertex_t v) {
      Row<Policy> row;
      if (v != NO_VERTEX) row = row_of<Policy>(graph, v);
      edges += row.degree;
      const int rows = __popc(__ballot_sync(FULL_WARP, v != NO_VERTEX));
      rows_by_lanes(graph, row, rows, workers.lane, visit);
    });
    return edges;
  }

  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long by_distances(
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
      if (member) row = row_of<Policy>(graph, static_cast<vertex_t>(v));
      edges += row.degree;
      Thread::rows(graph, row, workers.lane, visit);
    }
    return edges;
  }

  template <class Policy>
  static __device__ __forceinline__ Row<Policy> row_of(const typename Policy::Parameters& graph,
                                                       vertex_t v) {
    Row<Policy> row;
    row.source = v;
    row.begin = __ldg(graph.row_offsets + v);
    row.degree = degree_of(graph, v);
    return row;
  }
};

}  // namespace persistent_bfs::advance

// Thread mapping: one thread expands one frontier vertex.
//
// A warp takes 32 vertices and stays together until the longest row is through, so it issues
// 32 x its largest degree in lane slots. Best for small, even degrees; one hub holds up 31 lanes.
// Neighbours are read in batches of four, so that a short row costs one memory latency, not one
// for each neighbour. Source: P. Harish, P. J. Narayanan, "Accelerating Large Graph Algorithms on
// the GPU Using CUDA", HiPC 2007 (vertex-parallel expansion).
#pragma once

#include "frontier.cuh"
#include "mapping.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct Thread : FixedMapping {
  static constexpr int BATCH = 4;

  // Calls visit(sources, neighbours, valid, places) by whole warps; returns the edges this thread
  // was given.
  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    unsigned long long edges = 0;
    const unsigned size = frontier.size;
    const unsigned step = workers.threads();
    for (unsigned first = workers.warp * WARP_SIZE; first < size; first += step) {
      const unsigned index = first + workers.lane;
      Row<Policy> row;
      if (index < size) row = Row<Policy>(graph, frontier, index);
      edges += row.degree;
      rows(graph, row, workers.lane, visit);
    }
    return edges;
  }

  // A row a lane; by a whole warp.
  template <class Policy, class Visit>
  static __device__ __forceinline__ void rows(const typename Policy::Parameters& graph,
                                              const Row<Policy>& row, int lane, Visit& visit) {
    const int longest = warp_max(row.degree);
    if (lane == 0) count_lane_slots(WARP_SIZE * longest);
    for (int step = 0; step < longest; step += BATCH) {
      vertex_t sources[BATCH];
      vertex_t neighbours[BATCH];
      unsigned valid = 0;
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        sources[i] = row.source;
        neighbours[i] = row.source;
        if (step + i < row.degree) {
          neighbours[i] = __ldg(graph.col_indices + row.begin + step + i);
          valid |= 1u << i;
        }
      }
      visit(sources, neighbours, valid, Places{row.place + step, 1});
    }
  }
};

}  // namespace persistent_bfs::advance

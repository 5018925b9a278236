// Thread mapping: one thread expands one frontier vertex.
//
// A warp takes 32 vertices and stays together until the longest row is through, so it issues
// 32 x its largest degree in lane slots. Best for small, even degrees; one hub holds up 31 lanes.
// Neighbours are read in batches of four, so that a short row costs one memory latency, not one
// for each neighbour. Source: P. Harish, P. J. Narayanan, "Accelerating Large Graph Algorithms on
// the GPU Using CUDA", HiPC 2007 (vertex-parallel expansion).
#pragma once

#include "frontier.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct Thread {
  static constexpr int BATCH = 4;

  // Calls visit(source, neighbours, count) by whole warps; returns the edges this thread was given.
  template <class Parameters, class Visit>
  static __device__ __forceinline__ unsigned long long run(const Parameters& graph,
                                                           const Frontier& frontier,
                                                           const Workers& workers, Visit& visit) {
    using Offset = typename Parameters::OffsetType;
    unsigned long long edges = 0;
    for (int first = workers.warp * WARP_SIZE; first < frontier.size;
         first += workers.warps * WARP_SIZE) {
      const int index = first + workers.lane;
      vertex_t source = 0;
      Offset begin = 0;
      int degree = 0;
      if (index < frontier.size) {
        source = frontier.vertices[index];
        begin = __ldg(graph.row_offsets + source);
        degree = static_cast<int>(__ldg(graph.row_offsets + source + 1) - begin);
      }
      edges += degree;
      const int longest = warp_max(degree);
      if (workers.lane == 0) count_lane_slots(WARP_SIZE * longest);
      for (int step = 0; step < longest; step += BATCH) {
        vertex_t neighbours[BATCH];
        const int count = degree - step;
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
          neighbours[i] = i < count ? __ldg(graph.col_indices + begin + step + i) : source;
        }
        visit(source, neighbours, count);
      }
    }
    return edges;
  }
};

}  // namespace persistent_bfs::advance

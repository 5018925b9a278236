// Warp mapping: the 32 lanes of a warp stride the row of one frontier vertex.
//
// A vertex costs ceil(degree / 32) x 32 lane slots: reads are coalesced and a hub keeps no other
// vertex waiting, but a row shorter than 32 leaves lanes idle. Rows longer than a warp are read
// four strides at a time, to have several loads in flight. Source: S. Hong, S. K. Kim,
// T. Oguntebi, K. Olukotun, "Accelerating CUDA Graph Algorithms at Maximum Warp", PPoPP 2011.
#pragma once

#include "frontier.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct Warp {
  static constexpr int BATCH = 4;

  template <class Parameters, class Visit>
  static __device__ __forceinline__ unsigned long long run(const Parameters& graph,
                                                           const Frontier& frontier,
                                                           const Workers& workers, Visit& visit) {
    using Offset = typename Parameters::OffsetType;
    unsigned long long edges = 0;
    for (int index = workers.warp; index < frontier.size; index += workers.warps) {
      const vertex_t source = frontier.vertices[index];
      const Offset begin = __ldg(graph.row_offsets + source);
      const int degree = static_cast<int>(__ldg(graph.row_offsets + source + 1) - begin);
      if (workers.lane == 0) {
        edges += degree;
        count_lane_slots((degree + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE);
      }
      int step = 0;
      for (; degree - step > WARP_SIZE; step += BATCH * WARP_SIZE) {
        stride<BATCH>(graph, source, begin + step, degree - step, workers.lane, visit);
      }
      if (step < degree) {
        stride<1>(graph, source, begin + step, degree - step, workers.lane, visit);
      }
    }
    return edges;
  }

 private:
  // N strides of the warp over the `left` neighbours from `begin`.
  template <int N, class Parameters, class Offset, class Visit>
  static __device__ __forceinline__ void stride(const Parameters& graph, vertex_t source,
                                                Offset begin, int left, int lane, Visit& visit) {
    vertex_t neighbours[N];
    const int count = (left - lane + WARP_SIZE - 1) / WARP_SIZE;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      neighbours[i] = i < count ? __ldg(graph.col_indices + begin + i * WARP_SIZE + lane) : source;
    }
    visit(source, neighbours, count);
  }
};

}  // namespace persistent_bfs::advance

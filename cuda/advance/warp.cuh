// Warp mapping: the 32 lanes of a warp stride the row of one frontier vertex.
//
// A vertex costs ceil(degree / 32) x 32 lane slots: reads are coalesced and a hub keeps no other
// vertex waiting, but a row shorter than 32 leaves lanes idle. Rows longer than a warp are read
// four strides at a time, to have several loads in flight. Source: S. Hong, S. K. Kim,
// T. Oguntebi, K. Olukotun, "Accelerating CUDA Graph Algorithms at Maximum Warp", PPoPP 2011.
#pragma once

#include "frontier.cuh"
#include "mapping.cuh"
#include "stride.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct Warp : FixedMapping {
  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    unsigned long long edges = 0;
    const unsigned size = frontier.size;
    for (unsigned index = workers.warp; index < size; index += workers.warps) {
      const Row<Policy> row(graph, frontier, index);
      if (workers.lane == 0) edges += row.degree;
      stride_row(graph, row, WARP_SIZE, workers.lane, visit);
    }
    return edges;
  }
};

}  // namespace persistent_bfs::advance

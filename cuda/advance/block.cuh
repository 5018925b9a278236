// Block mapping: all threads of a block stride the row of one frontier vertex.
//
// A vertex costs ceil(degree / block) x block lane slots: for rows of thousands of arcs, which one
// warp would take long over; on anything shorter most of the block idles. Source: the block class
// of D. Merrill, M. Garland, A. Grimshaw, "Scalable GPU Graph Traversal", PPoPP 2012.
#pragma once

#include "frontier.cuh"
#include "mapping.cuh"
#include "stride.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct Block : FixedMapping {
  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers&,
      Visit& visit) {
    unsigned long long edges = 0;
    const unsigned size = frontier.size;
    for (unsigned index = blockIdx.x; index < size; index += gridDim.x) {
      const Row<Policy> row(graph, frontier, index);
      if (threadIdx.x == 0) edges += row.degree;
      stride_row(graph, row, blockDim.x, threadIdx.x, visit);
    }
    return edges;
  }
};

}  // namespace persistent_bfs::advance

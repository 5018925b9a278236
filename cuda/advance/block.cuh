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
    using Offset = typename Policy::Offset;
    unsigned long long edges = 0;
    for (int index = blockIdx.x; index < frontier.size; index += gridDim.x) {
      const vertex_t source = frontier.vertices[index];
      const Offset begin = __ldg(graph.row_offsets + source);
      const int degree = static_cast<int>(__ldg(graph.row_offsets + source + 1) - begin);
      if (threadIdx.x == 0) edges += degree;
      stride_row(graph, source, begin, degree, blockDim.x, threadIdx.x, visit);
    }
    return edges;
  }
};

}  // namespace persistent_bfs::advance

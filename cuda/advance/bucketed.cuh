// Bucketed mapping: a row is expanded by a thread, a warp or the whole block, by its degree.
//
// A block takes a tile of frontier vertices, one a thread, and goes through it three times: rows
// of a block or more by the whole block, rows of a warp or more by warps, the rest a lane each.
// Cost: three block barriers a tile with a hub in it, one without; few idle lanes at any degree.
// A hub still has one block only. Source: the three classes of D. Merrill, M. Garland,
// A. Grimshaw, "Scalable GPU Graph Traversal", PPoPP 2012.
#pragma once

#include "advance/thread.cuh"
#include "frontier.cuh"
#include "mapping.cuh"
#include "stride.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct Bucketed : FixedMapping {
  static constexpr int WARP_DEGREE = WARP_SIZE;

  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    using Offset = typename Policy::Offset;
    __shared__ int hubs;
    __shared__ int hub[Policy::block_threads];
    unsigned long long edges = 0;
    // A small frontier is spread over all blocks rather than packed into a few.
    const int spread = (frontier.size + gridDim.x - 1) / gridDim.x;
    const int tile = spread < static_cast<int>(blockDim.x) ? spread : blockDim.x;
    for (int first = blockIdx.x * tile; first < frontier.size; first += gridDim.x * tile) {
      const int index = first + threadIdx.x;
      vertex_t source = 0;
      Offset begin = 0;
      int degree = 0;
      if (static_cast<int>(threadIdx.x) < tile && index < frontier.size) {
        source = frontier.vertices[index];
        begin = __ldg(graph.row_offsets + source);
        degree = static_cast<int>(__ldg(graph.row_offsets + source + 1) - begin);
      }
      edges += degree;

      const bool is_hub = degree >= static_cast<int>(blockDim.x);
      if (__syncthreads_or(is_hub)) {
        if (threadIdx.x == 0) hubs = 0;
        __syncthreads();
        if (is_hub) hub[atomicAdd(&hubs, 1)] = index;
        __syncthreads();
        for (int i = 0; i < hubs; ++i) {
          const vertex_t far = frontier.vertices[hub[i]];
          stride_row(graph, far, __ldg(graph.row_offsets + far), degree_of(graph, far), blockDim.x,
                     threadIdx.x, visit);
        }
        __syncthreads();
        if (is_hub) degree = 0;
      }
      for (unsigned left = __ballot_sync(FULL_WARP, degree >= WARP_DEGREE); left != 0;
           left &= left - 1) {
        const int lane = __ffs(left) - 1;
        stride_row(graph, __shfl_sync(FULL_WARP, source, lane),
                   __shfl_sync(FULL_WARP, begin, lane), __shfl_sync(FULL_WARP, degree, lane),
                   WARP_SIZE, workers.lane, visit);
      }
      Thread::rows(graph, source, begin, degree < WARP_DEGREE ? degree : 0, workers.lane, visit);
    }
    return edges;
  }
};

}  // namespace persistent_bfs::advance

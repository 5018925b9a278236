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
    __shared__ int hubs;
    __shared__ int hub[Policy::block_threads];
    unsigned long long edges = 0;
    // A small frontier is spread over all blocks rather than packed into a few.
    const int spread = (frontier.size + gridDim.x - 1) / gridDim.x;
    const int tile = spread < static_cast<int>(blockDim.x) ? spread : blockDim.x;
    for (int first = blockIdx.x * tile; first < frontier.size; first += gridDim.x * tile) {
      const int index = first + threadIdx.x;
      Row<Policy> row;
      if (static_cast<int>(threadIdx.x) < tile && index < frontier.size) {
        row = Row<Policy>(graph, frontier, index);
      }
      edges += row.degree;

      const bool is_hub = row.degree >= static_cast<int>(blockDim.x);
      if (__syncthreads_or(is_hub)) {
        if (threadIdx.x == 0) hubs = 0;
        __syncthreads();
        if (is_hub) hub[atomicAdd(&hubs, 1)] = index;
        __syncthreads();
        for (int i = 0; i < hubs; ++i) {
          stride_row(graph, Row<Policy>(graph, frontier, hub[i]), blockDim.x, threadIdx.x, visit);
        }
        __syncthreads();
        if (is_hub) row.degree = 0;
      }
      for (unsigned left = __ballot_sync(FULL_WARP, row.degree >= WARP_DEGREE); left != 0;
           left &= left - 1) {
        stride_row(graph, row_of_lane(row, __ffs(left) - 1), WARP_SIZE, workers.lane, visit);
      }
      if (row.degree >= WARP_DEGREE) row.degree = 0;
      Thread::rows(graph, row, workers.lane, visit);
    }
    return edges;
  }
};

}  // namespace persistent_bfs::advance

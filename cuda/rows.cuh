// A row a lane, by one warp: long rows by all its lanes, one after another, the others a lane each.
//
// Cost: a row of LONG_ROW arcs or more fills the lanes of whole strides; of the others the longest
// decides, as in the thread mapping. Source: the warp and thread classes of D. Merrill, M. Garland,
// A. Grimshaw, "Scalable GPU Graph Traversal", PPoPP 2012.
#pragma once

#include "advance/thread.cuh"
#include "frontier.cuh"
#include "stride.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

constexpr int LONG_ROW = WARP_SIZE;

template <class Policy, class Visit>
__device__ __forceinline__ void rows_by_length(const typename Policy::Parameters& graph,
                                               Row<Policy> row, int lane, Visit& visit) {
  for (unsigned left = __ballot_sync(FULL_WARP, row.degree >= LONG_ROW); left != 0;
       left &= left - 1) {
    stride_row(graph, row_of_lane(row, __ffs(left) - 1), WARP_SIZE, lane, visit);
  }
  if (row.degree >= LONG_ROW) row.degree = 0;
  advance::Thread::rows(graph, row, lane, visit);
}

}  // namespace persistent_bfs

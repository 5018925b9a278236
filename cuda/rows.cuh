// A row a team of lanes, by one warp: long rows by all its lanes, one after another, the others by
// their teams at once.
//
// Cost: a row fills the lanes of whole strides; among those that are not long the longest decides.
// Source: teams of lanes after S. Hong, S. K. Kim, T. Oguntebi, K. Olukotun, PPoPP 2011; long rows
// by themselves after D. Merrill, M. Garland, A. Grimshaw, "Scalable GPU Graph Traversal", PPoPP
// 2012.
#pragma once

#include "frontier.cuh"
#include "stride.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// All lanes of a team of `team`, a power of two, hold its row.
template <class Policy, class Visit>
__device__ __forceinline__ void rows_by_teams(const typename Policy::Parameters& graph,
                                              Row<Policy> row, int team, int lane,
                                              Visit& visit) {
  constexpr int BATCH = 4;
  const int long_row = BATCH * team > WARP_SIZE ? BATCH * team : WARP_SIZE;
  const int rank = lane & (team - 1);
  for (unsigned left = __ballot_sync(FULL_WARP, rank == 0 && row.degree >= long_row); left != 0;
       left &= left - 1) {
    stride_row<false>(graph, row_of_lane(row, __ffs(left) - 1), WARP_SIZE, lane, visit);
  }
  if (row.degree >= long_row) row.degree = 0;
  const int longest = warp_max(row.degree);
  if (lane == 0) count_lane_slots((longest + team - 1) / team * WARP_SIZE);
#pragma unroll 1
  for (int step = 0; step < longest; step += BATCH * team) {
    stride<BATCH>(graph, row, step, team, rank, visit);
  }
}

// The first `rows` lanes hold a row each, and share it with as many others as there are.
template <class Policy, class Visit>
__device__ __forceinline__ void rows_by_lanes(const typename Policy::Parameters& graph,
                                              const Row<Policy>& row, int rows, int lane,
                                              Visit& visit) {
  int shift = 0;
  while (rows << (shift + 1) <= WARP_SIZE) ++shift;
  Row<Policy> its = row_of_lane(row, lane >> shift);
  if (lane >> shift >= rows) its.degree = 0;
  rows_by_teams(graph, its, 1 << shift, lane, visit);
}

}  // namespace persistent_bfs

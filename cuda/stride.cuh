// A team of threads strides one row: a warp, or a whole block.
//
// Only whole warps call visit, and those for which nothing of the last stride is left do not. Long
// rows are read four strides at a time, to have several loads in flight; the last stride, and a
// short row, one at a time. Cost: the row's length rounded up to the team's size, in lane slots.
#pragma once

#include "frontier.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// The row that lane `lane` of the warp holds.
template <class Policy>
__device__ __forceinline__ Row<Policy> row_of_lane(const Row<Policy>& row, int lane) {
  Row<Policy> its;
  its.begin = __shfl_sync(FULL_WARP, row.begin, lane);
  its.degree = __shfl_sync(FULL_WARP, row.degree, lane);
  its.source = __shfl_sync(FULL_WARP, row.source, lane);
  if constexpr (Policy::needs_places) its.place = __shfl_sync(FULL_WARP, row.place, lane);
  return its;
}

// N strides of a team of `team` threads over a row, from arc `step` of it on.
template <int N, class Policy, class Visit>
__device__ __forceinline__ void stride(const typename Policy::Parameters& graph,
                                       const Row<Policy>& row, int step, int team, int rank,
                                       Visit& visit) {
  const int left = row.degree - step;
  vertex_t sources[N];
  vertex_t neighbours[N];
  unsigned valid = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    sources[i] = row.source;
    neighbours[i] = row.source;
    const int mine = i * team + rank;
    if (mine < left) {
      neighbours[i] = __ldg(graph.col_indices + row.begin + step + mine);
      valid |= 1u << i;
    }
  }
  visit(sources, neighbours, valid, Places{row.place + step + rank, static_cast<unsigned>(team)});
}

// The whole row, by thread `rank` of the team. The compiler may unroll the batches, unless
// registers are dear.
template <bool may_unroll = true, class Policy, class Visit>
__device__ __forceinline__ void stride_row(const typename Policy::Parameters& graph,
                                           const Row<Policy>& row, int team, int rank,
                                           Visit& visit) {
  constexpr int BATCH = 4;
  if (rank == 0) count_lane_slots((row.degree + team - 1) / team * team);
  int step = 0;
  if constexpr (may_unroll) {
    for (; row.degree - step > team; step += BATCH * team) {
      stride<BATCH>(graph, row, step, team, rank, visit);
    }
  } else {
#pragma unroll 1
    for (; row.degree - step > team; step += BATCH * team) {
      stride<BATCH>(graph, row, step, team, rank, visit);
    }
  }
  if (step + rank / WARP_SIZE * WARP_SIZE < row.degree) {
    stride<1>(graph, row, step, team, rank, visit);
  }
}

}  // namespace persistent_bfs

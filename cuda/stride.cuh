// A team of threads strides one row: a warp, or a whole block.
//
// Every warp of the team calls visit the same number of times, so that whole warps stay together.
// Long rows are read four strides at a time, to have several loads in flight; the last stride, and
// a short row, one at a time.
#pragma once

#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// N strides of a team of `team` threads over the `left` arcs of `source` from `begin`.
template <int N, class Parameters, class Offset, class Visit>
__device__ __forceinline__ void stride(const Parameters& graph, vertex_t source, Offset begin,
                                       int left, int team, int rank, Visit& visit) {
  vertex_t sources[N];
  vertex_t neighbours[N];
  unsigned valid = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    sources[i] = source;
    neighbours[i] = source;
    const int mine = i * team + rank;
    if (mine < left) {
      neighbours[i] = __ldg(graph.col_indices + begin + mine);
      valid |= 1u << i;
    }
  }
  visit(sources, neighbours, valid);
}

// The whole row: `degree` arcs of `source` from `begin`, by thread `rank` of the team.
template <class Parameters, class Offset, class Visit>
__device__ __forceinline__ void stride_row(const Parameters& graph, vertex_t source, Offset begin,
                                           int degree, int team, int rank, Visit& visit) {
  constexpr int BATCH = 4;
  if (rank == 0) count_lane_slots((degree + team - 1) / team * team);
  int step = 0;
  for (; degree - step > team; step += BATCH * team) {
    stride<BATCH>(graph, source, begin + step, degree - step, team, rank, visit);
  }
  if (step < degree) stride<1>(graph, source, begin + step, degree - step, team, rank, visit);
}

}  // namespace persistent_bfs

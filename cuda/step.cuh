// One level of a search: what every loop shares.
//
// direction says who looks at whom, advance gives the edges to threads, claim decides who
// discovers a vertex, append puts it into the next frontier. Cost: the frontier's edges, and a
// chain of dependent reads: queue, row_offsets, col_indices, distance, claim, append.
#pragma once

#include "dense.cuh"
#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// Decides whether this level's unvisited vertices look for parents, rather than the frontier for
// children, when all that is known of the frontier is in it. Here and nowhere else: the decision may
// compare floats, and a compiler may round two copies of it differently; then what is remembered of
// a level would not be what was done, and the next one would trust bitmaps that nobody wrote.
template <class Policy>
__device__ __forceinline__ void decide_direction(const typename Policy::Parameters& parameters,
                                                 Frontier& frontier) {
  frontier.pulls = Policy::template Direction<Policy>::pulls(parameters, frontier);
}

// Expands `frontier` into `next`; every thread of the grid takes part.
template <class Policy>
__device__ __forceinline__ void expand_level(const typename Policy::Parameters& parameters,
                                             const Frontier& frontier, const NextFrontier& next) {
  const Workers workers;
  clear_stale<Policy>(parameters, frontier, workers);
  const unsigned long long edges =
      Policy::template Direction<Policy>::expand(parameters, frontier, next, workers);
  if constexpr (Policy::trace) {
    const unsigned long long warp_edges = warp_sum(edges);
    if (workers.lane == 0 && warp_edges != 0) {
      atomicAdd(&parameters.trace[frontier.depth].edges, warp_edges);
    }
  }
}

// Phase `phase` of a level whose append has more than the expansion; every thread of the grid takes
// part, and a device-wide barrier comes before.
template <class Policy>
__device__ __forceinline__ void complete_level(const typename Policy::Parameters& parameters,
                                               const Frontier& frontier, const NextFrontier& next,
                                               int phase) {
  if constexpr (Policy::phases > 1) {
    Policy::template Append<Policy>::complete(parameters, frontier, next, phase);
  }
}

}  // namespace persistent_bfs

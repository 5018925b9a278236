// Push: frontier vertices look at their neighbours and claim the unvisited ones.
//
// Cost: a test for each edge of the frontier, a claim for each that looked unvisited. Source: the
// top-down step of S. Beamer, K. Asanovic, D. Patterson, "Direction-Optimizing Breadth-First
// Search", SC 2012.
#pragma once

#include "frontier.cuh"
#include "types.cuh"

namespace persistent_bfs::direction {

// Called by whole warps with a batch of neighbours of `source`, of which the first `count` are
// real.
template <class Policy>
struct Push {
  const typename Policy::Parameters& parameters;
  typename Policy::Append append;
  int distance;

  template <int N>
  __device__ __forceinline__ void operator()(vertex_t source, const vertex_t (&neighbours)[N],
                                             int count) {
    using Claim = typename Policy::Claim;
    // All tests before the first claim: the reads are then in flight together.
    unsigned unvisited = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i < count && Claim::looks_unvisited(parameters.distances, neighbours[i])) {
        unvisited |= 1u << i;
      }
    }
    unsigned discovered = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if ((unvisited >> i & 1u) && Claim::take(parameters.distances, neighbours[i], distance)) {
        discovered |= 1u << i;
        if constexpr (Policy::predecessors) parameters.predecessors[neighbours[i]] = source;
      }
    }
    append.push(neighbours, discovered);
  }
};

}  // namespace persistent_bfs::direction

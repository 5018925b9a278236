// Pull: unvisited vertices look for a parent in the frontier, and stop at the first they find.
//
// How they see who is left, who is in the frontier, and how they enter the next one is the
// frontier's own affair: see cuda/pull/. Cost: of an unvisited vertex's arcs only those before the
// first parent: little when the frontier is a large part of the graph, everything when it is small.
// Needs the transposed graph if directed. Source: the bottom-up step of S. Beamer, K. Asanovic, D.
// Patterson, "Direction-Optimizing Breadth-First Search", SC 2012.
#pragma once

#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::direction {

template <class Policy>
struct Pull {
  static __device__ __forceinline__ bool pulls(const typename Policy::Parameters&,
                                               const Frontier&) {
    return true;
  }

  // As Push::expand; the edges are those looked at.
  static __device__ __forceinline__ unsigned long long expand(
      const typename Policy::Parameters& parameters, const Frontier& frontier,
      const NextFrontier& next, const Workers& workers) {
    return Policy::Form::template Pull<Policy>::expand(parameters, frontier, next, workers);
  }
};

}  // namespace persistent_bfs::direction

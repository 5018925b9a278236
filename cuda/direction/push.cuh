// Push: frontier vertices look at their neighbours and claim the unvisited ones.
//
// Cost: a test for each edge of the frontier, a claim for each that looked unvisited. A frontier
// that only its bitmap holds, as the level after a pulled one finds it, goes by that. Source: the
// top-down step of S. Beamer, K. Asanovic, D. Patterson, "Direction-Optimizing Breadth-First
// Search", SC 2012.
#pragma once

#include "advance/topology.cuh"
#include "dense.cuh"
#include "frontier.cuh"
#include "types.cuh"
#include "visit.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::direction {

template <class Policy>
struct Push {
  static __device__ __forceinline__ bool pulls(const typename Policy::Parameters&,
                                               const Frontier&) {
    return false;
  }

  // Expands `frontier` into `next`, by every thread of the grid; returns the edges this thread
  // was given.
  static __device__ __forceinline__ unsigned long long expand(
      const typename Policy::Parameters& parameters, const Frontier& frontier,
      const NextFrontier& next, const Workers& workers) {
    Visit<Policy> visit{
        parameters, {parameters, next, workers.lane}, frontier.depth + 1, frontier.bitmap};
    const unsigned long long edges =
        in_queue<Policy>(frontier)
            ? Policy::Advance::template run<Policy>(parameters, frontier, workers, visit)
            : advance::Topology::run<Policy>(parameters, frontier, workers, visit);
    visit.append.finish();
    return edges;
  }
};

}  // namespace persistent_bfs::direction

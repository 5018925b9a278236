// Direction chosen level by level, on the device: push while the frontier is small, pull while it
// holds a large part of what is left.
//
// To pull when the frontier's edges exceed 1/ALPHA of the unexplored ones, and back to push when
// its vertices are fewer than 1/BETA of all. Every thread computes the same answer from the
// counts, so that nothing has to be agreed on. Source: S. Beamer, K. Asanovic, D. Patterson, SC
// 2012; the constants are those of the GAP Benchmark Suite.
#pragma once

#include "direction/pull.cuh"
#include "direction/push.cuh"

namespace persistent_bfs::direction {

template <class Policy>
struct Auto {
  static constexpr unsigned ALPHA = 15;
  static constexpr unsigned BETA = 18;

  static __device__ __forceinline__ bool pulls(const typename Policy::Parameters& parameters,
                                               const Frontier& frontier) {
    static_assert(Policy::counts_edges, "the direction is chosen by the frontier's edges");
    if (frontier.pulling) {
      return static_cast<unsigned long long>(frontier.size) * BETA >=
             static_cast<unsigned>(parameters.vertices);
    }
    return static_cast<unsigned long long>(frontier.edges) * ALPHA > frontier.unexplored;
  }

  static __device__ __forceinline__ unsigned long long expand(
      const typename Policy::Parameters& parameters, const Frontier& frontier,
      const NextFrontier& next, const Workers& workers) {
    return pulls(parameters, frontier)
               ? Pull<Policy>::expand(parameters, frontier, next, workers)
               : Push<Policy>::expand(parameters, frontier, next, workers);
  }
};

}  // namespace persistent_bfs::direction

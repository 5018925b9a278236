// Direction chosen level by level, on the device: push while the frontier is small, pull while it
// holds a large part of what is left.
//
// A pulled level has to pay for a sight of every vertex, for looks of the unvisited ones at their
// arcs, and for a chain of dependent reads that many threads can only share if there is work for
// them all. If e of the u arcs that are left lead out of the frontier, and they are well mixed, an
// unvisited vertex has u / e looks before it finds a parent. So much is compared with e, the looks
// of a pushed level: to pull where that is more. Back to push where the frontier's vertices are
// fewer than 1/BETA of all, unless few others are left to look for a parent. Every thread computes
// the same answer from the counts, so that nothing has to be agreed on; once a level, for that
// (step.cuh). Source: S. Beamer, K.
// Asanovic, D. Patterson, SC 2012, with BETA of the GAP Benchmark Suite; their ALPHA pulls wherever
// e exceeds u/15, which is right where the unvisited find parents at once, but not where they look
// along all their arcs in vain: docs/performance.md.
#pragma once

#include "direction/pull.cuh"
#include "direction/push.cuh"

namespace persistent_bfs::direction {

template <class Policy>
struct Auto {
  static constexpr unsigned BETA = 18;
  static constexpr int LEFT = 4;              // vertices to look, for each of the frontier's
  static constexpr float LOOK = 8;            // of a pull, in those of a push
  static constexpr float SIGHT = 0.125f;      // of a vertex, in the same
  static constexpr float LOOKS_A_THREAD = 4;  // of a push, that take no longer than a pull of none

  static __device__ __forceinline__ bool pulls(const typename Policy::Parameters& parameters,
                                               const Frontier& frontier) {
    static_assert(Policy::counts_edges, "the direction is chosen by the frontier's edges");
    if (frontier.pulling) {
      return (Policy::dense && frontier.left / LEFT <= frontier.size) ||
             static_cast<unsigned long long>(frontier.size) * BETA >=
                 static_cast<unsigned>(parameters.vertices);
    }
    const Workers workers;
    const float threads = static_cast<float>(workers.warps) * WARP_SIZE;
    const float edges = static_cast<float>(frontier.edges);
    const float unvisited = static_cast<float>(frontier.unvisited);
    const float looks = unvisited * static_cast<float>(frontier.unexplored);  // times edges
    const float overhead =
        LOOKS_A_THREAD * threads + SIGHT * static_cast<float>(parameters.vertices);
    return edges > overhead && (edges - overhead) * edges > LOOK * looks;
  }

  static __device__ __forceinline__ unsigned long long expand(
      const typename Policy::Parameters& parameters, const Frontier& frontier,
      const NextFrontier& next, const Workers& workers) {
    return frontier.pulls
               ? Pull<Policy>::expand(parameters, frontier, next, workers)
               : Push<Policy>::expand(parameters, frontier, next, workers);
  }
};

}  // namespace persistent_bfs::direction

// Mapping chosen level by level, on the device, from the frontier's vertices and edges.
//
// Few edges a vertex: a thread each, which reads nothing extra. Otherwise, if there is a warp for
// every vertex and rows are short enough for one, a warp each; else equal edges a lane, which is
// never far from the best but pays for its search. Every thread computes the same answer. Source:
// the per-level choice of Gunrock (Y. Wang et al., PPoPP 2016).
#pragma once

#include "advance/edge.cuh"
#include "advance/thread.cuh"
#include "frontier.cuh"
#include "mapping.cuh"

namespace persistent_bfs::advance {

struct Auto {
  // Edges a vertex up to which the rows' unevenness costs less than the edge mapping's search.
  static constexpr unsigned THREAD_DEGREE = 4;

  static __device__ __forceinline__ Mapping chosen(const Frontier& frontier) {
    const unsigned long long vertices = frontier.size;
    return frontier.edges <= vertices * THREAD_DEGREE ? BY_THREAD : BY_EDGE;
  }

  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    static_assert(Policy::counts_edges, "the mapping is chosen by the frontier's edges");
    return chosen(frontier) == BY_THREAD
               ? Thread::run<Policy>(graph, frontier, workers, visit)
               : Edge::run<Policy>(graph, frontier, workers, visit);
  }
};

}  // namespace persistent_bfs::advance

// Mapping chosen level by level, on the device, from the frontier's size and largest degree.
//
// A frontier that gives each warp few vertices, none of them a hub: a warp a vertex, the shortest
// chain of dependent reads. More vertices than that, all of small degree: a thread each. Anything
// else: equal edges a lane, never far from the best, but it pays for its search. Every thread
// computes the same answer. Where the graph has no large degree at all, nothing is counted and
// the size alone decides. Source: the per-level choice of Gunrock (Y. Wang et al., PPoPP 2016);
// the thresholds were measured, see docs/performance.md.
#pragma once

#include "advance/edge.cuh"
#include "advance/thread.cuh"
#include "advance/warp.cuh"
#include "frontier.cuh"
#include "mapping.cuh"

namespace persistent_bfs::advance {

struct Auto {
  // Vertices a warp up to which taking them one after another beats a thread each, where no degree
  // is large; and equal edges a lane, where one is.
  static constexpr int VERTICES_PER_WARP = 8;
  static constexpr int UNEVEN_PER_WARP = 3;
  // Degree up to which one warp is through with a row before the level would end anyway.
  static constexpr int WARP_DEGREE = 256;

  static __device__ __forceinline__ Mapping chosen(const Frontier& frontier) {
    const Workers workers;
    const bool even = frontier.largest_degree <= EVEN_DEGREE;
    const int most = even ? VERTICES_PER_WARP : UNEVEN_PER_WARP;
    if (frontier.largest_degree <= WARP_DEGREE && frontier.size / most <= workers.warps) {
      return BY_WARP;
    }
    return even ? BY_THREAD : BY_EDGE;
  }

  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    const Mapping mapping = chosen(frontier);
    if (mapping == BY_WARP) return Warp::run<Policy>(graph, frontier, workers, visit);
    if constexpr (Policy::counts_edges) {
      if (mapping == BY_EDGE) return Edge::run<Policy>(graph, frontier, workers, visit);
    }
    return Thread::run<Policy>(graph, frontier, workers, visit);
  }
};

}  // namespace persistent_bfs::advance

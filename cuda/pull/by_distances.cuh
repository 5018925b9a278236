// A pulled level where frontiers are queues: distances say who is unvisited, and who is a parent.
//
// A lane a vertex, a warp 32 in a row. Nobody else writes an unvisited vertex, so there is no claim
// to win; discoveries are appended as a push does it. Cost: a look at every vertex, 4 bytes a test.
// Source: the bottom-up step of S. Beamer, K. Asanovic, D. Patterson, SC 2012.
#pragma once

#include "frontier.cuh"
#include "pull/parent_search.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::pull {

template <class Policy>
class ByDistances {
 public:
  using Parameters = typename Policy::Parameters;

  // As Push::expand; the edges are those looked at.
  static __device__ __forceinline__ unsigned long long expand(const Parameters& parameters,
                                                              const Frontier& frontier,
                                                              const NextFrontier& next,
                                                              const Workers& workers) {
    const Members members{parameters.distances, frontier.depth};
    ParentSearch<Policy, Members> search(parameters, members, workers.lane);
    Append append{parameters, next, workers.lane};
    const auto enter = [&](vertex_t v, vertex_t parent) {
      const bool discovered = parent != NO_PREDECESSOR;
      if (discovered) {
        store_relaxed(parameters.distances + v, frontier.depth + 1);
        if constexpr (Policy::predecessors) parameters.predecessors[v] = parent;
      }
      const vertex_t batch[1] = {v};
      append.push(batch, discovered);
    };
    const long long step = static_cast<long long>(workers.warps) * WARP_SIZE;
    long long v = static_cast<long long>(workers.warp) * WARP_SIZE + workers.lane;
    bool unvisited = is_unvisited(parameters, v);
    for (; v - workers.lane < parameters.vertices; v += step) {
      // Whether the next vertex is visited is known by the time this one is done with; nobody but
      // this lane changes it, or its block when all its warps are through.
      const bool looks = unvisited;
      unvisited = is_unvisited(parameters, v + step);
      if (!__any_sync(FULL_WARP, looks)) continue;
      const vertex_t its = looks ? static_cast<vertex_t>(v) : NO_VERTEX;
      enter(its, search.find(its));
    }
    search.finish(enter);
    append.finish();
    return search.edges();
  }

 private:
  using Append = typename Policy::template Append<Policy>;

  struct Members {
    const vertex_t* distances;
    int depth;

    __device__ __forceinline__ bool contains(vertex_t v) const {
      return load_relaxed(distances + v) == depth;
    }
  };

  static __device__ __forceinline__ bool is_unvisited(const Parameters& parameters, long long v) {
    return v < parameters.vertices && load_relaxed(parameters.distances + v) == UNVISITED;
  }
};

}  // namespace persistent_bfs::pull

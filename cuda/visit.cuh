// What a search does with the arcs it is given: test, claim, remember the parent, append.
//
// Cost: a test an arc, a claim for each far end that looked unvisited, and the append's; where
// frontiers are dense, an atomic without an answer for each discovery more.
#pragma once

#include "dense.cuh"
#include "frontier.cuh"
#include "types.cuh"

namespace persistent_bfs {

// Called by whole warps, with a batch of arcs a lane.
template <class Policy>
struct Visit {
  const typename Policy::Parameters& parameters;
  typename Policy::template Append<Policy> append;
  int distance;
  int bitmap_number;  // the frontier's, where it is dense

  // Bit i of `valid` says that this lane has an arc sources[i] -> neighbours[i], at places[i].
  template <int N>
  __device__ __forceinline__ void operator()(const vertex_t (&sources)[N],
                                             const vertex_t (&neighbours)[N], unsigned valid,
                                             Places places) {
    using Claim = typename Policy::Claim;
    // All tests before the first claim: the reads are then in flight together.
    unsigned unvisited = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if ((valid >> i & 1u) && Claim::looks_unvisited(parameters.distances, neighbours[i])) {
        unvisited |= 1u << i;
      }
    }
    unsigned discovered = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if ((unvisited >> i & 1u) && Claim::take(parameters.distances, neighbours[i], distance)) {
        discovered |= 1u << i;
        if constexpr (Policy::predecessors) parameters.predecessors[neighbours[i]] = sources[i];
        if constexpr (Policy::dense) set_bit(bitmap(parameters, bitmap_number + 1), neighbours[i]);
      }
    }
    if constexpr (Policy::needs_places) {
      append.push(neighbours, valid, discovered, places);
    } else {
      append.push(neighbours, discovered);
    }
  }
};

}  // namespace persistent_bfs

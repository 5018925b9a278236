// Claim by check, then write: for study, since the gap between the two is a race.
//
// Two threads that both look before either writes both win, and the vertex enters the next
// frontier twice. Distances stay right (both write the same value), which is why distances alone
// cannot show the fault; the frontier sizes no longer add up to the vertices reached.
// Cost: one plain load and one plain store, no atomic. Source: the benign race of J. Barnat et
// al. and of D. Merrill, M. Garland, A. Grimshaw, "Scalable GPU Graph Traversal", PPoPP 2012.
#pragma once

#include "types.cuh"

namespace persistent_bfs::claim {

struct Naive {
  static constexpr bool exact = false;  // one discoverer a vertex

  static __device__ __forceinline__ bool looks_unvisited(const vertex_t* distances, vertex_t v) {
    return distances[v] == UNVISITED;
  }

  static __device__ __forceinline__ bool take(vertex_t* distances, vertex_t v, int distance) {
    distances[v] = distance;
    return true;
  }
};

}  // namespace persistent_bfs::claim

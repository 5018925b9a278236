// Claim by compare-and-swap: of all threads that reach an unvisited vertex, exactly one wins it.
//
// Cost: one relaxed load for each neighbour, one atomic for each that looked unvisited. The test
// first, because most neighbours of a late level are visited and an atomic costs L2 a
// read-modify-write. Source: L. Luo, M. Wong, W. Hwu, "An Effective GPU Implementation of
// Breadth-First Search", DAC 2010; the test before the atomic is folklore.
#pragma once

#include "types.cuh"

namespace persistent_bfs::claim {

struct CompareAndSwap {
  static constexpr bool exact = true;  // one discoverer a vertex

  static __device__ __forceinline__ bool looks_unvisited(const vertex_t* distances, vertex_t v) {
    return load_relaxed(distances + v) == UNVISITED;
  }

  static __device__ __forceinline__ bool take(vertex_t* distances, vertex_t v, int distance) {
    return atomicCAS(distances + v, UNVISITED, distance) == UNVISITED;
  }
};

}  // namespace persistent_bfs::claim

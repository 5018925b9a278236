// Claim by atomicMin on the distance: whoever finds the old value unvisited has discovered it.
//
// UNVISITED is the largest distance when read as unsigned, so the minimum both claims and, in
// searches where distances can improve, corrects. Cost: as compare-and-swap. Source: the visit
// function of Gunrock's BFS and SSSP (Y. Wang et al., PPoPP 2016).
#pragma once

#include "types.cuh"

namespace persistent_bfs::claim {

struct Minimum {
  static constexpr bool exact = true;  // one discoverer a vertex

  static __device__ __forceinline__ bool looks_unvisited(const vertex_t* distances, vertex_t v) {
    return load_relaxed(distances + v) == UNVISITED;
  }

  static __device__ __forceinline__ bool take(vertex_t* distances, vertex_t v, int distance) {
    unsigned* as_unsigned = reinterpret_cast<unsigned*>(distances) + v;
    return atomicMin(as_unsigned, static_cast<unsigned>(distance)) ==
           static_cast<unsigned>(UNVISITED);
  }
};

}  // namespace persistent_bfs::claim

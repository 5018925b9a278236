// A bit a vertex, 32 in a word: where it stands. Cost: a shift each. Source: common practice.
#pragma once

#include "types.cuh"

namespace persistent_bfs {

__device__ __forceinline__ unsigned word_of(vertex_t v) { return static_cast<unsigned>(v) / 32; }

__device__ __forceinline__ unsigned bit_of(vertex_t v) {
  return 1u << static_cast<unsigned>(v) % 32;
}

}  // namespace persistent_bfs

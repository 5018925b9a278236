// Who has been visited: a bit a vertex in shared memory.
#pragma once

#include "bits.cuh"
#include "clusters.cuh"
#include "shared_array.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::tier {

// All bits in one block's shared memory. Cost: n/8 bytes, and a look before an atomic.
struct BlockBits {
  SharedArray<unsigned> words;

  __device__ __forceinline__ bool look_unvisited(bool wanted, vertex_t v) const {
    return !(load_shared_relaxed_if(wanted, words.at(word_of(v)), -1) & bit_of(v));
  }

  // Whether the caller is the one to discover v.
  __device__ __forceinline__ bool claim(bool wanted, vertex_t v) const {
    return !(fetch_or_shared_if(wanted, words.at(word_of(v)), bit_of(v)) & bit_of(v));
  }

  __device__ __forceinline__ void set(bool wanted, vertex_t v) const { claim(wanted, v); }

  static __device__ __forceinline__ int words_of(vertex_t vertices) {
    return static_cast<int>((static_cast<unsigned>(vertices) + WARP_SIZE - 1) / WARP_SIZE);
  }
};

// The same, looked at by one warp alone. No look before the atomic, which delays nobody else then,
// and no branch around it, which costs a warp that is alone as much again: a lane without a vertex
// changes nothing in a word of its own.
struct WarpBits {
  SharedArray<unsigned> words;
  shared_address own;

  __device__ __forceinline__ bool look_unvisited(bool wanted, vertex_t) const { return wanted; }

  __device__ __forceinline__ bool claim(bool wanted, vertex_t v) const {
    const unsigned bit = wanted ? bit_of(v) : 0;
    return bit & ~fetch_or_shared(wanted ? words.at(word_of(v)) : own, bit);
  }
};

// Word w in the shared memory of block w mod C of a cluster of C = 2^k blocks. No look before the
// atomic: it would cost as much again. Cost: n/8C bytes a block, and a round trip between
// multiprocessors.
struct ClusterBits {
  SharedArray<unsigned> words;
  int rank;
  int log_blocks;

  __device__ __forceinline__ bool look_unvisited(bool wanted, vertex_t) const { return wanted; }

  __device__ __forceinline__ bool claim(bool wanted, vertex_t v) const {
    const unsigned word = wanted ? word_of(v) : 0;
    const int owner = static_cast<int>(word & ((1u << log_blocks) - 1u));
    const shared_address there = shared_address_in(words.at(word >> log_blocks), owner);
    return !(fetch_or_cluster_if(wanted, there, bit_of(v)) & bit_of(v));
  }

  // The same, by the block that has the bit only.
  __device__ __forceinline__ void set(bool wanted, vertex_t v) const {
    const unsigned word = word_of(v);
    const bool mine = wanted && static_cast<int>(word & ((1u << log_blocks) - 1u)) == rank;
    fetch_or_shared_if(mine, words.at(word >> log_blocks), bit_of(v));
  }

  static __device__ __forceinline__ int words_of(vertex_t vertices, int log_blocks) {
    const unsigned words = (static_cast<unsigned>(vertices) + WARP_SIZE - 1) / WARP_SIZE;
    return static_cast<int>((words + (1u << log_blocks) - 1u) >> log_blocks);
  }
};

}  // namespace persistent_bfs::tier

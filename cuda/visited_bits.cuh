// Who has been visited: a bit a vertex in shared memory, and how a tier comes to know it. Cost: below
// each; from distances, one read of all. Source: the visited bitmap is common practice.
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

  __device__ __forceinline__ int words_of(vertex_t vertices) const {
    return static_cast<int>((static_cast<unsigned>(vertices) + WARP_SIZE - 1) / WARP_SIZE);
  }

  // The vertex of the first bit of a word of this block's.
  __device__ __forceinline__ long long first_vertex(int word) const {
    return static_cast<long long>(word) * WARP_SIZE;
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

  __device__ __forceinline__ int words_of(vertex_t vertices) const {
    const unsigned words = (static_cast<unsigned>(vertices) + WARP_SIZE - 1) / WARP_SIZE;
    return static_cast<int>((words + (1u << log_blocks) - 1u) >> log_blocks);
  }

  __device__ __forceinline__ long long first_vertex(int word) const {
    return ((static_cast<long long>(word) << log_blocks) + rank) * WARP_SIZE;
  }
};

// No vertex visited; by every block of the tier, before its next barrier.
template <class Bits>
__device__ __forceinline__ void clear(const Bits& bits, vertex_t vertices) {
  const int words = bits.words_of(vertices);
  for (int word = thread_in_block(); word < words; word += blockDim.x) {
    store_shared_at(bits.words.at(word), 0);
  }
}

// The vertices queue[begin..end) are visited.
template <class Bits>
__device__ __forceinline__ void visit(const Bits& bits, const vertex_t* queue, int begin,
                                      int end) {
  for (int i = begin + thread_in_block(); i < end; i += blockDim.x) bits.set(true, queue[i]);
}

// As the distances have it.
template <class Bits>
__device__ __forceinline__ void rebuild(const Bits& bits, const int* distances,
                                        vertex_t vertices) {
  const int lane = lane_in_warp();
  const int words = bits.words_of(vertices);
  for (int word = thread_in_block() / WARP_SIZE; word < words; word += blockDim.x / WARP_SIZE) {
    const long long v = bits.first_vertex(word) + lane;
    const bool is_visited = v < vertices && load_relaxed(distances + v) != UNVISITED;
    const unsigned found = __ballot_sync(FULL_WARP, is_visited);
    if (lane == 0) store_shared_at(bits.words.at(word), static_cast<int>(found));
  }
}

}  // namespace persistent_bfs::tier

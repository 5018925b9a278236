// Dense frontiers: a bit a vertex, and the ways between bitmap and queue.
//
// Three bitmaps rotate as the totals of the frontiers do: this frontier's is read, the next one's
// grows, that of the frontier before is cleared, so that none of it needs a barrier of its own. A
// bitmap is clear whenever it becomes the next one's.
//
// Sparse to dense: every discovery of a pushed level sets its bit, by an atomic nobody waits for;
// so each frontier has its bitmap and a level may pull at once. Dense to sparse: a pulled level
// appends to no queue; a level that pushes after it compacts the bitmap as it goes, a few words a
// warp, and hands the vertices to lanes, so that no pass and no barrier is needed here either. Its
// discoveries are in the queue again. Cost: a read of n/8 bytes, and five shuffles for 32 vertices
// found. Clearing costs a store a vertex of the queue, or n/8 bytes where there is no queue or it
// is longer. A fourth bitmap holds, between pulled levels, who is left to look for a parent.
// Source: the bitmaps and conversions of S. Beamer, K. Asanovic, D. Patterson, SC 2012;
// doing both within the levels is this project's own.
#pragma once

#include "bits.cuh"
#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// As `stale`: the queue does not tell what to clear.
constexpr int WHOLE_BITMAP = -1;

template <class Parameters>
__device__ __forceinline__ int bitmap_words(const Parameters& parameters) {
  return static_cast<int>((static_cast<unsigned>(parameters.vertices) + WARP_SIZE - 1) / WARP_SIZE);
}

// Words from one bitmap to the next: whole cache lines.
template <class Parameters>
__device__ __forceinline__ int bitmap_pitch(const Parameters& parameters) {
  return (bitmap_words(parameters) + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE;
}

// Bitmap `which` of the three, or one further round. They are where the sums of an append by arcs
// would be, which needs sparse frontiers: more than 128 bytes of kernel parameters cost every
// kernel registers.
template <class Parameters>
__device__ __forceinline__ unsigned* bitmap(const Parameters& parameters, int which) {
  return reinterpret_cast<unsigned*>(parameters.part_sums) +
         static_cast<long long>(which < 3 ? which : which - 3) * bitmap_pitch(parameters);
}

// Words of the three together. Before a search none has a bit set but the first, the source's.
template <class Parameters>
__device__ __forceinline__ unsigned rotating_words(const Parameters& parameters) {
  return 3u * bitmap_pitch(parameters);
}

// The frontier's own.
template <class Parameters>
__device__ __forceinline__ const unsigned* bits_of(const Parameters& parameters,
                                                   const Frontier& frontier) {
  return bitmap(parameters, frontier.bitmap);
}

// The one the next frontier grows in: clear when the level begins.
template <class Parameters>
__device__ __forceinline__ unsigned* next_bits(const Parameters& parameters,
                                               const Frontier& frontier) {
  return bitmap(parameters, frontier.bitmap + 1);
}

// Between pulled levels: who has an arc to it and has not been visited.
template <class Parameters>
__device__ __forceinline__ unsigned* unvisited_bits(const Parameters& parameters) {
  return bitmap(parameters, 0) + 3ll * bitmap_pitch(parameters);
}

__device__ __forceinline__ bool has_bit(const unsigned* bits, vertex_t v) {
  return (bits[word_of(v)] & bit_of(v)) != 0;
}

__device__ __forceinline__ void set_bit(unsigned* bits, vertex_t v) {
  atomicOr(bits + word_of(v), bit_of(v));
}

// Several threads may clear one word.
__device__ __forceinline__ void clear_word(unsigned* word) {
  store_relaxed(reinterpret_cast<int*>(word), 0);
}

// Whether the frontier's vertices are in the queue.
template <class Policy>
__device__ __forceinline__ bool in_queue(const Frontier& frontier) {
  return !Policy::dense || !frontier.pulling;
}

// Tells a frontier which of the three bitmaps is its own.
template <class Policy>
__device__ __forceinline__ void place_bitmap(Frontier& frontier, int which, int stale) {
  if constexpr (Policy::dense) {
    frontier.bitmap = which;
    frontier.stale = stale;
  }
}

// What of this frontier's bitmap the next level has to clear: its vertices, by the queue.
template <class Policy>
__device__ __forceinline__ int stale_after(const Frontier& frontier) {
  return in_queue<Policy>(frontier) ? frontier.size : WHOLE_BITMAP;
}

// Clears the bitmap of the frontier before, by all threads of the grid.
template <class Policy>
__device__ __forceinline__ void clear_stale(const typename Policy::Parameters& parameters,
                                            const Frontier& frontier,
                                            const Workers& workers) {
  if constexpr (Policy::dense) {
    unsigned* const before = bitmap(parameters, frontier.bitmap + 2);
    const int words = bitmap_words(parameters);
    const unsigned threads = workers.threads();
    if (frontier.stale == WHOLE_BITMAP || frontier.stale > words) {
      const unsigned size = words;
      for (unsigned word = workers.thread(); word < size; word += threads) before[word] = 0;
    } else {
      const vertex_t* const previous = frontier.vertices - frontier.stale;
      const unsigned size = frontier.stale;
      for (unsigned i = workers.thread(); i < size; i += threads) {
        clear_word(before + word_of(previous[i]));
      }
    }
  }
}

// The place of set bit number `rank` of a word that has so many.
__device__ __forceinline__ int place_of_bit(unsigned word, int rank) {
  int place = 0;
#pragma unroll
  for (int half = WARP_SIZE / 2; half > 0; half /= 2) {
    const int below = __popc(word >> place & ((1u << half) - 1u));
    if (rank >= below) {
      rank -= below;
      place += half;
    }
  }
  return place;
}

// Calls work(place) by a whole warp for all bits that are set in its lanes' words, up to 32 at a
// time, a lane each: 32 x lane + bit, or -1 where there are fewer.
template <class Work>
__device__ __forceinline__ void each_bit(unsigned word, int lane, Work work) {
  const int through = static_cast<int>(warp_inclusive_sum(__popc(word), lane));
  const int total = __shfl_sync(FULL_WARP, through, WARP_SIZE - 1);
  for (int begin = 0; begin < total; begin += WARP_SIZE) {
    const int rank = begin + lane;
    // The first lane whose words reach beyond this rank.
    int owner = 0;
#pragma unroll
    for (int half = WARP_SIZE / 2; half > 0; half /= 2) {
      if (__shfl_sync(FULL_WARP, through, owner + half - 1) <= rank) owner += half;
    }
    const unsigned its_word = __shfl_sync(FULL_WARP, word, owner);
    const int before = __shfl_sync(FULL_WARP, through, owner) - __popc(its_word);
    work(rank < total ? owner * WARP_SIZE + place_of_bit(its_word, rank - before) : -1);
  }
}

// Calls work(vertex) by whole warps for all vertices of a bitmap, up to 32 at a time, a lane each;
// NO_VERTEX where there are fewer. Each warp has some words of it, far apart so that vertices close
// together are not one warp's, and compacts what it finds there.
template <class Work>
__device__ __forceinline__ void each_member(const unsigned* bits, int words,
                                            const Workers& workers, Work work) {
  for (long long first = workers.warp; first < words;
       first += static_cast<long long>(workers.warps) * WARP_SIZE) {
    const long long mine = first + static_cast<long long>(workers.warps) * workers.lane;
    const unsigned word = mine < words ? bits[mine] : 0;
    if (!__any_sync(FULL_WARP, word != 0)) continue;
    each_bit(word, workers.lane, [&](int place) {
      const int its_word = static_cast<int>(first) + place / WARP_SIZE * workers.warps;
      work(place < 0 ? NO_VERTEX : its_word * WARP_SIZE + place % WARP_SIZE);
    });
  }
}

}  // namespace persistent_bfs

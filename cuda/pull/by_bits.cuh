// A pulled level where frontiers are bitmaps: so are the vertices left to look for a parent.
//
// A warp takes up to eight words of every bitmap, 32 vertices in a row each; the words are far
// apart, since vertices close together are often alike, and one warp must not have all the hard
// ones. Each vertex that is left looks at its likely parent first, a warp's eight loads a lane in
// flight together; those that were not lucky are handed to the lanes anew, so that none idles, and
// go along their rows. Nobody else looks after these words, so they are written whole, and there is
// no claim to win. Who is
// left is told by the distances after a pushed level, and by their own bitmap after a pulled one;
// vertices without an arc to them are dropped there at once.
// Cost: a read of n/8 bytes (4n after a pushed level), 4 bytes and a test of a bit for each vertex
// that is left, the rows of those whose likely parent is not in the frontier, and one atomic a
// block. The discoveries' edges are not counted: that would take two more reads of each. Source:
// the bitmaps of S. Beamer, K. Asanovic, D. Patterson, "Direction-Optimizing Breadth-First Search",
// SC 2012.
#pragma once

#include "dense.cuh"
#include "frontier.cuh"
#include "pull/likely_parents.cuh"
#include "pull/parent_search.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::pull {

template <class Policy>
class ByBits {
 public:
  using Parameters = typename Policy::Parameters;

  // As Push::expand; the edges are those looked at.
  static __device__ __forceinline__ unsigned long long expand(const Parameters& parameters,
                                                              const Frontier& frontier,
                                                              const NextFrontier& next,
                                                              const Workers& workers) {
    const Members members{bits_of(parameters, frontier)};
    ParentSearch<Policy, Members> search(parameters, members, workers.lane);
    ByBits level(parameters, frontier, members, search, workers);
    const int words = bitmap_words(parameters);
    for (long long first = workers.warp; first < words;
         first += static_cast<long long>(workers.warps) * WORDS) {
      level.look(static_cast<int>(first), words);
    }
    search.finish([&](vertex_t v, vertex_t parent) { level.enter_late(v, parent); });
    level.finish(next);
    return search.edges() + level.edges_;
  }

 private:
  static constexpr int WORDS = 8;  // of each bitmap, a warp at a time
  static constexpr int WARPS = Policy::block_threads / WARP_SIZE;

  struct Members {
    const unsigned* bits;

    __device__ __forceinline__ bool contains(vertex_t v) const { return has_bit(bits, v); }
  };

  using Search = ParentSearch<Policy, Members>;

  struct Shared {
    unsigned discovered[WARPS][WORDS];
    int found[WARPS];
  };

  __device__ __forceinline__ ByBits(const Parameters& parameters, const Frontier& frontier,
                                    const Members& members, Search& search,
                                    const Workers& workers)
      : parameters_(parameters),
        frontier_(frontier),
        members_(members),
        search_(search),
        grows_(next_bits(parameters, frontier)),
        left_(unvisited_bits(parameters)),
        lane_(workers.lane),
        apart_(workers.warps) {
    __shared__ Shared memory;
    shared_ = &memory;
  }

  // By a whole warp: the vertices of WORDS words, of which the first has number `first`.
  __device__ __forceinline__ void look(int first, int words) {
    const long long mine = first + static_cast<long long>(apart_) * lane_;
    const bool has_word = lane_ < WORDS && mine < words;
    const unsigned before =
        frontier_.pulling ? (has_word ? left_[mine] : 0) : words_by_distances(first);
    if (!__any_sync(FULL_WARP, before != 0)) {
      if (!frontier_.pulling && has_word) left_[mine] = 0;
      return;
    }
    unsigned discovered = 0;
    unsigned after = look_at_likely_parents(first, before, discovered);
    if (__any_sync(FULL_WARP, after != 0)) {
      unsigned* const words_found = shared_->discovered[threadIdx.x / WARP_SIZE];
      if (lane_ < WORDS) words_found[lane_] = 0;
      __syncwarp();
      each_bit(after, lane_, [&](int place) {
        const vertex_t v = place < 0 ? NO_VERTEX : vertex(first, place / WARP_SIZE, place);
        const vertex_t parent = search_.find(v);
        if (parent == NO_PREDECESSOR) return;
        enter(v, parent);
        atomicOr(words_found + place / WARP_SIZE, 1u << place % WARP_SIZE);
      });
      __syncwarp();
      const unsigned found = lane_ < WORDS ? words_found[lane_] : 0;
      discovered |= found;
      after &= ~found;
      __syncwarp();
    }
    if (discovered != 0) grows_[mine] = discovered;
    if (has_word && (after != before || !frontier_.pulling)) left_[mine] = after;
    found_ += __popc(discovered);
  }

  // Bit `bit` of the word that is `i` after the warp's first.
  __device__ __forceinline__ vertex_t vertex(int first, int i, int bit) const {
    return (first + i * apart_) * WARP_SIZE + bit % WARP_SIZE;
  }

  // Who is left of the vertices of WORDS words, a word a lane.
  __device__ __forceinline__ unsigned words_by_distances(int first) const {
    int distances[WORDS];
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      const long long v = (first + static_cast<long long>(apart_) * i) * WARP_SIZE + lane_;
      distances[i] = v < parameters_.vertices ? load_relaxed(parameters_.distances + v) : 0;
    }
    unsigned mine = 0;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      const unsigned word = __ballot_sync(FULL_WARP, distances[i] == UNVISITED);
      if (lane_ == i) mine = word;
    }
    return mine;
  }

  // Of those in `before`, a word a lane, who is still left; `discovered` gets the others but for
  // those that have no arc.
  __device__ __forceinline__ unsigned look_at_likely_parents(int first, unsigned before,
                                                             unsigned& discovered) {
    vertex_t parents[WORDS];
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      const bool looks = __shfl_sync(FULL_WARP, before, i) >> lane_ & 1u;
      parents[i] =
          looks ? likely_parent(parameters_, vertex(first, i, lane_)) : NO_PREDECESSOR;
    }
    if (lane_ == 0) count_lane_slots(WORDS * WARP_SIZE);
    unsigned after = 0;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      const bool looks = parents[i] != NO_PREDECESSOR;
      const bool found = looks && members_.contains(parents[i]);
      edges_ += looks;
      const unsigned entered = __ballot_sync(FULL_WARP, found);
      const unsigned looked = __ballot_sync(FULL_WARP, looks);
      if (lane_ == i) {
        discovered = entered;
        after = looked & ~entered;
      }
    }
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      const unsigned entered = __shfl_sync(FULL_WARP, discovered, i);
      if (entered >> lane_ & 1u) enter(vertex(first, i, lane_), parents[i]);
    }
    return after;
  }

  __device__ __forceinline__ void enter(vertex_t v, vertex_t parent) const {
    parameters_.distances[v] = frontier_.depth + 1;
    if constexpr (Policy::predecessors) parameters_.predecessors[v] = parent;
  }

  // As `enter`, where the words have been written.
  __device__ __forceinline__ void enter_late(vertex_t v, vertex_t parent) {
    if (parent == NO_PREDECESSOR) return;
    enter(v, parent);
    set_bit(grows_, v);
    atomicAnd(left_ + word_of(v), ~bit_of(v));
    ++found_;
  }

  // By the whole block, when the level ends. A device-wide barrier lies between this and the next
  // time, so that what is shared is read before it is written again.
  __device__ __forceinline__ void finish(const NextFrontier& next) {
    const int warp = threadIdx.x / WARP_SIZE;
    const int of_warp = warp_add(found_);
    if (lane_ == 0) shared_->found[warp] = of_warp;
    __syncthreads();
    if (warp > 0) return;
    const int of_block = warp_add(lane_ < WARPS ? shared_->found[lane_] : 0);
    if (lane_ == 0 && of_block != 0) next.reserve(FrontierCount::pack(of_block, 0));
  }

  const Parameters& parameters_;
  const Frontier& frontier_;
  const Members& members_;
  Search& search_;
  unsigned* const grows_;
  unsigned* const left_;
  const int lane_;
  const int apart_;  // words from one of the warp's to the next
  Shared* shared_;
  int found_ = 0;
  unsigned long long edges_ = 0;
};

}  // namespace persistent_bfs::pull

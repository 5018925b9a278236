// A pulled level where frontiers are bitmaps: so are the vertices left to look for a parent.
//
// A warp takes up to 32 words of every bitmap, 32 vertices in a row each. They come in runs, which
// memory reads and writes as one sector each; the runs are far apart, since vertices close together
// are often alike, and one warp must not have all the hard ones, unless so few are left that the
// words themselves are the work. Each vertex that is left looks at its likely parent first, eight
// loads a lane in flight together; then those that were not lucky are handed to the lanes anew, so
// that none idles, and go along their rows. Nobody else looks after these words, so they are
// written whole, and there is no claim to win. Who is left is told by the distances after a pushed
// level, and by a bitmap of their own after a pulled one; vertices without an arc to them are
// dropped there at once.
// Cost: a read of n/8 bytes (4n after a pushed level), 4 bytes and a test of a bit for each vertex
// that is left, the rows of those whose likely parent is not in the frontier, and two atomics a
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
    // Numbers of words, even of some beyond the last, are far from the largest int.
    const int begin = level.apart_ == 1 ? workers.warp * RUNS : workers.warp;
    for (int first = begin; first * RUN < words; first += workers.warps * RUNS) {
      level.look(first, words);
    }
    search.finish([&](vertex_t v, vertex_t parent) { level.enter_late(v, parent); });
    level.finish(next);
    return search.edges();
  }

 private:
  static constexpr int WORDS = WARP_SIZE;    // of each bitmap, a warp at a time, one a lane
  static constexpr int RUN = 8;              // of these side by side
  static constexpr int RUNS = WORDS / RUN;
  static constexpr int BATCH = 8;            // of those whose likely parents are looked at together
  static constexpr int FEW = 4 * WARP_SIZE;  // vertices in a warp's words
  static constexpr int WARPS = Policy::block_threads / WARP_SIZE;

  struct Members {
    const unsigned* bits;

    __device__ __forceinline__ bool contains(vertex_t v) const { return has_bit(bits, v); }
  };

  using Search = ParentSearch<Policy, Members>;

  struct Shared {
    unsigned discovered[WARPS][WORDS];
    int found[WARPS];
    int left[WARPS];
  };

  __device__ __forceinline__ ByBits(const Parameters& parameters, const Frontier& frontier,
                                    const Members& members, Search& search,
                                    const Workers& workers)
      : parameters_(parameters),
        frontier_(frontier),
        members_(members),
        search_(search),
        lane_(workers.lane),
        apart_(frontier.pulling && frontier.left < parameters.vertices / WARP_SIZE
                   ? 1
                   : workers.warps) {
    __shared__ Shared memory;
    shared_ = &memory;
    if (lane_ == 0) shared_->found[warp()] = shared_->left[warp()] = 0;
  }

  static __device__ __forceinline__ int warp() { return threadIdx.x / WARP_SIZE; }

  // By a whole warp: the vertices of WORDS words, of which the first run has number `first`.
  __device__ __forceinline__ void look(int first, int words) {
    const int mine = word(first, lane_);
    const bool has_word = mine < words;
    // A word a lane: who was left, who has been discovered, and who is left of those with an arc.
    const unsigned before = has_word && frontier_.pulling ? left()[mine] : 0;
    unsigned discovered = 0;
    unsigned after = before;
    // Where only some are left, they are handed to the lanes at once.
    const bool few = frontier_.pulling && warp_add(__popc(before)) <= FEW;
    if (!few) {
      after = 0;
#pragma unroll 1
      for (int i = 0; i < WORDS && word(first, i) < words; i += BATCH) {
        if (frontier_.pulling) {
          look_at_likely_parents<false>(first, i, before, discovered, after);
        } else {
          look_at_likely_parents<true>(first, i, before, discovered, after);
        }
      }
    }
    if (__any_sync(FULL_WARP, after != 0)) {
      unsigned* const words_found = shared_->discovered[warp()];
      words_found[lane_] = 0;
      __syncwarp();
      each_bit(after, lane_, [&](int place) {
        const vertex_t v =
            place < 0 ? NO_VERTEX
                      : static_cast<vertex_t>(vertex(first, place / WARP_SIZE, place));
        vertex_t parent = NO_PREDECESSOR;
        if (few && v != NO_VERTEX) {
          const vertex_t likely = likely_parent(parameters_, v);
          search_.count_looks(1);
          if (members_.contains(likely)) parent = likely;
        }
        parent = search_.find(v, parent);
        if (parent == NO_PREDECESSOR) return;
        enter(v, parent);
        atomicOr(words_found + place / WARP_SIZE, 1u << place % WARP_SIZE);
      });
      __syncwarp();
      const unsigned found = words_found[lane_];
      discovered |= found;
      after &= ~found;
      __syncwarp();
    }
    if (discovered != 0) grows()[mine] = discovered;
    if (has_word && (!frontier_.pulling || after != before)) left()[mine] = after;
    count(__popc(discovered), __popc(after));
  }

  // By a whole warp: more that its lanes found, and more that are left, beside those before.
  __device__ __forceinline__ void count(int found, int left) const {
    const int all_found = warp_add(found);
    const int all_left = warp_add(left);
    if (lane_ == 0) {
      shared_->found[warp()] += all_found;
      shared_->left[warp()] += all_left;
    }
  }

  // Not kept: registers are dear.
  __device__ __forceinline__ unsigned* grows() const { return next_bits(parameters_, frontier_); }
  __device__ __forceinline__ unsigned* left() const { return unvisited_bits(parameters_); }

  // The number of the warp's word `i`.
  __device__ __forceinline__ int word(int first, int i) const {
    return (first + i / RUN * apart_) * RUN + i % RUN;
  }

  // Bit `bit` of the warp's word `i`.
  __device__ __forceinline__ unsigned vertex(int first, int i, int bit) const {
    return static_cast<unsigned>(word(first, i)) * WARP_SIZE + bit % WARP_SIZE;
  }

  // The vertices of BATCH words from the warp's word `begin` on. Their words of `discovered` and
  // `after` are filled in; whoever has no arc is in neither. Where the distances tell who is left,
  // they are asked while the likely parents are on their way; and all who are unvisited are given
  // their predecessor or none, which is memory's whole sectors, and spares the reset.
  template <bool by_distances>
  __device__ __forceinline__ void look_at_likely_parents(int first, int begin, unsigned before,
                                                         unsigned& discovered, unsigned& after) {
    vertex_t parents[BATCH];
    int distances[BATCH];
    unsigned unvisited = 0;  // a bit for each of this lane's vertices
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      const unsigned v = vertex(first, begin + i, lane_);
      const bool looks = by_distances ? v < static_cast<unsigned>(parameters_.vertices)
                                      : __shfl_sync(FULL_WARP, before, begin + i) >> lane_ & 1u;
      if constexpr (by_distances) {
        distances[i] = looks ? load_relaxed(parameters_.distances + v) : 0;
      }
      parents[i] = looks ? likely_parent(parameters_, v) : NO_PREDECESSOR;
    }
    if (lane_ == 0) count_lane_slots(BATCH * WARP_SIZE);
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      if constexpr (by_distances) {
        if (distances[i] != UNVISITED) parents[i] = NO_PREDECESSOR;
        unvisited |= static_cast<unsigned>(distances[i] == UNVISITED) << i;
      }
      const bool looks = parents[i] != NO_PREDECESSOR;
      const bool found = looks && members_.contains(parents[i]);
      search_.count_looks(looks);
      const unsigned entered = __ballot_sync(FULL_WARP, found);
      const unsigned looked = __ballot_sync(FULL_WARP, looks);
      if (lane_ == begin + i) {
        discovered = entered;
        after = looked & ~entered;
      }
      if (!found) parents[i] = NO_PREDECESSOR;
    }
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      const unsigned v = vertex(first, begin + i, lane_);
      if (parents[i] != NO_PREDECESSOR) parameters_.distances[v] = frontier_.depth + 1;
      if constexpr (Policy::predecessors) {
        const bool writes = by_distances ? unvisited >> i & 1u : parents[i] != NO_PREDECESSOR;
        if (writes) store_streaming(parameters_.predecessors + v, parents[i]);
      }
    }
  }

  __device__ __forceinline__ void enter(vertex_t v, vertex_t parent) const {
    parameters_.distances[v] = frontier_.depth + 1;
    if constexpr (Policy::predecessors) store_streaming(parameters_.predecessors + v, parent);
  }

  // As `enter`, by a whole warp, where the words have been written.
  __device__ __forceinline__ void enter_late(vertex_t v, vertex_t parent) const {
    const bool found = parent != NO_PREDECESSOR;
    if (found) {
      enter(v, parent);
      set_bit(grows(), v);
      atomicAnd(left() + word_of(v), ~bit_of(v));
    }
    count(found, -static_cast<int>(found));
  }

  // By the whole block, when the level ends. A device-wide barrier lies between this and the next
  // time, so that what is shared is read before it is written again.
  __device__ __forceinline__ void finish(const NextFrontier& next) const {
    __syncthreads();
    if (warp() > 0) return;
    const int all_found = warp_add(lane_ < WARPS ? shared_->found[lane_] : 0);
    const int all_left = warp_add(lane_ < WARPS ? shared_->left[lane_] : 0);
    if (lane_ == 0 && all_found != 0) next.reserve(FrontierCount::pack(all_found, 0));
    if (lane_ == 0 && all_left != 0) atomicAdd(&next.totals->left, all_left);
  }

  const Parameters& parameters_;
  const Frontier& frontier_;
  const Members& members_;
  Search& search_;
  const int lane_;
  const int apart_;  // runs from one of the warp's to the next
  Shared* shared_;
};

}  // namespace persistent_bfs::pull

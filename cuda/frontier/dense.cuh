// Dense frontier: a bitmap of the vertices, beside which pushed levels keep their queue.
//
// Neighbours are looked for in n/8 bytes, which stay near the multiprocessor, instead of 4n; and a
// pulled level appends to no queue: the warp that looks after 32 vertices in a row writes their
// word of the next frontier's bitmap, without an atomic, and counts it. Cost: a barrier of the
// block and one atomic a block and pulled level; an atomic that nobody waits for a discovery of a
// pushed level; the clearing and the way back to queues as dense.cuh says. Source: the bitmaps of
// S. Beamer, K. Asanovic, D. Patterson, "Direction-Optimizing Breadth-First Search", SC 2012.
#pragma once

#include "dense.cuh"
#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::frontier {

struct Dense {
  static constexpr bool dense = true;

  // What a pulled level asks of its frontier and does with its discoveries.
  template <class Policy>
  struct Pulled {
    static constexpr int WARPS = Policy::block_threads / WARP_SIZE;

    const typename Policy::Parameters& parameters;
    const unsigned* here;
    unsigned* grows;
    NextFrontier next;
    int lane;
    // Of this lane's discoveries, as in FrontierCount.
    unsigned long long found = 0;
    int largest_degree = 0;

    __device__ __forceinline__ Pulled(const typename Policy::Parameters& parameters_,
                                      const Frontier& frontier, const NextFrontier& next_,
                                      int lane_)
        : parameters(parameters_),
          here(bits_of(parameters_, frontier)),
          grows(next_bits(parameters_, frontier)),
          next(next_),
          lane(lane_) {}

    __device__ __forceinline__ bool contains(vertex_t v) const { return has_bit(here, v); }

    // By whole warps that have 32 vertices in a row; `in_degree` is that of the lane's.
    __device__ __forceinline__ void enter(vertex_t v, bool discovered, int in_degree) {
      const unsigned word = __ballot_sync(FULL_WARP, discovered);
      if (word == 0) return;
      if (lane == 0) grows[word_of(v)] = word;
      if constexpr (Policy::counts_edges) {
        if (!discovered) return;
        // Rows of a graph that is its own transpose have been read already.
        const bool undirected = parameters.in_row_offsets == parameters.row_offsets;
        const int degree = undirected ? in_degree : degree_of(parameters, v);
        found += FrontierCount::pack(1, degree);
        largest_degree = degree > largest_degree ? degree : largest_degree;
      } else if (lane == 0) {
        found += FrontierCount::pack(__popc(word), 0);
      }
    }

    // By the whole block, when the level ends. A device-wide barrier lies between this and the next
    // time, so that what is shared is read before it is written again.
    __device__ __forceinline__ void finish() {
      __shared__ unsigned long long found_by[WARPS];
      __shared__ int largest_by[WARPS];
      const int warp = threadIdx.x / WARP_SIZE;
      const unsigned long long of_warp = warp_sum(found);
      const int largest = Policy::counts_edges ? warp_max(largest_degree) : 0;
      if (lane == 0) {
        found_by[warp] = of_warp;
        largest_by[warp] = largest;
      }
      __syncthreads();
      if (warp > 0) return;
      const unsigned long long of_block = warp_sum(lane < WARPS ? found_by[lane] : 0);
      if (lane == 0 && of_block != 0) next.reserve(of_block);
      if constexpr (Policy::counts_edges) {
        const int of_all = warp_max(lane < WARPS ? largest_by[lane] : 0);
        if (lane == 0) next.note_degree(of_all);
      }
    }
  };
};

}  // namespace persistent_bfs::frontier

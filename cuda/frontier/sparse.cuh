// Sparse frontier: a queue of its vertices, and nothing else.
//
// Cost: an append a discovery. A pulled level has no queue to look into: it sees by the distances
// who is in the frontier, 4 bytes a test. Source: the queue of D. Kirk, W. Hwu, "Programming
// Massively Parallel Processors", chapter on graph traversal.
#pragma once

#include "frontier.cuh"
#include "types.cuh"

namespace persistent_bfs::frontier {

struct Sparse {
  static constexpr bool dense = false;

  // What a pulled level asks of its frontier and does with its discoveries.
  template <class Policy>
  struct Pulled {
    const typename Policy::Parameters& parameters;
    int depth;
    typename Policy::template Append<Policy> append;

    __device__ __forceinline__ Pulled(const typename Policy::Parameters& parameters_,
                                      const Frontier& frontier, const NextFrontier& next, int lane)
        : parameters(parameters_), depth(frontier.depth), append{parameters_, next, lane} {}

    __device__ __forceinline__ bool contains(vertex_t v) const {
      return load_relaxed(parameters.distances + v) == depth;
    }

    // By whole warps that have 32 vertices in a row; `in_degree` is that of the lane's.
    __device__ __forceinline__ void enter(vertex_t v, bool discovered, int) {
      const vertex_t batch[1] = {v};
      append.push(batch, discovered);
    }

    // By the whole block, when the level ends.
    __device__ __forceinline__ void finish() { append.finish(); }
  };
};

}  // namespace persistent_bfs::frontier

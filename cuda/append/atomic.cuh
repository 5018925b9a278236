// Append with one atomic a discovery, on the one counter of the next frontier.
//
// Cost: as many atomics to one address as vertices are discovered; L2 serialises them. The
// baseline that the aggregated appends are measured against.
#pragma once

#include "frontier.cuh"

namespace persistent_bfs::append {

template <class Policy>
struct Atomic {
  const typename Policy::Parameters& parameters;
  NextFrontier next;
  int lane;

  template <int N>
  __device__ __forceinline__ void push(const vertex_t (&neighbours)[N], unsigned discovered) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (discovered >> i & 1u) push_one(neighbours[i]);
    }
  }

  __device__ __forceinline__ void finish() {}

 private:
  __device__ __forceinline__ void push_one(vertex_t v) {
    const unsigned edges = Policy::counts_edges ? degree_of(parameters, v) : 0;
    if constexpr (Policy::counts_edges) next.note_degree(edges);
    const FrontierCount before = next.reserve(FrontierCount::pack(1, edges));
    const int slot = before.vertices();
    if (slot < next.capacity) {
      next.vertices[slot] = v;
      if constexpr (Policy::counts_edges) next.edge_begin[slot] = before.edges();
    }
  }
};

}  // namespace persistent_bfs::append

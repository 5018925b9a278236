// Append through a queue in shared memory: a block collects its discoveries and reserves their
// slots with one atomic when the level ends.
//
// The queue spills when it is full: what finds no room goes straight to the global frontier, so
// nothing is ever dropped. Cost: a shared-memory atomic a discovery, two block barriers a level,
// one global atomic a block. Source: the privatised queue of D. Kirk, W. Hwu, "Programming
// Massively Parallel Processors", chapter on graph traversal; after L. Luo, M. Wong, W. Hwu, DAC
// 2010.
#pragma once

#include "frontier.cuh"

namespace persistent_bfs::append {

template <class Policy>
struct Block {
  static constexpr unsigned CAPACITY = Policy::block_queue;

  struct Shared {
    unsigned long long count;
    unsigned long long reserved;
    vertex_t vertices[CAPACITY];
    unsigned edge_begin[Policy::counts_edges ? CAPACITY : 1];
  };

  const typename Policy::Parameters& parameters;
  NextFrontier next;
  int lane;
  Shared* shared;

  __device__ __forceinline__ Block(const typename Policy::Parameters& parameters_,
                                   const NextFrontier& next_, int lane_)
      : parameters(parameters_), next(next_), lane(lane_) {
    __shared__ Shared queue;
    shared = &queue;
    if (threadIdx.x == 0) shared->count = 0;
    __syncthreads();
  }

  template <int N>
  __device__ __forceinline__ void push(const vertex_t (&neighbours)[N], unsigned discovered) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (discovered >> i & 1u) push_one(neighbours[i]);
    }
  }

  // By the whole block, when the level ends.
  __device__ __forceinline__ void finish() {
    __syncthreads();
    const FrontierCount collected{shared->count};
    if (collected.vertices() == 0) return;
    if (threadIdx.x == 0) shared->reserved = next.reserve(collected.packed).packed;
    __syncthreads();
    const FrontierCount first{shared->reserved};
    for (unsigned i = threadIdx.x; i < collected.vertices(); i += blockDim.x) {
      store(first.vertices() + i, shared->vertices[i],
            Policy::counts_edges ? first.edges() + shared->edge_begin[i] : 0);
    }
    __syncthreads();  // the queue is read to its end before the next level clears it
  }

 private:
  __device__ __forceinline__ void push_one(vertex_t v) {
    const unsigned edges = Policy::counts_edges ? degree_of(parameters, v) : 0;
    if constexpr (Policy::counts_edges) next.note_degree(edges);
    const unsigned long long one = FrontierCount::pack(1, edges);
    const FrontierCount before{atomicAdd(&shared->count, one)};
    if (before.vertices() < CAPACITY) {
      shared->vertices[before.vertices()] = v;
      if constexpr (Policy::counts_edges) shared->edge_begin[before.vertices()] = before.edges();
      return;
    }
    // Full: take this one's place back and reserve a global one.
    atomicAdd(&shared->count, -one);
    const FrontierCount global = next.reserve(one);
    store(global.vertices(), v, global.edges());
  }

  __device__ __forceinline__ void store(unsigned slot, vertex_t v, unsigned edge) {
    if (slot >= static_cast<unsigned>(next.capacity)) return;
    next.vertices[slot] = v;
    if constexpr (Policy::counts_edges) next.edge_begin[slot] = edge;
  }
};

}  // namespace persistent_bfs::append

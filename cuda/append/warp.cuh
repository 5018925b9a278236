// Append with one atomic a warp: the warp counts its discoveries, lane 0 reserves their slots.
//
// All 32 lanes must call together. Cost: a ballot for each neighbour of the batch and, if any lane
// discovered a vertex, one atomic and one shuffle; where edges are counted, a scan over the lanes
// instead of the ballots, and a read of each discovered vertex's degree. Source: A. Adinets, "CUDA
// Pro Tip: Optimized Filtering with Warp-Aggregated Atomics", 2014.
#pragma once

#include "frontier.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::append {

template <class Policy>
struct Warp {
  const typename Policy::Parameters& parameters;
  NextFrontier next;
  int lane;

  // Bit i of `discovered` says that this lane discovered neighbours[i].
  template <int N>
  __device__ __forceinline__ void push(const vertex_t (&neighbours)[N], unsigned discovered) {
    if constexpr (Policy::counts_edges) {
      push_counting(neighbours, discovered);
    } else {
      push_plain(neighbours, discovered);
    }
  }

  __device__ __forceinline__ void finish() {}

 private:
  template <int N>
  __device__ __forceinline__ void push_plain(const vertex_t (&neighbours)[N],
                                             unsigned discovered) {
    unsigned ballots[N];
    int total = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      ballots[i] = __ballot_sync(FULL_WARP, discovered >> i & 1u);
      total += __popc(ballots[i]);
    }
    if (total == 0) return;
    int slot = 0;
    if (lane == 0) slot = next.reserve(total).vertices();
    slot = __shfl_sync(FULL_WARP, slot, 0);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int mine = slot + lanes_below(ballots[i], lane);
      if ((discovered >> i & 1u) && mine < next.capacity) next.vertices[mine] = neighbours[i];
      slot += __popc(ballots[i]);
    }
  }

  template <int N>
  __device__ __forceinline__ void push_counting(const vertex_t (&neighbours)[N],
                                                unsigned discovered) {
    if (!__any_sync(FULL_WARP, discovered)) return;
    int degrees[N];
    unsigned edges = 0;
    int largest = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      degrees[i] = discovered >> i & 1u ? degree_of(parameters, neighbours[i]) : 0;
      edges += degrees[i];
      largest = degrees[i] > largest ? degrees[i] : largest;
    }
    next.note_degrees(largest, lane);
    const unsigned long long mine = FrontierCount::pack(__popc(discovered), edges);
    const unsigned long long before_and_mine = warp_inclusive_sum(mine, lane);
    unsigned long long reserved = 0;
    if (lane == WARP_SIZE - 1) reserved = next.reserve(before_and_mine).packed;
    reserved = __shfl_sync(FULL_WARP, reserved, WARP_SIZE - 1);
    const FrontierCount first{reserved + before_and_mine - mine};
    int slot = first.vertices();
    unsigned edge = first.edges();
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (discovered >> i & 1u) {
        if (slot < next.capacity) {
          next.vertices[slot] = neighbours[i];
          next.edge_begin[slot] = edge;
        }
        ++slot;
        edge += degrees[i];
      }
    }
  }
};

}  // namespace persistent_bfs::append

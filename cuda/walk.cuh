// The isolated level walk: the neighbours of one frontier are read and added up, nothing else.
//
// What a mapping costs where handing arcs to threads is all it does: no claim, no append, no test
// of a neighbour. The mapping is the searches' own, unchanged; its visit adds up. The frontier is
// walked `repeats` times in one launch, and in walk r an arc u -> v adds (v XOR r) to the
// accumulator of u, modulo 2^32: the order of additions is free, yet an arc left out of a single
// walk leaves a wrong value, so that a shortened walk is wrong rather than fast.
//
// `walk_level` is the one to time. Several lanes and warps may share a vertex and a lane has many,
// so keeping the accumulators apart costs as much again as the walk (up to 2.6 times its time on an
// H200). It keeps one register a lane instead, over all vertices and walks, of the accumulators
// weighted by 2u + 1: an addition and a multiplication an arc, and one atomic a warp when all
// walks are done. As the weights are odd, no single wrong accumulator can leave the checksum right.
//
// `walk_level_by_vertex` is the same walk with every accumulator in memory, so that a wrong one can
// be named. A lane holds its vertex's sum in a register until it meets another vertex; then the
// warp adds up runs of lanes of one vertex by shuffles, and one lane a run adds to memory.
#pragma once

#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// What the host tells one launch; persistent_bfs/expand.py mirrors it.
struct WalkArguments {
  unsigned* sums;      // the accumulator of every vertex
  unsigned* checksum;  // of all of them
  long long moved;     // how far col_indices moves between walks: 0, unknown to the compiler
  int repeats;
  int level;
  unsigned frontier_size;
  unsigned frontier_edges;
  int largest_degree;
  int reserved;
};

// A visit that adds all arcs into one sum a lane, weighted by their near ends.
struct WeightedSum {
  unsigned repeat = 0;
  unsigned sum = 0;

  template <int N>
  __device__ __forceinline__ void operator()(const vertex_t (&sources)[N],
                                             const vertex_t (&neighbours)[N], unsigned valid,
                                             Places) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const unsigned weight = 2u * static_cast<unsigned>(sources[i]) + 1u;
      if (valid >> i & 1u) sum += weight * (static_cast<unsigned>(neighbours[i]) ^ repeat);
    }
  }
};

// A visit, called as a search's by whole warps, that keeps the near ends apart.
struct SumByVertex {
  unsigned* sums;
  int lane;
  unsigned repeat = 0;
  vertex_t source = -1;  // none yet
  unsigned sum = 0;      // of `source`, not in memory yet

  template <int N>
  __device__ __forceinline__ void operator()(const vertex_t (&sources)[N],
                                             const vertex_t (&neighbours)[N], unsigned valid,
                                             Places) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const bool mine = valid >> i & 1u;
      const bool moves_on = mine && sources[i] != source;
      if (__any_sync(FULL_WARP, moves_on)) flush();
      if (moves_on) source = sources[i];
      if (mine) sum += static_cast<unsigned>(neighbours[i]) ^ repeat;
    }
  }

  // By the whole warp: what the lanes hold goes to memory, lanes of one vertex together.
  __device__ __forceinline__ void flush() {
    const vertex_t below = __shfl_up_sync(FULL_WARP, source, 1);
    const unsigned heads = __ballot_sync(FULL_WARP, lane == 0 || source != below);
    if (heads != FULL_WARP) {
      const int head = lane - __clz(heads << (WARP_SIZE - 1 - lane));
#pragma unroll
      for (int distance = 1; distance < WARP_SIZE; distance *= 2) {
        const unsigned before = __shfl_up_sync(FULL_WARP, sum, distance);
        if (lane - distance >= head) sum += before;
      }
    }
    const bool ends_run = lane == WARP_SIZE - 1 || (heads >> (lane + 1) & 1u);
    if (ends_run && sum != 0) atomicAdd(sums + source, sum);
    sum = 0;
  }
};

template <class Policy, class Visit>
__device__ __forceinline__ void walk(typename Policy::Parameters parameters,
                                     const WalkArguments& launch, const Workers& workers,
                                     Visit& visit) {
  const FrontierCount count{FrontierCount::pack(launch.frontier_size, launch.frontier_edges)};
  for (int repeat = 0; repeat < launch.repeats; ++repeat) {
    visit.repeat = repeat;
    const Frontier frontier =
        frontier_at(parameters, 0, count, launch.largest_degree, launch.level, 0, false);
    Policy::Advance::template run<Policy>(parameters, frontier, workers, visit);
    // Every walk reads anew: for all the compiler knows, the neighbours are elsewhere now.
    parameters.col_indices += launch.moved;
  }
}

template <class Policy>
__device__ __forceinline__ void walk_level(const typename Policy::Parameters& parameters,
                                           const WalkArguments& launch) {
  const Workers workers;
  WeightedSum visit;
  walk<Policy>(parameters, launch, workers, visit);
  const unsigned sum = static_cast<unsigned>(warp_sum(visit.sum));
  if (workers.lane == 0 && sum != 0) atomicAdd(launch.checksum, sum);
}

template <class Policy>
__device__ __forceinline__ void walk_level_by_vertex(const typename Policy::Parameters& parameters,
                                                     const WalkArguments& launch) {
  const Workers workers;
  SumByVertex visit{launch.sums, workers.lane};
  walk<Policy>(parameters, launch, workers, visit);
  visit.flush();
}

}  // namespace persistent_bfs

// The level trace: when each level began and ended, how large its frontier was, how many edges.
//
// Compiled in or out by Policy::trace. One thread writes a record when its level begins and clears
// what others add to in the next record; whatever separates the levels makes that visible in time.
// Cost: the device's clock takes as long to read as half a narrow level.
#pragma once

#include "dense.cuh"
#include "step.cuh"
#include "types.cuh"

namespace persistent_bfs {

// The thread of a persistent grid that writes records: of the warp that is the last to be given
// anything to do, so that a level of few vertices is under way while the clock is read.
__device__ __forceinline__ bool is_grid_tracer() {
  return blockIdx.x == gridDim.x - 1 && threadIdx.x == blockDim.x - 1;
}

// By one thread, when a level begins. The clock need not be read where it is known when the level
// before ended, and that this one followed at once.
template <class Policy>
__device__ __forceinline__ void trace_begin(const typename Policy::Parameters& parameters,
                                            const Frontier& frontier, bool reads_clock = true) {
  if constexpr (Policy::trace) {
    LevelRecord* record = parameters.trace + frontier.depth;
    // Otherwise a tier's word of a search before would stay.
    record[0].begin_nanoseconds = reads_clock ? device_nanoseconds() : 0;
    record[0].frontier_size = frontier.discovered;
    record[0].mapping =
        in_queue<Policy>(frontier) ? Policy::Advance::chosen(frontier) : BY_TOPOLOGY;
    record[0].pulled = frontier.pulls;
    record[1].end_nanoseconds = 0;
    record[1].edges = 0;
  }
}

// By whole blocks of a kernel that runs one level: the level ends when its last block does.
template <class Policy>
__device__ __forceinline__ void trace_block_end(const typename Policy::Parameters& parameters,
                                                int level) {
  if constexpr (Policy::trace) {
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicMax(&parameters.trace[level].end_nanoseconds, device_nanoseconds());
    }
  }
}

// By one thread of a persistent grid, past the barrier that ends the level.
template <class Policy>
__device__ __forceinline__ void trace_end(const typename Policy::Parameters& parameters,
                                          int level) {
  if constexpr (Policy::trace) {
    parameters.trace[level].end_nanoseconds = device_nanoseconds();
  }
}

}  // namespace persistent_bfs

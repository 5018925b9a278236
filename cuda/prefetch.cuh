// An array on its way into L2 before anyone reads it.
//
// A search finds L2 full of something else if it is the first of its graph, or if others came
// between; then each narrow level waits for the slowest of its rows to come from DRAM. All of them
// together take DRAM a few microseconds. Cost: an instruction for each piece, whose end nobody
// waits for, and that rate of DRAM beside the reset and the first levels. Source: this project's own.
#pragma once

#include "platform.cuh"

namespace persistent_bfs {

// `bytes`, a multiple of 16, from `begin` on; by every thread of the grid, a piece each at a time,
// neighbouring pieces by different blocks: a multiprocessor takes them one after another.
__device__ __forceinline__ void prefetch(const void* begin, unsigned long long bytes) {
  const char* const array = static_cast<const char*>(begin);
  const unsigned long long first = threadIdx.x * gridDim.x + blockIdx.x;
  const unsigned long long threads = blockDim.x * gridDim.x;
  for (unsigned long long at = first * PREFETCHED_BYTES; at < bytes;
       at += threads * PREFETCHED_BYTES) {
    const unsigned long long left = bytes - at;
    prefetch_piece(array + at, left < PREFETCHED_BYTES ? left : PREFETCHED_BYTES);
  }
}

}  // namespace persistent_bfs

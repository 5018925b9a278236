// A warp's place in the grid, and the reductions its lanes do together.
#pragma once

#include "platform.cuh"

namespace persistent_bfs {

constexpr int WARP_SIZE = 32;
constexpr unsigned FULL_WARP = 0xffffffffu;

// Warps are numbered across blocks first: a frontier of a few warps then spreads over as many
// multiprocessors, each with its own path to L2, instead of filling one.
//
// A grid has fewer than 2^31 threads, and a frontier as many vertices at most: so a loop that strides
// a frontier by the grid counts in unsigned, where one step beyond the end is still no overflow.
struct Workers {
  int lane;
  int warp;
  int warps;

  __device__ __forceinline__ Workers()
      : lane(threadIdx.x % WARP_SIZE),
        warp(threadIdx.x / WARP_SIZE * gridDim.x + blockIdx.x),
        warps(blockDim.x / WARP_SIZE * gridDim.x) {}

  // This thread's number in the order of the warps, and how many there are.
  __device__ __forceinline__ unsigned thread() const { return warp * WARP_SIZE + lane; }
  __device__ __forceinline__ unsigned threads() const { return warps * WARP_SIZE; }
};

__device__ __forceinline__ bool is_grid_leader() { return blockIdx.x == 0 && threadIdx.x == 0; }

__device__ __forceinline__ int lanes_below(unsigned ballot, int lane) {
  return __popc(ballot & ((1u << lane) - 1u));
}

__device__ __forceinline__ int warp_max(int value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(FULL_WARP, value);
#else
  for (int distance = WARP_SIZE / 2; distance > 0; distance /= 2) {
    const int other = __shfl_xor_sync(FULL_WARP, value, distance);
    value = other > value ? other : value;
  }
  return value;
#endif
}

__device__ __forceinline__ int warp_add(int value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_add_sync(FULL_WARP, value);
#else
  for (int distance = WARP_SIZE / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(FULL_WARP, value, distance);
  }
  return value;
#endif
}

__device__ __forceinline__ unsigned long long warp_sum(unsigned long long value) {
  for (int distance = WARP_SIZE / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(FULL_WARP, value, distance);
  }
  return value;
}

// The sum of the values of this lane and those below it.
__device__ __forceinline__ unsigned long long warp_inclusive_sum(unsigned long long value,
                                                                 int lane) {
  for (int distance = 1; distance < WARP_SIZE; distance *= 2) {
    const unsigned long long below = __shfl_up_sync(FULL_WARP, value, distance);
    if (lane >= distance) value += below;
  }
  return value;
}

}  // namespace persistent_bfs

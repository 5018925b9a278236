// A device-wide barrier by one counter: each block adds itself, then looks until all have.
//
// The counter only grows, so that nothing need be reset between two barriers; the host clears
// words[0] before the launch, and finds blocks times barriers there after it. Needs a resident
// grid. Cost: an atomic a block and the polling of one word in L2. Source: S. Xiao, W. Feng,
// "Inter-Block GPU Communication via Fast Barrier Synchronization", IPDPS 2010.
#pragma once

#include "arguments.cuh"

namespace persistent_bfs {

class CountingBarrier {
 public:
  __device__ __forceinline__ explicit CountingBarrier(int* arrived) : arrived_(arrived) {}

  __device__ __forceinline__ void wait() {
    awaited_ += static_cast<int>(gridDim.x);
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();  // what the block wrote is seen before its arrival is
      atomicAdd(arrived_, 1);
      while (load_relaxed(arrived_) < awaited_) {
      }
      __threadfence();
    }
    __syncthreads();
  }

 private:
  int* arrived_;
  int awaited_ = 0;
};

template <class Policy>
__device__ __forceinline__ void sync_grid_own(const typename Policy::Parameters&,
                                              const PrimitiveArguments& launch) {
  CountingBarrier barrier(launch.words);
  for (int repeat = 0; repeat < launch.repeats; ++repeat) barrier.wait();
}

}  // namespace persistent_bfs

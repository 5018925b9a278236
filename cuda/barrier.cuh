// The barrier of a whole cooperative grid, counting how often it was used.
//
// Writes before it are visible to every thread after it. Cost: every block's report to one place in
// L2 and its answer, whatever the work between.
#pragma once

#include "platform.cuh"

namespace persistent_bfs {

class GridBarrier {
 public:
  __device__ __forceinline__ void wait() {
    grid_barrier();
    ++waits_;
  }

  __device__ __forceinline__ int waits() const { return waits_; }

 private:
  int waits_ = 0;
};

}  // namespace persistent_bfs

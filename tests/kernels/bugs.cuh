// Kernels with one seeded bug each, which the emulation must catch.
#include "platform.cuh"

namespace cg = cooperative_groups;
using persistent_bfs::load_relaxed;

struct Arguments {
  int* in;
  int* out;
  int n;
  unsigned long long handle;
};

#define KERNEL(name)                                                                      \
  static __device__ void name##_body(int* in, int* out, int n);                           \
  extern "C" __global__ void __launch_bounds__(1024) name(Arguments a) {                  \
    name##_body(a.in, a.out, a.n);                                                        \
  }                                                                                       \
  PERSISTENT_BFS_EMULATE(name, Arguments)                                                 \
  static __device__ void name##_body([[maybe_unused]] int* in, [[maybe_unused]] int* out, \
                                     [[maybe_unused]] int n)

constexpr unsigned FULL = 0xffffffffu;

KERNEL(missing_barrier) {
  __shared__ int row[64];
  row[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = row[63 - threadIdx.x];
}

KERNEL(check_then_write) {
  if (out[0] == 0) {
    out[0] = 1;
    atomicAdd(&out[1], 1);
  }
}

KERNEL(early_return) {
  if (threadIdx.x == 5 && blockIdx.x == 1) return;
  cg::this_grid().sync();
}

KERNEL(late_return) {
  if (threadIdx.x == 5 && blockIdx.x == 0) {
    while (load_relaxed(&out[0]) == 0) {
    }
    return;
  }
  if (threadIdx.x == 6 && blockIdx.x == 0) persistent_bfs::store_relaxed(&out[0], 1);
  cg::this_grid().sync();
}

KERNEL(not_cooperative) { cg::this_grid().sync(); }

KERNEL(divergent_barrier) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

KERNEL(divergent_votes) {
  if (threadIdx.x < 32) {
    __syncthreads_or(1);
  } else {
    __syncthreads_and(1);
  }
}

KERNEL(barrier_against_grid) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    cg::this_grid().sync();
  }
}

KERNEL(barrier_against_warp) {
  if (threadIdx.x == 3) {
    __syncthreads();
  } else if (threadIdx.x < 32) {
    __syncwarp();
  }
}

KERNEL(mismatched_operation) {
  if (threadIdx.x == 9) {
    __any_sync(FULL, 1);
  } else {
    __ballot_sync(FULL, 1);
  }
}

KERNEL(mismatched_mask) { __ballot_sync(threadIdx.x == 9 ? 0xfffu : FULL, 1); }

KERNEL(own_lane_left_out) { __ballot_sync(0xffffu, 1); }

KERNEL(named_lane_returns) {
  if (threadIdx.x == 31) return;
  __ballot_sync(FULL, 1);
}

KERNEL(read_past_end) { out[threadIdx.x] = in[static_cast<int>(threadIdx.x) + n]; }
KERNEL(write_past_end) { out[threadIdx.x + n] = 1; }
KERNEL(atomic_past_end) { atomicAdd(&out[n], 1); }
KERNEL(write_read_only) { in[n] = 1; }
KERNEL(atomic_read_only) { atomicAdd(&in[n], 1); }

KERNEL(misaligned) { out[0] = static_cast<int>(*reinterpret_cast<const long long*>(in + 1)); }

KERNEL(shared_past_end) {
  PERSISTENT_BFS_DYNAMIC_SHARED(int, row);
  row[n] = 1;
}

KERNEL(foreign_local) {
  __shared__ int* pointer;
  int mine[2] = {static_cast<int>(threadIdx.x), n};
  if (threadIdx.x == 0) pointer = mine;
  __syncthreads();
  out[threadIdx.x] = pointer[n];
}

__device__ __noinline__ int deep(int* out, int depth) {
  volatile int frame[64];
  frame[depth % 64] = depth;
  return depth == 0 ? out[0] : deep(out, depth - 1) + frame[depth % 64];
}
KERNEL(deep_stack) { out[0] = deep(out, n); }

KERNEL(spins_for_ever) {
  if (threadIdx.x == 0) {
    while (load_relaxed(&out[0]) == 0) {
    }
  }
}

KERNEL(plain_spins_for_ever) {
  while (*static_cast<volatile int*>(out) == 0) {
  }
}

KERNEL(barriers_for_ever) {
  for (;;) __syncthreads();
}

KERNEL(count_before_waiting) {
  if (threadIdx.x != 7) persistent_bfs::wait_for_grid_in_front();
  atomicAdd(out, 1);
  if (threadIdx.x == 7) persistent_bfs::wait_for_grid_in_front();
}

KERNEL(read_before_waiting) {
  const int count = in[threadIdx.x];
  persistent_bfs::wait_for_grid_in_front();
  atomicAdd(out, count);
}

KERNEL(some_never_wait) {
  if (threadIdx.x >= 40) return;
  persistent_bfs::wait_for_grid_in_front();
  atomicAdd(out, 1);
}

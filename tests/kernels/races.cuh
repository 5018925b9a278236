// Pairs of kernels for the check for data races: each racy_* lacks what its ordered_* has.
#include "platform.cuh"

namespace cg = cooperative_groups;
using persistent_bfs::load_relaxed;
using persistent_bfs::store_relaxed;

struct Arguments {
  int* in;
  int* out;
  int n;
  unsigned long long handle;
};

#define KERNEL(name)                                                     \
  static __device__ void name##_body(int* out, int n);                   \
  extern "C" __global__ void __launch_bounds__(1024) name(Arguments a) { \
    name##_body(a.out, a.n);                                             \
  }                                                                      \
  PERSISTENT_BFS_EMULATE(name, Arguments)                                \
  static __device__ void name##_body([[maybe_unused]] int* out, [[maybe_unused]] int n)

__device__ __forceinline__ int rank() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Each thread writes its word of shared memory and reads its neighbour's.
template <class Barrier>
__device__ __forceinline__ int exchange(Barrier barrier) {
  __shared__ int row[1024];
  row[threadIdx.x] = threadIdx.x;
  barrier();
  return row[threadIdx.x ^ 1];
}

KERNEL(racy_shared) {
  out[rank()] = exchange([] {});
}
KERNEL(ordered_shared) {
  out[rank()] = exchange([] { __syncthreads(); });
}
KERNEL(ordered_shared_by_vote) {
  out[rank()] = exchange([] { __syncthreads_or(0); });
}
KERNEL(ordered_warp) {
  out[rank()] = exchange([] { __syncwarp(); });
}

// Lanes 0 to 15 meet, and so do 16 to 31; only pairs across the middle exchange.
KERNEL(racy_half_warps) {
  __shared__ int row[1024];
  row[threadIdx.x] = threadIdx.x;
  __syncwarp(threadIdx.x % 32 < 16 ? 0xffffu : 0xffff0000u);
  out[rank()] = row[threadIdx.x ^ 31];
}

// A tree in shared memory, and the same without the barrier between its levels.
template <class Barrier>
__device__ __forceinline__ void reduce(int* out, Barrier barrier) {
  __shared__ int sums[1024];
  sums[threadIdx.x] = 1;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    barrier();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

KERNEL(racy_reduction) {
  reduce(out, [] {});
}
KERNEL(ordered_reduction) {
  reduce(out, [] { __syncthreads(); });
}

KERNEL(racy_counter) { out[0] += 1; }
KERNEL(ordered_counter) { atomicAdd(&out[0], 1); }

// A plain read of what others change by atomics.
KERNEL(racy_look) {
  atomicAdd(&out[0], 1);
  out[1 + rank()] = out[0];
}
KERNEL(ordered_look) {
  atomicAdd(&out[0], 1);
  out[1 + rank()] = load_relaxed(&out[0]);
}

// Blocks hand a word around, once a turn.
template <class Barrier>
__device__ __forceinline__ void hand_around(int* out, int turns, Barrier barrier) {
  for (int turn = 0; turn < turns; ++turn) {
    int* const row = out + turn % 2 * gridDim.x;
    const int* const other = out + (1 - turn % 2) * gridDim.x;
    if (threadIdx.x == 0) row[blockIdx.x] = 1 + other[(blockIdx.x + 1) % gridDim.x];
    barrier();
  }
}

KERNEL(racy_grid) {
  hand_around(out, n, [] { __syncthreads(); });
}
KERNEL(ordered_grid) {
  hand_around(out, n, [] { cg::this_grid().sync(); });
}

// The last block to finish adds up what all blocks wrote: out[0] counts, out[1] is the sum.
template <class Fence>
__device__ __forceinline__ void last_block_adds(int* out, Fence fence) {
  __shared__ bool last;
  out[2 + rank()] = 1;
  fence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&out[0], 1) == static_cast<int>(gridDim.x) - 1;
  __syncthreads();
  if (!last) return;
  if (threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x * blockDim.x; ++i) sum += out[2 + i];
    out[1] = sum;
  }
}

KERNEL(racy_ticket) {
  last_block_adds(out, [] {});
}
KERNEL(ordered_ticket) {
  last_block_adds(out, [] { __threadfence(); });
}

// Each block waits for the one before it and adds to its word: an order through all of them.
template <class Fence>
__device__ __forceinline__ void pass_on(int* out, Fence fence) {
  if (threadIdx.x != 0) return;
  while (load_relaxed(&out[0]) != static_cast<int>(blockIdx.x)) __nanosleep(20);
  out[1] += 1;
  fence();
  store_relaxed(&out[0], blockIdx.x + 1);
}

KERNEL(racy_chain) {
  pass_on(out, [] {});
}
KERNEL(ordered_chain) {
  pass_on(out, [] { __threadfence(); });
}

// A barrier of one's own, opened by the last to come, who must pass on what the others told it.
template <class Fence>
__device__ __forceinline__ void spin_barrier(int* out, int turns, Fence fence) {
  const int all = gridDim.x * blockDim.x;
  for (int turn = 1; turn <= turns; ++turn) {
    int* const row = out + 3 + turn % 2 * all;
    row[rank()] = turn;
    __threadfence();
    const bool last = atomicAdd(&out[0], 1) == turn * all - 1;
    fence();
    if (last) store_relaxed(&out[1], turn);
    while (load_relaxed(&out[1]) < turn) __nanosleep(20);
    if (row[(rank() + 1) % all] != turn) atomicAdd(&out[2], 1);
  }
}

KERNEL(racy_spin_barrier) {
  spin_barrier(out, n, [] {});
}
KERNEL(ordered_spin_barrier) {
  spin_barrier(out, n, [] { __threadfence(); });
}

// Neighbouring bytes are not the same memory; a word and a byte of it are.
KERNEL(ordered_bytes) { reinterpret_cast<char*>(out)[rank()] = 1; }
KERNEL(racy_bytes) {
  if (threadIdx.x == 0) out[0] = 1;
  if (threadIdx.x == 1) reinterpret_cast<char*>(out)[3] = 1;
}

// Kernels in thread block clusters: what the words mean, and bug_* and racy_*, which the emulation
// must catch.
#include "clusters.cuh"

using persistent_bfs::cluster_arrive;
using persistent_bfs::cluster_barrier;
using persistent_bfs::cluster_blocks;
using persistent_bfs::cluster_rank;
using persistent_bfs::cluster_wait;
using persistent_bfs::grid_barrier;
using persistent_bfs::load_shared;
using persistent_bfs::shared_of;

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

__device__ __forceinline__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ int next_rank() { return (cluster_rank() + 1) % cluster_blocks(); }

KERNEL(identity) {
  out[2 * place()] = cluster_rank();
  out[2 * place() + 1] = cluster_blocks();
}

// Each thread reads, `n` blocks on, what the thread of its number wrote there.
template <class Barrier>
__device__ __forceinline__ void read_neighbour(int* out, int n, Barrier barrier) {
  __shared__ int row[1024];
  row[threadIdx.x] = place();
  barrier();
  out[place()] = *shared_of(&row[threadIdx.x], (cluster_rank() + n) % cluster_blocks());
  cluster_barrier();
}

KERNEL(exchange) {
  read_neighbour(out, n, [] { cluster_barrier(); });
}
KERNEL(exchange_in_halves) {
  read_neighbour(out, n, [] {
    cluster_arrive();
    cluster_wait();
  });
}
KERNEL(racy_exchange) {
  read_neighbour(out, n, [] { __syncthreads(); });
}

// Each thread writes 4 and 16 bytes into the next block's dynamic shared memory.
template <class Barrier>
__device__ __forceinline__ void write_neighbour(int* out, Barrier barrier) {
  PERSISTENT_BFS_DYNAMIC_SHARED(int4, quads);
  int* const words = reinterpret_cast<int*>(quads + blockDim.x);
  const int mine = place();
  cluster_barrier();  // a block that has not started has no shared memory
  *shared_of(&quads[threadIdx.x], next_rank()) = make_int4(mine, mine + 1, mine + 2, mine + 3);
  *shared_of(&words[threadIdx.x], next_rank()) = mine + 4;
  barrier();
  const int4 quad = quads[threadIdx.x];
  int* const row = out + 5 * mine;
  row[0] = quad.x, row[1] = quad.y, row[2] = quad.z, row[3] = quad.w;
  row[4] = words[threadIdx.x];
}

KERNEL(push) {
  write_neighbour(out, [] { cluster_barrier(); });
}
KERNEL(racy_push) {
  write_neighbour(out, [] { __syncthreads(); });
}

// All threads of a cluster add up in every block of it.
KERNEL(remote_atomics) {
  __shared__ int sum;
  __shared__ unsigned bits;
  __shared__ unsigned long long wide;
  if (threadIdx.x == 0) sum = 0, bits = 0, wide = 0;
  cluster_barrier();
  for (int rank = 0; rank < cluster_blocks(); ++rank) {
    atomicAdd(shared_of(&sum, rank), cluster_rank() * 1000 + threadIdx.x);
    atomicOr(shared_of(&bits, rank), 1u << (threadIdx.x + cluster_rank()) % 32);
    atomicAdd(shared_of(&wide, rank), 1ull << 33);
  }
  cluster_barrier();
  if (threadIdx.x == 0) {
    int* const row = out + 3 * blockIdx.x;
    row[0] = load_shared(shared_of(&sum, next_rank()));
    row[1] = static_cast<int>(load_shared(shared_of(&bits, next_rank())));
    row[2] = static_cast<int>(load_shared(shared_of(&wide, next_rank())) >> 33);
  }
  cluster_barrier();
}

// n rounds around the ring: a token in shared memory, one block further each.
KERNEL(ring) {
  __shared__ int token[2];
  if (threadIdx.x == 0) token[0] = token[1] = cluster_rank();
  cluster_barrier();
  for (int round = 0; round < n; ++round) {
    if (threadIdx.x == 0) *shared_of(&token[(round + 1) % 2], next_rank()) = token[round % 2] + 1;
    cluster_barrier();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = token[n % 2];
}

// n levels: each block counts in its cluster's first one, the clusters in out, and all look.
KERNEL(levels) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  cluster_barrier();
  for (int level = 0; level < n; ++level) {
    if (threadIdx.x == 0) atomicAdd(shared_of(&count, 0), 1);
    cluster_barrier();
    if (threadIdx.x == 0 && cluster_rank() == 0) atomicAdd(&out[level], count);
    grid_barrier();
    const int blocks = static_cast<int>(gridDim.x);
    if (out[level] != blocks * (level + 1)) atomicAdd(&out[n], 1);
  }
  cluster_barrier();
}

// Between arriving and waiting a thread works on what is its own.
KERNEL(work_between) {
  __shared__ int row[1024];
  __shared__ int own[1024];
  row[threadIdx.x] = place();
  cluster_arrive();
  own[threadIdx.x] = 3 * place();
  cluster_wait();
  out[place()] = *shared_of(&row[threadIdx.x], next_rank()) + own[threadIdx.x];
  cluster_barrier();
}

KERNEL(racy_work_between) {
  __shared__ int row[1024];
  cluster_arrive();
  row[threadIdx.x] = place();
  cluster_wait();
  out[place()] = *shared_of(&row[threadIdx.x], next_rank());
  cluster_barrier();
}

// Global memory is passed on by the barrier too.
KERNEL(through_global) {
  out[place()] = 1;
  cluster_barrier();
  const int peer = static_cast<int>(blockIdx.x) - cluster_rank() + next_rank();
  const int seen = out[peer * blockDim.x + threadIdx.x];
  cluster_barrier();
  out[place()] += seen;
}

KERNEL(racy_through_global) {
  out[place()] = 1;
  const int peer = static_cast<int>(blockIdx.x) - cluster_rank() + next_rank();
  const int seen = out[peer * blockDim.x + threadIdx.x];
  cluster_barrier();
  out[place()] += seen;
}

// The grid meets between the halves: what came before it is known to all the same.
KERNEL(grid_between) {
  __shared__ int row[1024];
  cluster_arrive();
  row[threadIdx.x] = place();
  grid_barrier();
  cluster_wait();
  out[place()] = *shared_of(&row[threadIdx.x], next_rank());
  cluster_barrier();
}

// A fence by each, a barrier, and one thread's count for all: as with the barrier of a block.
template <class Fence>
__device__ __forceinline__ void count_clusters(int* out, Fence fence) {
  const int threads = static_cast<int>(gridDim.x * blockDim.x);
  out[place()] = 1;
  fence();
  cluster_barrier();
  if (threadIdx.x == 0 && cluster_rank() == 0) atomicAdd(&out[threads], 1);
  if (place() != 0) return;
  const int clusters = static_cast<int>(gridDim.x) / cluster_blocks();
  while (persistent_bfs::load_relaxed(&out[threads]) < clusters) {
  }
  __threadfence();
  int sum = 0;
  for (int i = 0; i < threads; ++i) sum += out[i];
  out[threads + 1] = sum;
}

KERNEL(fence_then_count) {
  count_clusters(out, [] { __threadfence(); });
}
KERNEL(racy_count) {
  count_clusters(out, [] {});
}

KERNEL(some_return) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  cluster_barrier();
  if (threadIdx.x >= 32) return;
  atomicAdd(shared_of(&sum, 0), 1);
  cluster_barrier();
  if (threadIdx.x == 0 && cluster_rank() == 0) out[blockIdx.x] = sum;
}

// What is wrong on every device.

// Block 1 returns at once; block 0 reads its shared memory when it has.
KERNEL(bug_exit_before_read) {
  __shared__ int word;
  word = 7;
  cluster_barrier();
  if (cluster_rank() == 1) {
    atomicAdd(&out[1], 1);
    return;
  }
  while (persistent_bfs::load_relaxed(&out[1]) < static_cast<int>(blockDim.x)) {
  }
  for (int i = 0; i < n; ++i) atomicAdd(&out[2], 1);
  if (threadIdx.x == 0) out[0] = *shared_of(&word, 1);
}

KERNEL(bug_no_barrier_before_exit) {
  __shared__ int word;
  if (threadIdx.x == 0) word = 7;
  cluster_barrier();
  if (threadIdx.x == 0) out[blockIdx.x] = *shared_of(&word, next_rank());
}

KERNEL(bug_rank) {
  __shared__ int word;
  out[place()] = *shared_of(&word, n);
}

KERNEL(bug_not_shared) { *shared_of(out, 0) = 1; }

KERNEL(bug_twice_mapped) {
  __shared__ int word;
  *shared_of(shared_of(&word, next_rank()), 0) = 1;
}

KERNEL(bug_past_end) {
  PERSISTENT_BFS_DYNAMIC_SHARED(int, words);
  cluster_barrier();
  *(shared_of(words, next_rank()) + n) = 1;
  cluster_barrier();
}

KERNEL(bug_arrives_twice) {
  cluster_arrive();
  cluster_arrive();
}

KERNEL(bug_waits_only) { cluster_wait(); }

KERNEL(bug_divergent) {
  if (threadIdx.x < 32) {
    cluster_barrier();
  } else {
    cluster_barrier();
  }
}

// Block 0 never comes to the barrier.
KERNEL(bug_missing_arrival) {
  if (cluster_rank() == 0) {
    grid_barrier();
  } else {
    cluster_barrier();
  }
}

KERNEL(bug_against_block_barrier) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    cluster_barrier();
  }
}

// Small kernels whose results follow from CUDA's definitions alone.
#include "platform.cuh"

namespace cg = cooperative_groups;
using persistent_bfs::load_relaxed;

struct Arguments {
  int* in;
  int* out;
  int n;
  unsigned long long handle;
};

#define KERNEL(name)                                                                       \
  static __device__ void name##_body(int* in, int* out, int n, unsigned long long handle); \
  extern "C" __global__ void __launch_bounds__(1024) name(Arguments a) {                   \
    name##_body(a.in, a.out, a.n, a.handle);                                               \
  }                                                                                        \
  PERSISTENT_BFS_EMULATE(name, Arguments)                                                  \
  static __device__ void name##_body([[maybe_unused]] int* in, [[maybe_unused]] int* out,  \
                                     [[maybe_unused]] int n,                               \
                                     [[maybe_unused]] unsigned long long handle)

constexpr unsigned FULL = 0xffffffffu;

KERNEL(identity) {
  const auto i = cg::this_grid().thread_rank();
  int* row = out + 8 * i;
  row[0] = threadIdx.x;
  row[1] = blockIdx.x;
  row[2] = blockDim.x;
  row[3] = gridDim.x;
  row[4] = threadIdx.y + threadIdx.z + blockIdx.y + 10 * blockDim.y + 100 * gridDim.z;
  row[5] = warpSize;
  row[6] = cg::this_thread_block().thread_rank() + cg::this_thread_block().size();
  row[7] = cg::this_grid().num_blocks() + cg::this_grid().num_threads();
}

KERNEL(block_sum) {
  __shared__ int sums[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = i < n ? in[i] : 0;
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(FULL, value, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = __reduce_add_sync(FULL, threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0);
    if (threadIdx.x == 0) atomicAdd(out, value);
  }
}

template <int bins>
__device__ void shared_histogram(const int* in, int* out, int n) {
  __shared__ int counts[bins];
  for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) counts[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[in[i] % bins], 1);
  __syncthreads();
  for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) atomicAdd(out + bin, counts[bin]);
}

KERNEL(histogram) {
  shared_histogram<10>(in, out, n);
  shared_histogram<7>(in, out + 10, n);
}

KERNEL(dynamic_reverse) {
  PERSISTENT_BFS_DYNAMIC_SHARED(int, row);
  const int i = threadIdx.x, size = blockDim.x, first = blockIdx.x * size;
  row[i] = in[first + i];
  __syncthreads();
  out[first + i] = row[size - 1 - i];
}

KERNEL(atomics) {
  const int i = threadIdx.x;
  atomicAdd(&out[0], i);
  atomicSub(&out[1], 2);
  atomicMin(&out[2], 5 - i);
  atomicMax(&out[3], i - 40);
  auto* words = reinterpret_cast<unsigned*>(out);
  atomicAnd(&words[4], ~(1u << i % 32));
  atomicOr(&words[5], 1u << i % 20);
  atomicXor(&words[6], i);
  if (atomicExch(&out[7], 1) == 0) atomicAdd(&out[8], 1);
  if (atomicCAS(&out[9], 0, i + 1) == 0) atomicAdd(&out[10], 1);
  atomicInc(&words[11], 9);
  auto* wide = reinterpret_cast<unsigned long long*>(out + 12);
  atomicAdd(wide, 1ull << 33);
  atomicMax(wide + 1, 1ull << i % 64);
}

KERNEL(grid_levels) {
  cg::grid_group grid = cg::this_grid();
  for (int level = 0; level < n; ++level) {
    if (threadIdx.x == 0) atomicAdd(&out[level], 1);
    grid.sync();
    if (load_relaxed(&out[level]) != static_cast<int>(gridDim.x)) atomicAdd(&out[n], 1);
  }
}

KERNEL(warp_words) {
  const int lane = threadIdx.x % 32;
  auto put = [&](int word, long long value) { out[32 * word + lane] = static_cast<int>(value); };
  put(0, __ballot_sync(FULL, lane % 3 == 0));
  put(1,
      __any_sync(FULL, lane == 7) + 2 * __all_sync(FULL, lane < 32) + 4 * __all_sync(FULL, lane));
  put(2, __shfl_sync(FULL, lane * lane, 5));
  put(3, __shfl_sync(FULL, lane, 2, 8));
  put(4, __shfl_up_sync(FULL, lane, 3, 16));
  put(5, __shfl_down_sync(FULL, lane, 3, 16));
  put(6, __shfl_xor_sync(FULL, lane, 5));
  put(7, __shfl_xor_sync(FULL, 1ull << (lane + 20), 1) >> 20);
  put(8, static_cast<int>(__shfl_sync(FULL, lane + 0.5f, lane ^ 1) * 2));
  put(9, __match_any_sync(FULL, lane / 5));
  int all = -1;
  put(10, __match_all_sync(FULL, 1ll << 40, &all) == FULL && all == 1);
  put(11, __match_all_sync(FULL, lane / 31, &all) == 0 && all == 0);
  put(12, __reduce_add_sync(FULL, lane - 16));
  put(13, __reduce_min_sync(FULL, lane - 16));
  put(14, __reduce_max_sync(FULL, lane == 3 ? 0xfffffff0u : 1u));
  put(15, __reduce_or_sync(FULL, 1u << lane / 2));
  put(16, __popc(0xf0f0u) + 100 * __popcll(~0ull) + 10000 * __ffs(8) + 100000 * __ffsll(0));
  put(17, __clz(1) + 100 * __clz(0) + 10000 * __clzll(1));
  put(18, __brev(6u) == 0x60000000u);
  put(19, __activemask() == 1u << lane);
  put(20, min(-1, 3) + max(2, 7) + (min(5u, 3) == 3u) + (max(1ll, 2) == 2));
  if (lane < 16) put(21, __ballot_sync(0xffffu, lane & 1));
  __syncwarp();
  if (lane >= 16) put(21, __ballot_sync(0xffff0000u, lane & 1));
  put(22, __shfl_sync(FULL, lane, 33));
}

KERNEL(lost_shuffle) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffu, 1, 12 + threadIdx.x % 8);
}

KERNEL(votes) {
  const int i = threadIdx.x;
  out[i] = (__syncthreads_or(i == 17) != 0) + 2 * (__syncthreads_and(i != 17) != 0) +
           4 * (__syncthreads_and(i >= 0) != 0) + 8 * (__syncthreads_or(i < 0) != 0) +
           100 * __syncthreads_count(i % 2);
}

KERNEL(vectors) {
  const int4 four = __ldg(reinterpret_cast<const int4*>(in) + threadIdx.x);
  const int2 two = make_int2(four.x + four.y, four.z + four.w);
  reinterpret_cast<int2*>(out)[threadIdx.x] = two;
  static_assert(alignof(int4) == 16 && alignof(longlong2) == 16 && sizeof(uint4) == 16 &&
                alignof(ulonglong2) == 16 && alignof(int2) == 8);
}

KERNEL(unwritten_shared) {
  __shared__ int words[64];
  out[threadIdx.x] = words[threadIdx.x];
  words[threadIdx.x] = 0;
}

KERNEL(some_return) {
  if (threadIdx.x % 2) return;
  __syncthreads();
  atomicAdd(out, 1);
}

// A barrier of one's own: the last to arrive opens it, the others spin.
KERNEL(spin_barrier) {
  const int all = gridDim.x * blockDim.x;
  for (int turn = 1; turn <= n; ++turn) {
    atomicAdd(&out[1], 1);
    if (atomicAdd(&out[0], 1) == turn * all - 1) persistent_bfs::store_relaxed(&out[2], turn);
    while (load_relaxed(&out[2]) < turn) __nanosleep(20);
    if (load_relaxed(&out[1]) < turn * all) atomicAdd(&out[3], 1);
  }
}

KERNEL(claim_cas) {
  if (load_relaxed(&out[0]) == 0 && atomicCAS(&out[0], 0, 1) == 0) atomicAdd(&out[1], 1);
}

KERNEL(add) {
  if (threadIdx.x == 0 && blockIdx.x == 0) out[0] += n;
}

KERNEL(wait_and_count) {
  persistent_bfs::let_next_grid_begin();
  persistent_bfs::wait_for_grid_in_front();
  persistent_bfs::wait_for_grid_in_front();
  atomicAdd(out, 1);
}

KERNEL(count_down) {
  if (threadIdx.x == 0) {
    out[0] -= 1;
    out[1] += n;
    if (out[0] == 0) cudaGraphSetConditional(handle, 0);
  }
}

// Of each thread: a plain load, a relaxed load, two shared accesses, a relaxed store, a plain
// store.
KERNEL(counted) {
  __shared__ int row[64];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  row[threadIdx.x] = in[i];
  __syncthreads();
  const int other = row[63 - threadIdx.x] + load_relaxed(&in[i]);
  if (__any_sync(FULL, other < 0) && threadIdx.x % 32 == 0) {
    atomicAdd(&out[0], 1);
    persistent_bfs::count_lane_slots(32);
  }
  cg::this_grid().sync();
  persistent_bfs::store_relaxed(&out[i + 1], other);
  cg::this_grid().sync();
  out[i + 200] = other;
}

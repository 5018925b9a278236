// What the kernels take from their compiler: NVRTC or nvcc, or g++ with the emulated device.
//
// Everything that differs between them is here, in shared_words.cuh and in clusters.cuh, so that
// no other file asks which it is. For a GPU these are CUDA's own words; under g++
// `emulation/simt.hpp` supplies the same words, and relaxed accesses become points at which the
// emulated schedule may switch threads.
#pragma once

#ifdef __CUDACC__

#ifdef __CUDACC_RTC__
// nvcc has it from the toolkit's headers, of which NVRTC is given none.
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);
#endif

#define PERSISTENT_BFS_EMULATE(kernel, ...)
#define PERSISTENT_BFS_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

namespace persistent_bfs {

// A load from global memory that other threads' atomics and relaxed stores may race with: never
// torn, never from a stale L1 line, never hoisted by the compiler, and cheaper than an atomic that
// returns. That the memory is global is said, for a load that could be from anywhere is slower.
__device__ __forceinline__ int load_relaxed(const int* address) {
  int value;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(address)));
  return value;
}

__device__ __forceinline__ unsigned long long load_relaxed(const unsigned long long* address) {
  unsigned long long value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(__cvta_generic_to_global(address)));
  return value;
}

__device__ __forceinline__ void store_relaxed(int* address, int value) {
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(address)),
               "r"(value));
}

__device__ __forceinline__ void store_relaxed(unsigned long long* address,
                                              unsigned long long value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(address)),
               "l"(value));
}

// 16 bytes in one load, never from a stale L1 line; of what nobody writes meanwhile.
template <class T>
__device__ __forceinline__ T load_together(const T* address) {
  static_assert(sizeof(T) == sizeof(int4) && alignof(T) == alignof(int4));
  const int4 words = __ldcg(reinterpret_cast<const int4*>(address));
  T value;
  memcpy(&value, &words, sizeof value);
  return value;
}

// Up to PREFETCHED_BYTES of global memory into L2, on the way when this returns.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr unsigned long long PREFETCHED_BYTES = 32;

__device__ __forceinline__ void prefetch_piece(const void* piece, unsigned) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(piece)));
}
#else
constexpr unsigned long long PREFETCHED_BYTES = 4096;

__device__ __forceinline__ void prefetch_piece(const void* piece, unsigned bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(piece)),
               "r"(bytes));
}
#endif

// For kernels whose blocks may be there before the grid in front has ended (programmatic dependent
// launch). The first lets the blocks of the next grid come as soon as every block of this one has
// said so; the second waits until the grid in front is over and what it wrote can be seen. In other
// launches, and on GPUs before sm_90, which have none of that kind, neither does anything.
__device__ __forceinline__ void let_next_grid_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

__device__ __forceinline__ void wait_for_grid_in_front() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The barrier of a cooperative grid, all of whose blocks are resident. What a thread wrote before it
// is visible to every thread of the grid after it.
//
// The driver gives such a grid a word of its own, which starts with bit 31 in either state. A
// barrier adds 2^31 to it in all: every block but the first adds 1, the first one what is missing.
// So bit 31 flips as the last block arrives, whatever the order, and nothing need be reset. Where
// the launch was not cooperative there is no such word, and the kernel is ended.
//
// Cost: one atomic per block in L2, and the polling of one word there. Source: cooperative groups'
// barrier of a grid, which needs the toolkit's headers. It is theirs to the instruction: that no
// launch here has more than one dimension is left out of it, since it costs registers.
__device__ __forceinline__ void grid_barrier() {
  unsigned low, high;
  asm("mov.u32 %0, %%envreg2;" : "=r"(low));
  asm("mov.u32 %0, %%envreg1;" : "=r"(high));
  const auto workspace = static_cast<unsigned long long>(high) << 32 | low;
  if (workspace == 0) __trap();
  auto* const arrived = reinterpret_cast<unsigned*>(workspace) + 1;
  __barrier_sync(0);
  if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    const bool first = blockIdx.x + blockIdx.y + blockIdx.z == 0;
    unsigned before, now;
    asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(arrived), "r"(first ? 0x80000000u - (blocks - 1) : 1u)
                 : "memory");
    do {
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
    } while (((before ^ now) & 0x80000000u) == 0);
  }
  __barrier_sync(0);
}

// A load from shared memory that other threads' atomics may race with.
template <class T>
__device__ __forceinline__ T load_shared(const T* address) {
  return *static_cast<const volatile T*>(address);
}

// A read-only row, or `otherwise`; issued where it stands, so that it is under way early.
__device__ __forceinline__ int4 load_row_if(bool wanted, const int4* row, int otherwise) {
  int4 found = {otherwise, otherwise, otherwise, otherwise};
  asm volatile(
      "{.reg .pred p; setp.ne.u32 p, %5, 0; @p ld.global.nc.v4.s32 {%0, %1, %2, %3}, [%4];}"
      : "+r"(found.x), "+r"(found.y), "+r"(found.z), "+r"(found.w)
      : "l"(row), "r"(static_cast<unsigned>(wanted)));
  return found;
}

// Where array[i] is in global memory, computed where it stands: nvcc would do so after what decides
// whether it is used. An `i` beyond the array is allowed, but not the use of its place.
__device__ __forceinline__ int* place_of(int* array, int i) {
  int* place;
  asm volatile("mad.wide.s32 %0, %1, 4, %2;" : "=l"(place) : "r"(i), "l"(array));
  return place;
}

// Nobody reads it soon: it is the first to leave the cache.
__device__ __forceinline__ void store_streaming(int* place, int value) { __stcs(place, value); }

__device__ __forceinline__ void store_if(bool wanted, int* place, int value) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.global.s32 [%0], %1;}" ::"l"(place),
               "r"(value), "r"(static_cast<unsigned>(wanted))
               : "memory");
}

// Whether it is 0 or more, in one comparison: nvcc shifts the sign to make a bool of it.
__device__ __forceinline__ bool is_not_negative(int value) {
  unsigned is;
  asm("{.reg .pred p; setp.ge.s32 p, %1, 0; selp.u32 %0, 1, 0, p;}" : "=r"(is) : "r"(value));
  return is != 0;
}

// threadIdx.x in a register: nvcc would read it anew wherever it is used.
__device__ __forceinline__ int thread_in_block() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// A value of which nvcc knows nothing: it cannot compute early, nor keep, what depends on it.
__device__ __forceinline__ int known_here(int value) {
  asm volatile("mov.u32 %0, %0;" : "+r"(value));
  return value;
}

__device__ __forceinline__ int lane_in_warp() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// The device's own clock, in nanoseconds; the same on every multiprocessor.
__device__ __forceinline__ unsigned long long device_nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// The multiprocessor's own clock: a few cycles to read, where the device's takes as long as half a
// narrow level.
__device__ __forceinline__ unsigned long long multiprocessor_cycles() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
  return now;
}

// Its low half, and `above` for a high half, into `place` where wanted.
__device__ __forceinline__ void store_cycles_if(bool wanted, unsigned long long* place,
                                                unsigned above) {
  asm volatile(
      "{.reg .pred p; .reg .u32 cycles; setp.ne.u32 p, %2, 0; mov.u32 cycles, %%clock; "
      "@p st.global.v2.u32 [%0], {cycles, %1};}" ::"l"(place),
      "r"(above), "r"(static_cast<unsigned>(wanted))
      : "memory");
}

// Lane slots are counted on the emulated device only: a GPU would pay for counting them.
__device__ __forceinline__ void count_lane_slots(unsigned) {}

}  // namespace persistent_bfs

#else

#include "emulation/simt.hpp"

namespace persistent_bfs {

inline int load_relaxed(const int* address) { return simt::load_relaxed(address); }
inline unsigned long long load_relaxed(const unsigned long long* address) {
  return simt::load_relaxed(address);
}
inline void store_relaxed(int* address, int value) { simt::store_relaxed(address, value); }
inline void store_relaxed(unsigned long long* address, unsigned long long value) {
  simt::store_relaxed(address, value);
}
template <class T>
inline T load_together(const T* address) {
  return *address;
}
constexpr unsigned long long PREFETCHED_BYTES = 4096;
inline void prefetch_piece(const void* piece, unsigned bytes) { simt::prefetch(piece, bytes); }
inline void let_next_grid_begin() {}
inline void wait_for_grid_in_front() { simt::wait_for_grid_in_front(); }
inline void grid_barrier(SIMT_HERE) { simt::grid_barrier({file, line}); }
template <class T>
inline T load_shared(const T* address) {
  return simt::load_relaxed(address);
}
inline int4 load_row_if(bool wanted, const int4* row, int otherwise) {
  return wanted ? *row : int4{otherwise, otherwise, otherwise, otherwise};
}
inline int* place_of(int* array, int i) { return array + i; }
inline void store_if(bool wanted, int* place, int value) {
  if (wanted) *place = value;
}
inline void store_streaming(int* place, int value) { *place = value; }
inline bool is_not_negative(int value) { return value >= 0; }
inline int known_here(int value) { return value; }
inline int thread_in_block() { return threadIdx.x; }
inline int lane_in_warp() { return threadIdx.x % warpSize; }
inline unsigned long long device_nanoseconds() { return 0; }
inline unsigned long long multiprocessor_cycles() { return simt::ticks(); }
inline void store_cycles_if(bool wanted, unsigned long long* place, unsigned above) {
  if (wanted) {
    *place = static_cast<unsigned long long>(above) << 32 | static_cast<unsigned>(simt::ticks());
  }
}
inline void count_lane_slots(unsigned slots) { simt::count_lane_slots(slots); }

}  // namespace persistent_bfs

#endif

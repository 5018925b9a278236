// What the kernels take from their compiler: nvcc, or g++ with the emulated device.
//
// Everything that differs between the two is here, so that no other file asks which it is. Under
// nvcc these are CUDA's own words; under g++ `emulation/simt.hpp` supplies the same words, and
// relaxed accesses become points at which the emulated schedule may switch threads.
#pragma once

#ifdef __CUDACC__

#include <cooperative_groups.h>
#include <cuda_device_runtime_api.h>

#define PERSISTENT_BFS_EMULATE(kernel, ...)
#define PERSISTENT_BFS_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

namespace persistent_bfs {

// A load that other threads' atomics and relaxed stores may race with: never torn, never from a
// stale L1 line, never hoisted by the compiler, and cheaper than an atomic that returns.
__device__ __forceinline__ int load_relaxed(const int* address) {
  int value;
  asm volatile("ld.relaxed.gpu.s32 %0, [%1];" : "=r"(value) : "l"(address));
  return value;
}

__device__ __forceinline__ unsigned long long load_relaxed(const unsigned long long* address) {
  unsigned long long value;
  asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address));
  return value;
}

__device__ __forceinline__ void store_relaxed(int* address, int value) {
  asm volatile("st.relaxed.gpu.s32 [%0], %1;" ::"l"(address), "r"(value));
}

// A load from shared memory that other threads' atomics may race with.
template <class T>
__device__ __forceinline__ T load_shared(const T* address) {
  return *static_cast<const volatile T*>(address);
}

// Shared memory by its 32-bit address, kept in one register. A generic pointer would cost the code
// around it two, and nvcc computes the address of a shared variable anew, from the block's rank in
// its cluster, wherever it is used. The predicated words keep a warp together where a branch would
// part it.
using shared_address = unsigned;

__device__ __forceinline__ shared_address shared_address_of(const void* pointer) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(pointer));
  asm volatile("mov.u32 %0, %0;" : "+r"(address));  // here and not again
  return address;
}

__device__ __forceinline__ int load_shared_at(shared_address address) {
  int value;
  asm volatile("ld.volatile.shared.s32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ int load_shared_if(bool wanted, shared_address address, int otherwise) {
  asm volatile(
      "{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.volatile.shared.s32 %0, [%1];}"
      : "+r"(otherwise)
      : "r"(address), "r"(static_cast<unsigned>(wanted))
      : "memory");
  return otherwise;
}

__device__ __forceinline__ int load_shared_relaxed_if(bool wanted, shared_address address,
                                                      int otherwise) {
  return load_shared_if(wanted, address, otherwise);
}

__device__ __forceinline__ void store_shared_at(shared_address address, int value) {
  asm volatile("st.volatile.shared.s32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ __forceinline__ void store_shared_if(bool wanted, shared_address address, int value) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.volatile.shared.s32 [%0], %1;}" ::"r"(
                   address),
               "r"(value), "r"(static_cast<unsigned>(wanted))
               : "memory");
}

__device__ __forceinline__ void store_shared_if(bool wanted, shared_address address, int4 value) {
  asm volatile(
      "{.reg .pred p; setp.ne.u32 p, %5, 0; @p st.shared.v4.s32 [%0], {%1, %2, %3, %4};}" ::"r"(
          address),
      "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(static_cast<unsigned>(wanted))
      : "memory");
}

// The bits as they were; `bits` themselves where it is not wanted.
__device__ __forceinline__ unsigned fetch_or_shared_if(bool wanted, shared_address address,
                                                       unsigned bits) {
  unsigned old = bits;
  asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p atom.shared.or.b32 %0, [%1], %2;}"
               : "+r"(old)
               : "r"(address), "r"(bits), "r"(static_cast<unsigned>(wanted))
               : "memory");
  return old;
}

// The sum as it was; 0 where it is not wanted.
__device__ __forceinline__ int fetch_add_shared_if(bool wanted, shared_address address, int value) {
  int old = 0;
  asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p atom.shared.add.u32 %0, [%1], %2;}"
               : "+r"(old)
               : "r"(address), "r"(value), "r"(static_cast<unsigned>(wanted))
               : "memory");
  return old;
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

// threadIdx.x in a register: nvcc would read it anew wherever it is used.
__device__ __forceinline__ int thread_in_block() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
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

// Thread block clusters: neighbouring blocks of a grid that are resident together and reach each
// other's shared memory. From sm_90 on; before, and in a launch without clusters, each block is a
// cluster of its own. A block must not return while another one still reaches into it: end with a
// cluster barrier. Source: PTX's barrier.cluster and mapa.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define PERSISTENT_BFS_CLUSTERS 1
#else
#define PERSISTENT_BFS_CLUSTERS 0
#endif

// This block's rank in its cluster, from 0.
__device__ __forceinline__ int cluster_rank() {
  int rank = 0;
#if PERSISTENT_BFS_CLUSTERS
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}

__device__ __forceinline__ int cluster_blocks() {
  int blocks = 1;
#if PERSISTENT_BFS_CLUSTERS
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
#endif
  return blocks;
}

// The barrier of the cluster in two halves, with work between that no other thread waits for.
// What a thread wrote before it arrived is visible to every thread of the cluster that has waited.
// Whole warps arrive and wait together, as at __syncthreads, which it is where the block has its
// cluster to itself (the assembler puts in both and asks how the kernel was launched).
//
// Cost: the report and the answer between multiprocessors, and a fence of all memory, not of shared
// memory alone; L1 is emptied.
__device__ __forceinline__ void cluster_arrive() {
#if PERSISTENT_BFS_CLUSTERS
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

// As cluster_arrive, but what this thread wrote is made visible to its own block only: by the
// block's barrier, since any fence waits for the thread's stores to global memory to be answered.
__device__ __forceinline__ void cluster_arrive_relaxed() {
#if PERSISTENT_BFS_CLUSTERS
  __syncthreads();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_wait() {
#if PERSISTENT_BFS_CLUSTERS
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  __syncthreads();
#endif
}

__device__ __forceinline__ void cluster_barrier() {
  cluster_arrive();
  cluster_wait();
}

// The address, in the shared memory of block `rank` of the cluster, of what is at `mine` in this
// block's own. Generic: loads, stores and atomics take it.
template <class T>
__device__ __forceinline__ T* shared_of(T* mine, [[maybe_unused]] int rank) {
#if PERSISTENT_BFS_CLUSTERS
  T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(mine), "r"(rank));
  return there;
#else
  return mine;
#endif
}

// The address, in block `rank` of the cluster, of what is at `mine` in this block's shared memory:
// for the words below only.
__device__ __forceinline__ shared_address shared_address_in(shared_address mine,
                                                            [[maybe_unused]] int rank) {
#if PERSISTENT_BFS_CLUSTERS
  shared_address there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(mine), "r"(rank));
  return there;
#else
  return mine;
#endif
}

__device__ __forceinline__ int load_cluster_at(shared_address address) {
#if PERSISTENT_BFS_CLUSTERS
  int value;
  asm volatile("ld.relaxed.cluster.shared::cluster.s32 %0, [%1];"
               : "=r"(value)
               : "r"(address)
               : "memory");
  return value;
#else
  return load_shared_at(address);
#endif
}

__device__ __forceinline__ unsigned fetch_or_cluster_if(bool wanted, shared_address address,
                                                        unsigned bits) {
#if PERSISTENT_BFS_CLUSTERS
  unsigned old = bits;
  asm volatile(
      "{.reg .pred p; setp.ne.u32 p, %3, 0;"
      " @p atom.relaxed.cluster.shared::cluster.or.b32 %0, [%1], %2;}"
      : "+r"(old)
      : "r"(address), "r"(bits), "r"(static_cast<unsigned>(wanted))
      : "memory");
  return old;
#else
  return fetch_or_shared_if(wanted, address, bits);
#endif
}

// The multiprocessor's own clock: a few cycles to read, where the device's takes as long as half a
// narrow level.
__device__ __forceinline__ unsigned long long multiprocessor_cycles() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
  return now;
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
template <class T>
inline T load_shared(const T* address) {
  return simt::load_relaxed(address);
}
inline int cluster_rank() { return simt::cluster_rank(); }
inline int cluster_blocks() { return simt::cluster_blocks(); }
inline void cluster_arrive(SIMT_HERE) { simt::cluster_arrive({file, line}); }
inline void cluster_wait(SIMT_HERE) { simt::cluster_wait({file, line}); }
inline void cluster_barrier(SIMT_HERE) {
  simt::cluster_arrive({file, line});
  simt::cluster_wait({file, line});
}
template <class T>
inline T* shared_of(T* mine, int rank, SIMT_HERE) {
  return static_cast<T*>(const_cast<void*>(simt::shared_of(mine, rank, {file, line})));
}
inline unsigned long long device_nanoseconds() { return 0; }
inline unsigned long long multiprocessor_cycles() { return 0; }
inline void count_lane_slots(unsigned slots) { simt::count_lane_slots(slots); }

using shared_address = char*;
inline shared_address shared_address_of(const void* pointer) {
  return static_cast<char*>(const_cast<void*>(pointer));
}
inline int load_shared_at(shared_address address) {
  return simt::load_relaxed(reinterpret_cast<const int*>(address));
}
inline int load_shared_if(bool wanted, shared_address address, int otherwise) {
  return wanted ? *reinterpret_cast<const int*>(address) : otherwise;
}
inline int load_shared_relaxed_if(bool wanted, shared_address address, int otherwise) {
  return wanted ? load_shared_at(address) : otherwise;
}
inline void store_shared_at(shared_address address, int value) {
  simt::store_relaxed(reinterpret_cast<int*>(address), value);
}
template <class T>
inline void store_shared_if(bool wanted, shared_address address, T value) {
  if (wanted) *reinterpret_cast<T*>(address) = value;
}
inline unsigned fetch_or_shared_if(bool wanted, shared_address address, unsigned bits) {
  return wanted ? atomicOr(reinterpret_cast<unsigned*>(address), bits) : bits;
}
inline int fetch_add_shared_if(bool wanted, shared_address address, int value) {
  return wanted ? atomicAdd(reinterpret_cast<int*>(address), value) : 0;
}
inline int4 load_row_if(bool wanted, const int4* row, int otherwise) {
  return wanted ? *row : int4{otherwise, otherwise, otherwise, otherwise};
}
inline int thread_in_block() { return threadIdx.x; }
inline int lane_in_warp() { return threadIdx.x % warpSize; }
inline void cluster_arrive_relaxed(SIMT_HERE) { simt::cluster_arrive({file, line}, false); }
inline shared_address shared_address_in(shared_address mine, int rank, SIMT_HERE) {
  return static_cast<char*>(const_cast<void*>(simt::shared_of(mine, rank, {file, line})));
}
inline int load_cluster_at(shared_address address) { return load_shared_at(address); }
inline unsigned fetch_or_cluster_if(bool wanted, shared_address address, unsigned bits) {
  return fetch_or_shared_if(wanted, address, bits);
}

}  // namespace persistent_bfs

#endif

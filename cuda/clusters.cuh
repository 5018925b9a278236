// Thread block clusters: neighbouring blocks of a grid that are resident together and reach each
// other's shared memory. From sm_90 on; before, and in a launch without clusters, each block is a
// cluster of its own. A block must not return while another one still reaches into it: end with a
// cluster barrier. Source: PTX's barrier.cluster and mapa.
#pragma once

#include "shared_words.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define PERSISTENT_BFS_CLUSTERS 1
#else
#define PERSISTENT_BFS_CLUSTERS 0
#endif

namespace persistent_bfs {

#ifdef __CUDACC__

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
//
// An assumption, which PTX does not grant: other blocks that have waited find this block's counters
// (not its slots, which are told by cluster_arrive) as they are. Shared memory has one place, where
// an atomic or a store is done by the time that the block's barrier lets its thread pass, and
// whoever reads it from elsewhere keeps no copy; so a load issued behind both barriers finds what
// was added before them. It holds on sm_90, where every answer was exact; on another architecture
// tests/test_clusters.py is to be run first.
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

#else

inline int cluster_rank() { return simt::cluster_rank(); }
inline int cluster_blocks() { return simt::cluster_blocks(); }
inline void cluster_arrive(SIMT_HERE) { simt::cluster_arrive({file, line}); }
inline void cluster_arrive_relaxed(SIMT_HERE) { simt::cluster_arrive({file, line}, false); }
inline void cluster_wait(SIMT_HERE) { simt::cluster_wait({file, line}); }
inline void cluster_barrier(SIMT_HERE) {
  simt::cluster_arrive({file, line});
  simt::cluster_wait({file, line});
}
template <class T>
inline T* shared_of(T* mine, int rank, SIMT_HERE) {
  return static_cast<T*>(const_cast<void*>(simt::shared_of(mine, rank, {file, line})));
}
inline shared_address shared_address_in(shared_address mine, int rank, SIMT_HERE) {
  return static_cast<char*>(const_cast<void*>(simt::shared_of(mine, rank, {file, line})));
}
inline int load_cluster_at(shared_address address) { return load_shared_at(address); }
inline unsigned fetch_or_cluster_if(bool wanted, shared_address address, unsigned bits) {
  return fetch_or_shared_if(wanted, address, bits);
}

#endif

}  // namespace persistent_bfs

// Shared memory by its 32-bit address, kept in one register. A generic pointer would cost the code
// around it two, and nvcc computes the address of a shared variable anew, from the block's rank in
// its cluster, wherever it is used. The predicated words keep a warp together where a branch would
// part it. Cost: an instruction each. Source: PTX.
#pragma once

#include "platform.cuh"

namespace persistent_bfs {

#ifdef __CUDACC__

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

// The bits as they were. No branch around it, as there is around one that is not always wanted.
__device__ __forceinline__ unsigned fetch_or_shared(shared_address address, unsigned bits) {
  unsigned old;
  asm volatile("atom.shared.or.b32 %0, [%1], %2;"
               : "=r"(old)
               : "r"(address), "r"(bits)
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

#else

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
inline unsigned fetch_or_shared(shared_address address, unsigned bits) {
  return atomicOr(reinterpret_cast<unsigned*>(address), bits);
}
inline int fetch_add_shared_if(bool wanted, shared_address address, int value) {
  return wanted ? atomicAdd(reinterpret_cast<int*>(address), value) : 0;
}

#endif

}  // namespace persistent_bfs

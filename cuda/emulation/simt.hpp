// CUDA's words for g++: a kernel that includes this compiles unchanged and runs on the CPU.
//
// Each CUDA thread is a fiber of the runtime (simt.cpp). The kernels are compiled with
// -fsanitize=thread but without its library: the runtime supplies the hooks, so that every plain
// load and store is counted, bounds-checked and a scheduling point. Words that CUDA makes atomic
// are not instrumented and happen at once, after a scheduling point of their own.
//
// Differences from a GPU: memory is sequentially consistent (a missing fence changes no result; the
// check for data races sees it), and __activemask() names only the calling lane, as CUDA allows.
#pragma once

#include <climits>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "runtime.hpp"

// Qualifiers. __restrict__ is g++'s own. A kernel must stay as it is: moved into its caller, which
// is not instrumented, its accesses would go unseen.
#define __global__ __attribute__((noipa))
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

// The runtime answers thread-local addresses with the running block's memory.
#define __shared__ static thread_local
#define PERSISTENT_BFS_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(simt::dynamic_shared())

// Exports emulate_<kernel>, which calls the kernel with copies of its arguments.
#define PERSISTENT_BFS_EMULATE(kernel, ...)                                             \
  extern "C" __attribute__((visibility("default"))) SIMT_ATOMIC void emulate_##kernel(  \
      const void* const* arguments) {                                                   \
    simt::call<__VA_ARGS__>(kernel, arguments, std::index_sequence_for<__VA_ARGS__>()); \
  }

namespace simt {

template <typename... Parameters, std::size_t... Positions>
SIMT_ATOMIC void call(void (*kernel)(Parameters...), const void* const* arguments,
                      std::index_sequence<Positions...>) {
  kernel(*static_cast<const Parameters*>(arguments[Positions])...);
}

template <typename T>
SIMT_ATOMIC T load_relaxed(const T* address) {
  relaxed_load_point(address, sizeof(T));
  return *address;
}

template <typename T>
SIMT_ATOMIC void store_relaxed(T* address, std::common_type_t<T> value) {
  relaxed_store_point(address, sizeof(T));
  *address = value;
}

// Replaces the value by change(value); gives the old one.
template <typename T, typename Change>
SIMT_ATOMIC T update(T* address, Change change) {
  atomic_point(address, sizeof(T));
  const T old = *address;
  *address = change(old);
  return old;
}

template <typename T>
constexpr bool atomic_type =
    std::is_same_v<T, int> || std::is_same_v<T, unsigned> ||
    std::is_same_v<T, unsigned long long> || std::is_same_v<T, long long> ||
    std::is_same_v<T, float> || std::is_same_v<T, double>;

template <typename T>
__forceinline__ std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8, "a lane exchanges at most 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
__forceinline__ T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
__forceinline__ T shuffle(Operation operation, unsigned mask, T value, unsigned source, Site site) {
  return from_bits<T>(collective(operation, mask, to_bits(value), source, site));
}

}  // namespace simt

// Who am I.
#define threadIdx (::simt::thread_index())
#define blockIdx (::simt::block_index())
#define blockDim (::simt::block_shape())
#define gridDim (::simt::grid_shape())
constexpr int warpSize = simt::WARP;

using uint3 = simt::Index;
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Vector types, aligned as CUDA aligns them.
#define SIMT_VECTORS(name, scalar, bytes)                                         \
  struct alignas(2 * bytes) name##2 { scalar x, y; };                             \
  struct alignas(4 * bytes > 16 ? 16 : 4 * bytes) name##4 { scalar x, y, z, w; }; \
  constexpr name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }         \
  constexpr name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }
SIMT_VECTORS(int, int, 4)
SIMT_VECTORS(uint, unsigned, 4)
SIMT_VECTORS(longlong, long long, 8)
SIMT_VECTORS(ulonglong, unsigned long long, 8)
SIMT_VECTORS(float, float, 4)
#undef SIMT_VECTORS

// Arithmetic.
template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}

constexpr int __popc(unsigned bits) { return __builtin_popcount(bits); }
constexpr int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
constexpr int __ffs(int bits) { return __builtin_ffs(bits); }
constexpr int __ffsll(long long bits) { return __builtin_ffsll(bits); }
constexpr int __clz(int bits) { return bits ? __builtin_clz(static_cast<unsigned>(bits)) : 32; }
constexpr int __clzll(long long bits) {
  return bits ? __builtin_clzll(static_cast<unsigned long long>(bits)) : 64;
}
constexpr unsigned __brev(unsigned bits) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (bits >> i & 1u) << (31 - i);
  return reversed;
}

// Loads and stores with cache hints are plain ones.
template <typename T>
__forceinline__ T __ldg(const T* address) {
  return *address;
}
template <typename T>
__forceinline__ T __ldca(const T* address) {
  return *address;
}
template <typename T>
__forceinline__ T __ldcg(const T* address) {
  return *address;
}
template <typename T>
__forceinline__ T __ldcs(const T* address) {
  return *address;
}
template <typename T>
__forceinline__ void __stcg(T* address, std::common_type_t<T> value) {
  *address = value;
}
template <typename T>
__forceinline__ void __stcs(T* address, std::common_type_t<T> value) {
  *address = value;
}
template <typename T>
__forceinline__ void __stwt(T* address, std::common_type_t<T> value) {
  *address = value;
}

// Memory order is sequential already: the compiler must not move accesses across, and whoever
// looks for data races wants to know.
__forceinline__ void __threadfence() { simt::fence(); }
__forceinline__ void __threadfence_block() { simt::fence(); }
__forceinline__ void __threadfence_system() { simt::fence(); }
__forceinline__ void __nanosleep(unsigned) { simt::pause(); }

// Atomics. The second parameter is not deduced, so that its literal may have another type.
#define SIMT_ATOMIC_WORD(name, result)                                                \
  template <typename T, std::enable_if_t<simt::atomic_type<T>, int> = 0>              \
  SIMT_ATOMIC T name(T* address, std::common_type_t<T> value) {                       \
    return simt::update(address, [value](T old) SIMT_ATOMIC -> T { return result; }); \
  }
SIMT_ATOMIC_WORD(atomicAdd, old + value)
SIMT_ATOMIC_WORD(atomicSub, old - value)
SIMT_ATOMIC_WORD(atomicMin, value < old ? value : old)
SIMT_ATOMIC_WORD(atomicMax, old < value ? value : old)
SIMT_ATOMIC_WORD(atomicAnd, old& value)
SIMT_ATOMIC_WORD(atomicOr, old | value)
SIMT_ATOMIC_WORD(atomicXor, old ^ value)
SIMT_ATOMIC_WORD(atomicExch, (static_cast<void>(old), value))
SIMT_ATOMIC_WORD(atomicInc, old >= value ? 0 : old + 1)
SIMT_ATOMIC_WORD(atomicDec, old == 0 || old > value ? value : old - 1)
#undef SIMT_ATOMIC_WORD

template <typename T, std::enable_if_t<simt::atomic_type<T>, int> = 0>
SIMT_ATOMIC T atomicCAS(T* address, std::common_type_t<T> expected, std::common_type_t<T> value) {
  return simt::update(address,
                      [=](T old) SIMT_ATOMIC -> T { return old == expected ? value : old; });
}

// Barriers of the block.
__forceinline__ void __syncthreads(SIMT_HERE) {
  simt::block_barrier(simt::Operation::syncthreads, false, {file, line});
}
__forceinline__ int __syncthreads_or(int predicate, SIMT_HERE) {
  return simt::block_barrier(simt::Operation::syncthreads_or, predicate != 0, {file, line});
}
__forceinline__ int __syncthreads_and(int predicate, SIMT_HERE) {
  return simt::block_barrier(simt::Operation::syncthreads_and, predicate != 0, {file, line});
}
__forceinline__ int __syncthreads_count(int predicate, SIMT_HERE) {
  return simt::block_barrier(simt::Operation::syncthreads_count, predicate != 0, {file, line});
}

// Collectives of a warp.
__forceinline__ unsigned __activemask() { return 1u << simt::lane(); }
__forceinline__ void __syncwarp(unsigned mask = 0xffffffffu, SIMT_HERE) {
  simt::collective(simt::Operation::syncwarp, mask, 0, 0, {file, line});
}
__forceinline__ unsigned __ballot_sync(unsigned mask, int predicate, SIMT_HERE) {
  return static_cast<unsigned>(
      simt::collective(simt::Operation::ballot, mask, predicate != 0, 0, {file, line}));
}
__forceinline__ int __any_sync(unsigned mask, int predicate, SIMT_HERE) {
  return static_cast<int>(
      simt::collective(simt::Operation::any, mask, predicate != 0, 0, {file, line}));
}
__forceinline__ int __all_sync(unsigned mask, int predicate, SIMT_HERE) {
  return static_cast<int>(
      simt::collective(simt::Operation::all, mask, predicate != 0, 0, {file, line}));
}

// A shuffle works in segments of width lanes; a source outside the segment means the own value.
template <typename T>
__forceinline__ T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, SIMT_HERE) {
  const unsigned last = static_cast<unsigned>(width) - 1;
  const unsigned from = (simt::lane() & ~last) | (static_cast<unsigned>(source) & last);
  return simt::shuffle(simt::Operation::shuffle, mask, value, from, {file, line});
}
template <typename T>
__forceinline__ T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                                 SIMT_HERE) {
  const unsigned own = simt::lane(), inside = own & (static_cast<unsigned>(width) - 1);
  return simt::shuffle(simt::Operation::shuffle_up, mask, value, delta > inside ? own : own - delta,
                       {file, line});
}
template <typename T>
__forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                                   SIMT_HERE) {
  const unsigned own = simt::lane(), last = static_cast<unsigned>(width) - 1;
  return simt::shuffle(simt::Operation::shuffle_down, mask, value,
                       delta > last - (own & last) ? own : own + delta, {file, line});
}
template <typename T>
__forceinline__ T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize,
                                  SIMT_HERE) {
  const unsigned own = simt::lane(), from = own ^ static_cast<unsigned>(bits);
  return simt::shuffle(simt::Operation::shuffle_xor, mask, value,
                       from > (own | (static_cast<unsigned>(width) - 1)) ? own : from,
                       {file, line});
}

template <typename T>
__forceinline__ unsigned __match_any_sync(unsigned mask, T value, SIMT_HERE) {
  return static_cast<unsigned>(
      simt::collective(simt::Operation::match_any, mask, simt::to_bits(value), 0, {file, line}));
}
template <typename T>
__forceinline__ unsigned __match_all_sync(unsigned mask, T value, int* all, SIMT_HERE) {
  const auto lanes = static_cast<unsigned>(
      simt::collective(simt::Operation::match_all, mask, simt::to_bits(value), 0, {file, line}));
  *all = lanes != 0;
  return lanes;
}

// Widened to 64 bits with its sign, one order serves int and unsigned.
#define SIMT_REDUCE(word, operation)                                                         \
  template <typename T>                                                                      \
  __forceinline__ T word(unsigned mask, T value, SIMT_HERE) {                                \
    static_assert(std::is_same_v<T, int> || std::is_same_v<T, unsigned>, "32-bit integers"); \
    return static_cast<T>(simt::collective(                                                  \
        simt::Operation::operation, mask,                                                    \
        static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), 0, {file, line}));     \
  }
SIMT_REDUCE(__reduce_add_sync, reduce_add)
SIMT_REDUCE(__reduce_min_sync, reduce_min)
SIMT_REDUCE(__reduce_max_sync, reduce_max)
SIMT_REDUCE(__reduce_and_sync, reduce_and)
SIMT_REDUCE(__reduce_or_sync, reduce_or)
SIMT_REDUCE(__reduce_xor_sync, reduce_xor)
#undef SIMT_REDUCE

namespace cooperative_groups {

class thread_block {
 public:
  static void sync(SIMT_HERE) { __syncthreads(file, line); }
  static unsigned thread_rank() { return threadIdx.x; }
  static unsigned size() { return blockDim.x; }
  static unsigned num_threads() { return blockDim.x; }
};

class grid_group {
 public:
  static void sync(SIMT_HERE) { simt::grid_barrier({file, line}); }
  static bool is_valid() { return true; }
  static unsigned long long thread_rank() {
    return static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  }
  static unsigned long long block_rank() { return blockIdx.x; }
  static unsigned long long num_blocks() { return gridDim.x; }
  static unsigned long long num_threads() {
    return static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  }
  static unsigned long long size() { return num_threads(); }
};

inline thread_block this_thread_block() { return {}; }
inline grid_group this_grid() { return {}; }
template <typename Group>
__forceinline__ void sync(const Group& group, SIMT_HERE) {
  group.sync(file, line);
}

}  // namespace cooperative_groups

// A WHILE node's condition: the handle is the address of the word that the device keeps for it.
using cudaGraphConditionalHandle = unsigned long long;
SIMT_ATOMIC inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) {
  *reinterpret_cast<std::uint32_t*>(handle) = value;
}

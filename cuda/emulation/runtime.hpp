// What the emulated CUDA words (simt.hpp, compiled with the kernels) ask of the runtime (simt.cpp).
//
// These functions are opaque calls on purpose: the compiler must assume that other threads ran
// meanwhile, exactly as nvcc must at a barrier or an atomic.
#pragma once

#include <cstddef>
#include <cstdint>

// Not instrumented, hence not a scheduling point in itself: for code that acts at once.
#define SIMT_ATOMIC __attribute__((no_sanitize("thread")))

namespace simt {

constexpr unsigned WARP = 32;
constexpr unsigned char POISON = 0xCC;  // fills shared memory at block start, and lost shuffles

struct Index {
  unsigned x, y, z;
};

// Where in the kernel sources a thread waits. SIMT_HERE, as last parameters: the caller's line.
struct Site {
  const char* file;
  int line;
};
#define SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

enum class Operation : std::uint8_t {
  none,
  syncthreads,
  syncthreads_or,
  syncthreads_and,
  syncthreads_count,
  grid_sync,
  cluster_barrier,
  syncwarp,
  ballot,
  any,
  all,
  shuffle,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  match_any,
  match_all,
  reduce_add,
  reduce_min,
  reduce_max,
  reduce_and,
  reduce_or,
  reduce_xor,
};

// What messages call them, in the same order.
constexpr const char* NAMES[] = {"nothing",           "__syncthreads",       "__syncthreads_or",
                                 "__syncthreads_and", "__syncthreads_count", "grid sync",
                                 "cluster barrier",   "__syncwarp",          "__ballot_sync",
                                 "__any_sync",        "__all_sync",          "__shfl_sync",
                                 "__shfl_up_sync",    "__shfl_down_sync",    "__shfl_xor_sync",
                                 "__match_any_sync",  "__match_all_sync",    "__reduce_add_sync",
                                 "__reduce_min_sync", "__reduce_max_sync",   "__reduce_and_sync",
                                 "__reduce_or_sync",  "__reduce_xor_sync"};

// Who is running: constant within a thread, so the compiler may keep the answer.
__attribute__((const)) Index thread_index();
__attribute__((const)) Index block_index();
__attribute__((const)) Index block_shape();
__attribute__((const)) Index grid_shape();
__attribute__((const)) unsigned lane();
void* dynamic_shared();

// Barriers of a block give the vote's outcome; the grid's none.
int block_barrier(Operation operation, bool vote, Site site);
void grid_barrier(Site site);

// A launch without clusters has clusters of one block.
__attribute__((const)) int cluster_rank();
__attribute__((const)) int cluster_blocks();
void cluster_arrive(Site site, bool for_all = true);  // or for its own block only
void cluster_wait(Site site);
const void* shared_of(const void* mine, int rank, Site site);

// Every lane of mask deposits a value; each gets its result when the last one has come.
// argument: the source lane of a shuffle.
std::uint64_t collective(Operation operation, unsigned mask, std::uint64_t value, unsigned argument,
                         Site site);

// Called before an access that happens at once: checked, counted, and a scheduling point.
void atomic_point(void* address, std::size_t bytes);
void relaxed_load_point(const void* address, std::size_t bytes);
void relaxed_store_point(void* address, std::size_t bytes);

// Checked as a read; nothing comes of it.
void prefetch(const void* address, std::size_t bytes);

// In a launch that may begin early a thread has to before it touches global memory.
void wait_for_grid_in_front();

void fence();
void pause();  // lets others run
void count_lane_slots(unsigned slots);
unsigned long long ticks();  // one more each time: no clock, but later is more

}  // namespace simt

// What the runtime knows of the launch that is running: its threads, warps and blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fiber.hpp"
#include "launch.hpp"
#include "memory.hpp"
#include "races.hpp"
#include "runtime.hpp"

namespace simt {

struct Warp {
  unsigned live = 0;     // lanes that have not returned
  unsigned waiting = 0;  // lanes that wait in a collective
};

struct Block;

// Where a thread stands at its cluster's barrier, which it waits at after it has arrived.
enum class Arrival : std::uint8_t { none, arrived, complete };

// One CUDA thread.
struct Fiber {
  void* stack_pointer;
  char* stack;
  Block* block;
  Warp* warp;
  unsigned thread;
  bool returned = false;
  bool is_early = false;  // has yet to wait for the grid in front

  // What it waits for, where, and what it brought along.
  Operation waits = Operation::none;
  Site site{};
  unsigned mask = 0;
  unsigned argument = 0;
  std::uint64_t value = 0;
  std::uint64_t result = 0;

  Arrival arrival = Arrival::none;
  Site arrived_at{};

  // The last atomic or relaxed access, and what it saw.
  const void* polled = nullptr;
  std::uint64_t seen = 0;

  unsigned lane() const { return thread % WARP; }
};

struct Cluster {
  Block* blocks;
  char* arenas;  // of its blocks, one behind the other
  unsigned live;
  unsigned arrived = 0;  // at its barrier
  bool orders = true;    // whether the barrier orders what its blocks did, not only what each did
};

struct Block {
  unsigned index;
  Cluster* cluster;
  Fiber* fibers;
  char* arena;  // its shared memory
  unsigned live;
  unsigned arrived = 0;                     // at a barrier
  unsigned votes = 0;                       // of those, with a true predicate
  const Fiber* first_at_cluster = nullptr;  // the first of its threads at the cluster's barrier
};

// splitmix64, by G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators".
struct Random {
  std::uint64_t state;
  std::uint64_t operator()() {
    std::uint64_t z = state += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }
};

struct Run {
  // What every access touches.
  Fiber* current = nullptr;
  char* stack = nullptr;  // of the current thread
  char* arena = nullptr;  // of its block
  std::size_t arena_bytes = 0;
  const char* peers = nullptr;      // the arenas of the block's cluster
  std::size_t peer_bytes = 0;       // their size; 0 where a block has its cluster to itself
  std::uint64_t points = 0;         // scheduling points passed, by all threads
  std::uint64_t switch_at = ~0ull;  // the point at which the current thread must leave
  unsigned park_chance = 0;         // of 256, at a plain write
  bool parks_spinners = false;
  bool observes = false;
  SimtCounters counters{};
  Memory memory;

  // Observers.
  Races races;
  SimtAccess* unsettled = nullptr;  // the watched write whose outcome is not in the log yet
  const SimtItem* unsettled_item = nullptr;

  // The schedule.
  std::uint64_t slice_start = 0;
  std::uint64_t slice_limit = 0;       // of adversarial slices
  std::uint64_t sync_points_left = 0;  // of a slice of the random schedule
  std::uint64_t log_position = 0;      // of a replay
  bool is_random = false;
  bool detects_spins = false;
  Random random{0};
  FiberSet ready;
  FiberSet parked;

  // The launch, and the wave of blocks that runs.
  void (*kernel)(const void* const*) = nullptr;
  const void* const* arguments = nullptr;
  SimtLaunch* launch = nullptr;
  const Library* library = nullptr;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::vector<Block> blocks;
  std::vector<Cluster> clusters;
  std::vector<char> arenas;
  std::size_t arena_stride = 0;
  Stacks stacks;
  unsigned alive = 0;         // threads that have not returned
  unsigned grid_arrived = 0;  // threads at a grid barrier
  unsigned early = 0;         // threads that have yet to wait for the grid in front

  // Where to go when the wave is over, and what to say if it went wrong.
  void* host_stack_pointer = nullptr;
  char* error = nullptr;
  std::size_t error_bytes = 0;
  bool failed = false;
};

inline Run run;  // a library runs one launch at a time

inline unsigned id_of(const Fiber& fiber) {
  return static_cast<unsigned>(&fiber - run.fibers.data());
}

// Fibers are started and left here alone.
inline void go_to(Fiber& fiber, void** save) {
  run.current = &fiber;
  run.stack = fiber.stack;
  run.arena = fiber.block->arena;
  run.peers = fiber.block->cluster->arenas;
  ++run.counters.fiber_switches;
  simt_switch(save, fiber.stack_pointer);
}

// Leaves the fibers where they are: kernels own nothing that needs undoing.
[[noreturn]] inline void go_to_host() {
  void* abandoned;
  simt_switch(&abandoned, run.host_stack_pointer);
  __builtin_unreachable();
}

}  // namespace simt

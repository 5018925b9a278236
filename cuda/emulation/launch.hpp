// The C interface through which a host program launches an emulated kernel.
// persistent_bfs/device/emulated.py mirrors these structures with ctypes.
#pragma once

#include <cstddef>
#include <cstdint>

struct SimtRange {  // memory that kernels may touch
  std::uint64_t base;
  std::uint64_t bytes;
  const char* name;
  std::uint64_t writable;
};

struct SimtStep {  // one line of a recorded schedule
  std::uint32_t fiber;
  std::uint32_t points;  // scheduling points until it was switched away; 0: until it waited
};

// EXIT: a block has returned, and its shared memory with it.
enum SimtKind : std::uint32_t { READ = 1, WRITE = 2, ATOMIC = 4, SHARED = 8, EXIT = 16 };

struct SimtAccess {          // one access, as seen when it happens
  std::uint64_t address;     // of SHARED memory: whose block it is times 2^32, and the offset
  std::uint64_t step;        // scheduling points the launch had passed
  std::uint64_t before;      // if watched: what the item held, up to 8 bytes
  std::uint64_t after;       // and what it holds then
  std::uint64_t callers[4];  // return addresses inside the library, innermost first
  std::uint32_t block;
  std::uint32_t thread;
  std::uint32_t bytes;
  std::uint32_t kind;  // SimtKind, added up
};

struct SimtRace {  // two accesses that nothing orders, the first of `count` from the same code
  SimtAccess first;
  SimtAccess second;
  std::uint64_t count;
};

struct SimtItem {  // memory whose accesses are logged
  std::uint64_t base;
  std::uint64_t bytes;  // at most 8
};

enum SimtSchedule : std::uint32_t { ROUNDROBIN, RANDOM, ADVERSARIAL, REPLAY };

struct SimtLaunch {
  std::uint32_t blocks;
  std::uint32_t threads;
  std::uint32_t dynamic_shared_bytes;
  std::uint32_t cooperative;
  std::uint32_t resident_blocks;  // blocks that run side by side, whole clusters; 0: all
  std::uint32_t cluster;          // blocks of a cluster
  std::uint32_t schedule;
  std::uint32_t dependent;  // its threads have to wait for the grid in front
  std::uint64_t seed;
  std::uint64_t launch_index;  // with the seed, starts the random numbers
  std::uint64_t point_limit;   // scheduling points after which a launch counts as livelocked
  char* stacks;                // memory for the stacks of all threads that are resident at once
  std::uint64_t stack_bytes;   // its size
  const SimtRange* ranges;     // what kernels may touch, beside the library's own data
  std::uint64_t range_count;
  SimtStep* log;  // recorded into; for REPLAY, read
  std::uint64_t log_capacity;
  std::uint64_t log_count;  // for REPLAY, given; else set

  SimtRace* races;  // to be filled; none: races are not looked for
  std::uint64_t race_capacity;
  std::uint64_t race_count;  // set; may exceed the capacity, as may the next
  const SimtItem* items;
  std::uint64_t item_count;
  SimtAccess* watched;  // to be filled
  std::uint64_t watched_capacity;
  std::uint64_t watched_count;

  std::uint64_t hears_interrupts;  // it ends at a SIGINT that somebody else handles
};

struct SimtCounters {         // a launch adds to them
  std::uint64_t plain_loads;  // of global memory
  std::uint64_t plain_stores;
  std::uint64_t shared_accesses;  // plain ones
  std::uint64_t atomics;
  std::uint64_t relaxed_loads;
  std::uint64_t relaxed_stores;
  std::uint64_t warp_collectives;
  std::uint64_t block_barriers;
  std::uint64_t grid_barriers;
  std::uint64_t cluster_barriers;
  std::uint64_t lane_slots;
  std::uint64_t fiber_switches;
};

#define SIMT_EXPORT extern "C" __attribute__((visibility("default")))

// 0, or 1 with one line in error.
SIMT_EXPORT int simt_launch(void (*kernel)(const void* const*), const void* const* arguments,
                            SimtLaunch* launch, SimtCounters* counters, char* error,
                            std::size_t error_bytes);

// What is made of each access when someone wants to know: data races, and a log of watched items.
//
// Costs nothing but a test an access otherwise. Observers take no part in the schedule: a seed
// gives the same interleaving with and without them.
#pragma once

#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "state.hpp"

namespace simt {

constexpr unsigned MAX_CHECKED_THREADS = 1 << 16;  // a thread's clock has an entry for each

inline bool checks_races() { return __builtin_expect(run.observes, false) && run.launch->races; }

// Where the thread is: past this function, observe and what called that.
__attribute__((noinline)) inline void find_callers(SimtAccess& access) {
  struct Walk {
    SimtAccess& access;
    int depth;
  } walk{access, -3};
  const auto step = [](_Unwind_Context* context, void* pointer) {
    Walk& now = *static_cast<Walk*>(pointer);
    if (now.depth >= static_cast<int>(std::size(now.access.callers))) return _URC_END_OF_STACK;
    if (now.depth >= 0) now.access.callers[now.depth] = _Unwind_GetIP(context) - run.library->base;
    ++now.depth;
    return _URC_NO_REASON;
  };
  _Unwind_Backtrace(step, &walk);
}

inline std::uint64_t value_of(const SimtItem& item) {
  std::uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(item.base), item.bytes);
  return value;
}

// Completes the log's last line, before anyone else can write: an access is told of before it
// happens.
inline void settle() {
  if (!run.unsettled) return;
  run.unsettled->after = value_of(*run.unsettled_item);
  run.unsettled = nullptr;
}

inline void log(const SimtAccess& access, const SimtItem& item) {
  settle();
  SimtLaunch& launch = *run.launch;
  if (launch.watched_count++ >= launch.watched_capacity) return;
  SimtAccess& line = launch.watched[launch.watched_count - 1];
  line = access;
  line.address = item.base;
  line.before = line.after = value_of(item);
  if (!(access.kind & WRITE)) return;
  run.unsettled = &line;
  run.unsettled_item = &item;
}

// Its own block's shared memory or that of another of its cluster.
inline std::uint64_t place_in_shared(const char* address) {
  const Cluster& cluster = *run.current->block->cluster;
  const std::size_t offset = address - cluster.arenas;
  const std::uint64_t owner = cluster.blocks->index + offset / run.arena_stride;
  return owner << 32 | offset % run.arena_stride;
}

// Called when nothing can come between this and the access. The caller is the return address into
// the kernel, or null if it must be looked for.
__attribute__((noinline)) inline void observe(const void* pointer, std::size_t bytes, unsigned kind,
                                              const void* caller) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  const bool shared = kind & SHARED;
  SimtLaunch& launch = *run.launch;
  const auto touches = [=](const SimtItem& item) {
    return !shared && address < item.base + item.bytes && item.base < address + bytes;
  };
  const SimtItem* const end = launch.items + launch.item_count;
  const SimtItem* const watched = std::find_if(launch.items, end, touches);
  const bool checked = checks_races() && (shared || !run.memory.read_only(address));
  if (!checked && watched == end) return;

  const Fiber& self = *run.current;
  SimtAccess access{};
  access.address = shared ? place_in_shared(static_cast<const char*>(pointer)) : address;
  access.step = run.points;
  access.block = self.block->index;
  access.thread = self.thread;
  access.bytes = static_cast<std::uint32_t>(bytes);
  access.kind = kind;
  if (caller)
    access.callers[0] = reinterpret_cast<std::uint64_t>(caller) - run.library->base;
  else
    find_callers(access);
  if (checked) run.races.see(access, id_of(self), launch);
  for (const SimtItem* item = watched; item != end; item = std::find_if(item + 1, end, touches))
    log(access, *item);
}

// The last thread of a block has returned.
inline void observe_exit() {
  const Fiber& self = *run.current;
  const Block& block = *self.block;
  run.races.clocks.meet(id_of(*block.fibers), run.launch->threads);
  SimtAccess exit{};
  exit.address = place_in_shared(block.arena);
  exit.step = run.points;
  exit.block = block.index;
  exit.thread = self.thread;
  exit.bytes = static_cast<std::uint32_t>(run.arena_bytes);
  exit.kind = EXIT | SHARED;
  run.races.see_exit(exit, id_of(self), *run.launch);
}

}  // namespace simt

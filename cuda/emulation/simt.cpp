// The runtime of the emulated device: CUDA threads as fibers, under a schedule that one controls.
//
// Build. Kernels:  g++ -std=c++17 -O2 -fPIC -fvisibility=hidden -fno-gnu-unique -fsanitize=thread
//                      -mtls-dialect=gnu -I cuda -c kernels.cpp
//        Runtime:  g++ -std=c++17 -O2 -fPIC -fvisibility=hidden -c simt.cpp
//        Library:  g++ -shared kernels.o simt.o -o library.so       (no -fsanitize: no libtsan)
//
// The kernels' plain accesses call __tsan_read* and __tsan_write*, defined below. `__shared__`
// variables are thread-local ones, whose addresses come from our __tls_get_addr: the running
// block's memory, poisoned when the block starts. A launch runs waves of resident blocks.
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>

#include "collectives.hpp"
#include "report.hpp"
#include "schedule.hpp"
#include "state.hpp"

namespace simt {

constexpr unsigned MAX_THREADS = 1024;
constexpr std::size_t STACK_RESERVE = 16 * 1024;  // what the runtime itself may need, to complain
constexpr std::size_t LINE = 128;                 // shared memory is aligned to, and kept apart by

enum class Space { local, shared, global };

// The shared memory of another block of the cluster.
__attribute__((noinline)) static void check_peer(const char* address, std::size_t bytes,
                                                 bool write) {
  const std::size_t offset = address - run.peers, place = offset % run.arena_stride;
  const Block& peer = run.current->block->cluster->blocks[offset / run.arena_stride];
  if (!peer.live || place >= run.arena_bytes || run.arena_bytes - place < bytes)
    fail_access(address, bytes, write);
}

__attribute__((noinline)) static void check_waited() {
  if (run.current->is_early)
    fail_here("touches global memory before it waits for the grid in front");
}

static inline Space check(const void* pointer, std::size_t bytes, bool write) {
  const char* const address = static_cast<const char*>(pointer);
  if (static_cast<std::size_t>(address - run.stack) < STACK_BYTES) return Space::local;
  const std::size_t offset = address - run.arena;
  if (offset < run.arena_bytes) {
    if (run.arena_bytes - offset < bytes) fail_access(address, bytes, write);
    return Space::shared;
  }
  if (static_cast<std::size_t>(address - run.peers) < run.peer_bytes) {
    check_peer(address, bytes, write);
    return Space::shared;
  }
  if (!run.memory.allows(reinterpret_cast<std::uint64_t>(address), bytes, write))
    fail_access(address, bytes, write);
  if (__builtin_expect(run.early != 0, false)) check_waited();
  return Space::global;
}

// Comes between an atomic's or relaxed access's scheduling point and the access.
static inline void tell(const void* address, std::size_t bytes, Space space, unsigned kind) {
  if (__builtin_expect(!run.observes, true)) return;
  observe(address, bytes, space == Space::shared ? kind | SHARED : kind, nullptr);
  asm volatile("");  // no jump instead of the call: observe counts the frames
}

// Kept out of the hooks, which then need to save no registers.
__attribute__((noinline)) static void observed_point(const void* address, std::size_t bytes,
                                                     bool write, Space space, void* caller) {
  point(write);
  observe(address, bytes, (write ? WRITE : READ) | (space == Space::shared ? SHARED : 0u), caller);
}

#define SIMT_INLINE static inline __attribute__((always_inline))

// In a hook: its caller is the kernel.
SIMT_INLINE void access(const void* address, std::size_t bytes, bool write) {
  const Space space = check(address, bytes, write);
  switch (space) {
    case Space::local:
      return;
    case Space::shared:
      ++run.counters.shared_accesses;
      break;
    case Space::global:
      ++(write ? run.counters.plain_stores : run.counters.plain_loads);
  }
  if (__builtin_expect(run.observes, false))
    return observed_point(address, bytes, write, space, __builtin_return_address(0));
  point(write);
}

SIMT_INLINE void aligned_access(const void* address, std::size_t bytes, bool write) {
  if (reinterpret_cast<std::uint64_t>(address) % std::min<std::size_t>(bytes, 8))
    fail_misaligned(address, bytes, write);
  access(address, bytes, write);
}

static std::size_t static_bytes() { return (run.library->shared_bytes + 15) / 16 * 16; }

[[noreturn]] static void finish() {
  Fiber& self = *run.current;
  Block& block = *self.block;
  // Whoever returns early lets the next grid go on before the one in front is over.
  if (self.is_early) fail_here("returned, and did not wait for the grid in front");
  self.returned = true;
  self.warp->live &= ~(1u << self.lane());
  if (const Fiber* other = waits_for_lane(self))
    fail_here("returned, but " + who(*other) + " waits for it in " + what(*other));
  if (run.grid_arrived)
    for (const Fiber& other : run.fibers)
      if (other.waits == Operation::grid_sync)
        fail_here("returned, but " + who(other) + " waits for it in " + what(other));
  --run.alive;
  // CUDA's barriers of blocks and clusters wait for those that are left.
  if (--block.live && block.arrived == block.live) release(block, waits_at_barrier(block)->waits);
  Cluster& cluster = *block.cluster;
  if (checks_races()) {
    run.races.clocks.arrive(id_of(self));
    if (!block.live && run.launch->cluster > 1) observe_exit();
  }
  if (self.arrival == Arrival::arrived) --cluster.arrived;
  self.arrival = Arrival::none;
  if (--cluster.live && cluster.arrived == cluster.live) release(cluster);
  if (run.alive) wait();
  record(0);
  go_to_host();
}

static void thread_main() {
  run.kernel(run.arguments);
  finish();
}

static void run_wave(unsigned first_block, unsigned blocks) {
  const unsigned threads = run.launch->threads;
  const unsigned warps = (threads + WARP - 1) / WARP;
  const unsigned fibers = blocks * threads;
  run.fibers.assign(fibers, Fiber{});
  run.warps.assign(std::size_t{blocks} * warps, Warp{});
  run.blocks.assign(blocks, Block{});
  const unsigned cluster_blocks = run.launch->cluster;
  run.clusters.assign(blocks / cluster_blocks, Cluster{});
  run.ready.reset(fibers);
  run.parked.reset(fibers);
  run.alive = fibers;
  run.grid_arrived = 0;
  run.early = run.launch->dependent ? fibers : 0;
  run.arena_bytes = static_bytes() + run.launch->dynamic_shared_bytes;
  run.arena_stride = (run.arena_bytes + LINE - 1) / LINE * LINE + LINE;
  run.arenas.assign(blocks * run.arena_stride + LINE, static_cast<char>(POISON));
  run.peer_bytes = cluster_blocks > 1 ? cluster_blocks * run.arena_stride : 0;
  char* arena = run.arenas.data();
  arena += -reinterpret_cast<std::uintptr_t>(arena) % LINE;

  if (checks_races()) run.races.clocks.start_wave(first_block * threads, fibers);

  unsigned id = 0;
  for (Block& block : run.blocks) {
    const auto b = static_cast<unsigned>(&block - run.blocks.data());
    block.index = first_block + b;
    block.fibers = &run.fibers[id];
    block.arena = arena + b * run.arena_stride;
    block.live = threads;
    block.cluster = &run.clusters[b / cluster_blocks];
    if (b % cluster_blocks == 0) *block.cluster = {&block, block.arena, cluster_blocks * threads};
    for (unsigned thread = 0; thread < threads; ++thread, ++id) {
      Fiber& fiber = run.fibers[id];
      fiber.stack = run.stacks[id];
      fiber.stack_pointer = run.stacks.start(id, thread_main);
      fiber.block = &block;
      fiber.warp = &run.warps[b * warps + thread / WARP];
      fiber.warp->live |= 1u << thread % WARP;
      fiber.thread = thread;
      fiber.is_early = run.launch->dependent;
      run.ready.insert(id);
    }
  }
  run.current = &run.fibers.back();
  go_to(run.fibers[pick(fibers - 1)], &run.host_stack_pointer);
}

static unsigned resident_blocks(const SimtLaunch& launch) {
  return launch.resident_blocks ? launch.resident_blocks : launch.blocks;
}

static std::string refusal(const SimtLaunch& launch) {
  if (launch.blocks == 0 || launch.threads == 0) return "a launch of no threads";
  if (launch.threads > MAX_THREADS)
    return text("%u threads in a block; the limit is %u", launch.threads, MAX_THREADS);
  const std::uint64_t threads = std::uint64_t{launch.blocks} * launch.threads;
  if (launch.races && threads > MAX_CHECKED_THREADS)
    return text("%llu threads; data races are looked for in launches of up to %u",
                static_cast<unsigned long long>(threads), MAX_CHECKED_THREADS);
  if (launch.cooperative && launch.resident_blocks && launch.resident_blocks < launch.blocks)
    return text("a cooperative launch of %u blocks, of which %u are resident at once",
                launch.blocks, launch.resident_blocks);
  if (launch.cluster == 0 || launch.blocks % launch.cluster ||
      resident_blocks(launch) % launch.cluster)
    return text("%u blocks, %u of them resident at once, in clusters of %u", launch.blocks,
                resident_blocks(launch), launch.cluster);
  const std::uint64_t resident = std::min(launch.blocks, resident_blocks(launch));
  if (launch.stack_bytes < resident * launch.threads * STACK_BYTES)
    return text("%llu threads at once and stacks for fewer",
                static_cast<unsigned long long>(resident * launch.threads));
  return {};
}

Index thread_index() { return {run.current->thread, 0, 0}; }
Index block_index() { return {run.current->block->index, 0, 0}; }
Index block_shape() { return {run.launch->threads, 1, 1}; }
Index grid_shape() { return {run.launch->blocks, 1, 1}; }
unsigned lane() { return run.current->lane(); }
int cluster_rank() {
  return static_cast<int>(run.current->block - run.current->block->cluster->blocks);
}
int cluster_blocks() { return static_cast<int>(run.launch->cluster); }

const void* shared_of(const void* mine, int rank, Site site) {
  const std::size_t offset = static_cast<const char*>(mine) - run.arena;
  const auto call = [&] { return "shared_of" + where(site); };
  if (offset >= run.arena_bytes)
    fail_here(call() + text(": %p is not in the block's shared memory", mine));
  if (rank < 0 || rank >= cluster_blocks())
    fail_here(call() +
              text(": there is no block of rank %d in a cluster of %d", rank, cluster_blocks()));
  return run.peers + rank * run.arena_stride + offset;
}

void* dynamic_shared() { return run.arena + static_bytes(); }

void atomic_point(void* address, std::size_t bytes) {
  const Space space = check(address, bytes, true);
  ++run.counters.atomics;
  sync_point(spins(address, bytes));
  tell(address, bytes, space, ATOMIC | READ | WRITE);
}

void relaxed_load_point(const void* address, std::size_t bytes) {
  const Space space = check(address, bytes, false);
  ++run.counters.relaxed_loads;
  sync_point(spins(address, bytes));
  tell(address, bytes, space, ATOMIC | READ);
}

void relaxed_store_point(void* address, std::size_t bytes) {
  const Space space = check(address, bytes, true);
  ++run.counters.relaxed_stores;
  sync_point(false, must_park());
  tell(address, bytes, space, ATOMIC | WRITE);
}

void prefetch(const void* address, std::size_t bytes) { check(address, bytes, false); }

void wait_for_grid_in_front() {
  run.early -= run.current->is_early;
  run.current->is_early = false;
}

void fence() {
  if (checks_races()) run.races.clocks.fence(id_of(*run.current));
}

void pause() { sync_point(run.launch->schedule != REPLAY); }

void count_lane_slots(unsigned slots) { run.counters.lane_slots += slots; }

unsigned long long ticks() {
  static unsigned long long told = 0;
  return ++told;
}

}  // namespace simt

int simt_launch(void (*kernel)(const void* const*), const void* const* arguments,
                SimtLaunch* launch, SimtCounters* counters, char* error, std::size_t error_bytes) {
  using simt::run;
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  static const simt::Library library;

  const std::string refused = simt::refusal(*launch);
  if (!refused.empty()) {
    std::snprintf(error, error_bytes, "%s", refused.c_str());
    return 1;
  }
  run.kernel = kernel;
  run.arguments = arguments;
  run.launch = launch;
  run.counters = *counters;
  run.error = error;
  run.error_bytes = error_bytes;
  run.failed = false;
  run.stacks = simt::Stacks(launch->stacks);
  run.library = &library;
  run.observes = launch->races || launch->item_count;
  run.unsettled = nullptr;
  launch->race_count = launch->watched_count = 0;
  if (launch->schedule != REPLAY) launch->log_count = 0;
  simt::start_schedule(*launch);
  const simt::Interrupts interrupts(launch->hears_interrupts);
  try {
    run.memory.reset(launch->ranges, launch->range_count, library.data);
    if (launch->races) {
      run.races.start();
      run.races.clocks.start(launch->blocks * launch->threads);
    }
    const unsigned resident = simt::resident_blocks(*launch);
    for (unsigned first = 0; first < launch->blocks && !run.failed; first += resident)
      simt::run_wave(first, std::min(resident, launch->blocks - first));
    if (run.failed) simt::record(0);
    simt::settle();
  } catch (const std::exception& problem) {
    std::snprintf(error, error_bytes, "the emulation ran out of memory: %s", problem.what());
    run.failed = true;
  }
  *counters = run.counters;
  return run.failed;
}

#define SIMT_HOOK extern "C" __attribute__((visibility("hidden")))
#define SIMT_HOOKS(bytes)                                                                 \
  SIMT_HOOK void __tsan_read##bytes(void* p) { simt::aligned_access(p, bytes, false); }   \
  SIMT_HOOK void __tsan_write##bytes(void* p) { simt::aligned_access(p, bytes, true); }   \
  SIMT_HOOK void __tsan_unaligned_read##bytes(void* p) { simt::access(p, bytes, false); } \
  SIMT_HOOK void __tsan_unaligned_write##bytes(void* p) { simt::access(p, bytes, true); }
SIMT_HOOKS(1)
SIMT_HOOKS(2)
SIMT_HOOKS(4)
SIMT_HOOKS(8)
SIMT_HOOKS(16)
SIMT_HOOK void __tsan_read_range(void* p, std::size_t bytes) { simt::access(p, bytes, false); }
SIMT_HOOK void __tsan_write_range(void* p, std::size_t bytes) { simt::access(p, bytes, true); }
SIMT_HOOK void __tsan_vptr_update(void* p, void*) { simt::access(p, sizeof(void*), true); }
SIMT_HOOK void __tsan_init() {}
SIMT_HOOK void __tsan_func_exit() {}
SIMT_HOOK void __tsan_func_entry(void*) {
  const auto* here = static_cast<const char*>(__builtin_frame_address(0));
  if (here < simt::run.stack + simt::STACK_RESERVE)
    simt::fail_here(simt::text("needs more than %zu bytes of local memory",
                               simt::STACK_BYTES - simt::STACK_RESERVE));
}

// Thread-local variables of this library are __shared__ ones: they live in the block's memory.
struct TlsIndex {
  std::size_t module, offset;
};
SIMT_HOOK void* __tls_get_addr(TlsIndex* index) { return simt::run.arena + index->offset; }

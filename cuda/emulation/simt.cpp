// The runtime of the emulated device: CUDA threads as fibers, under a schedule that one controls.
//
// Build. Kernels:  g++ -std=c++17 -O2 -fPIC -fvisibility=hidden -fno-gnu-unique -fsanitize=thread
//                      -mtls-dialect=gnu -fno-tree-vectorize -fno-tree-loop-distribute-patterns
//                      -I cuda -x c++ -c kernels.cpp -o kernels.o
//        Runtime:  g++ -std=c++17 -O2 -fPIC -fvisibility=hidden -fno-gnu-unique -c simt.cpp
//        Library:  g++ -shared kernels.o simt.o -o library.so       (no -fsanitize: no libtsan)
// Vectorised loops and loops turned into memset would hide accesses from the hooks.
//
// How it works. The kernels' plain accesses call __tsan_read* and __tsan_write*, defined below;
// `__shared__` variables are thread-local ones, whose addresses come from our __tls_get_addr: the
// running block's memory. A launch runs waves of resident blocks; each thread of a wave is a fiber
// that runs until it waits (barrier, warp collective) or is switched away at a scheduling point.
//
// Schedules. roundrobin: on and on until a thread waits or spins. random: may switch at atomics,
// collectives and barriers. adversarial: may switch at any access; with seed 0, parks each thread
// just before each plain write until no other can run, which splits every check from its write.
// replay: what a log says. Memory is sequentially consistent under each of them.
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "fiber.hpp"
#include "launch.hpp"
#include "memory.hpp"
#include "runtime.hpp"

namespace simt {
namespace {

constexpr unsigned MAX_THREADS = 1024;
constexpr std::size_t STACK_RESERVE = 16 * 1024;  // what the runtime itself may need, to complain
constexpr std::uint64_t LONG_SLICE = 1 << 16;  // points after which even roundrobin moves on

constexpr const char* NAMES[] = {
    "nothing", "__syncthreads", "__syncthreads_or", "__syncthreads_and", "__syncthreads_count",
    "grid sync", "__syncwarp", "__ballot_sync", "__any_sync", "__all_sync", "__shfl_sync",
    "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync", "__match_any_sync",
    "__match_all_sync", "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync",
    "__reduce_and_sync", "__reduce_or_sync", "__reduce_xor_sync"};

struct Block;

struct Warp {
    unsigned live = 0;     // lanes that have not returned
    unsigned waiting = 0;  // lanes that wait in a collective
};

struct Fiber {
    void* stack_pointer;
    char* stack;
    Block* block;
    Warp* warp;
    unsigned thread;
    bool returned = false;
    Operation waits = Operation::none;
    unsigned mask = 0;
    Site site{};
    std::uint64_t value = 0;
    unsigned argument = 0;
    std::uint64_t result = 0;
    const void* polled = nullptr;  // what the last atomic or relaxed access saw, and where
    std::uint64_t seen = 0;

    unsigned lane() const { return thread % WARP; }
};

struct Block {
    unsigned index;
    Fiber* fibers;
    char* arena;
    unsigned live;
    unsigned arrived = 0;
    unsigned votes = 0;
};

struct Random {  // splitmix64
    std::uint64_t state;
    std::uint64_t operator()() {
        std::uint64_t z = state += 0x9E3779B97F4A7C15ull;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ z >> 27) * 0x94D049BB133111EBull;
        return z ^ z >> 31;
    }
};

// The launch that is running; one at a time in a library.
struct Run {
    // What every hook touches.
    Fiber* current = nullptr;
    char* stack = nullptr;
    char* arena = nullptr;
    std::size_t arena_bytes = 0;
    std::uint64_t points = 0;
    std::uint64_t switch_at = 0;
    bool parks = false;   // adversarial, seed 0
    bool detects_spins = false;
    bool is_random = false;
    std::uint64_t sync_points_left = 0;  // of a random slice
    SimtCounters counters{};
    Memory memory;

    void (*kernel)(const void* const*) = nullptr;
    const void* const* arguments = nullptr;
    SimtLaunch* launch = nullptr;
    std::uint64_t log_position = 0;  // of a replay
    std::uint64_t slice_start = 0;
    std::uint64_t mean_slice = 0;
    Random random{0};
    FiberSet ready, parked;
    unsigned alive = 0;
    unsigned grid_arrived = 0;
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    std::vector<Block> blocks;
    std::vector<char> arenas;
    std::size_t arena_stride = 0;
    std::size_t static_shared_bytes = 0;
    StackPool stacks;
    void* host_stack_pointer = nullptr;
    char* error = nullptr;
    std::size_t error_bytes = 0;
    bool failed = false;
};
Run run;

// ---- errors ----

std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string text(const char* format, ...) {
    char line[512];
    va_list values;
    va_start(values, format);
    std::vsnprintf(line, sizeof line, format, values);
    va_end(values);
    return line;
}

std::string who(const Fiber& fiber) {
    return text("block %u, thread %u (warp %u, lane %u)", fiber.block->index, fiber.thread,
                fiber.thread / WARP, fiber.lane());
}

std::string what(Operation operation, Site site) {
    const char* const slash = std::strrchr(site.file, '/');
    return text("%s at %s:%d", NAMES[static_cast<int>(operation)], slash ? slash + 1 : site.file,
                site.line);
}

std::string what(const Fiber& fiber) { return what(fiber.waits, fiber.site); }

void record(std::uint64_t points);

// Ends the launch. Fibers are left where they are: kernels own nothing that needs undoing.
[[noreturn]] void fail(const std::string& message) {
    run.failed = true;
    std::snprintf(run.error, run.error_bytes, "%s", message.c_str());
    record(0);
    void* abandoned;
    simt_switch(&abandoned, run.host_stack_pointer);
    __builtin_unreachable();
}

[[noreturn]] void fail_here(const std::string& message) {
    fail(who(*run.current) + ": " + message);
}

[[noreturn]] void fail_deadlock() {
    std::map<std::tuple<int, std::string>, std::pair<const Fiber*, unsigned>> groups;
    for (const Fiber& fiber : run.fibers) {
        if (fiber.returned) continue;
        auto& group = groups[{static_cast<int>(fiber.waits), what(fiber)}];
        if (!group.second++) group.first = &fiber;
    }
    std::string message = "deadlock";
    const char* separator = ": ";
    for (const auto& [key, group] : groups) {
        message += separator + who(*group.first) + " waits for " + std::get<1>(key);
        if (group.second > 1) message += text(" (and %u more)", group.second - 1);
        separator = "; ";
    }
    fail(message);
}

[[noreturn]] void fail_access(const char* address, std::size_t bytes, bool write) {
    const auto at = reinterpret_cast<std::uint64_t>(address);
    const std::string access = text("%s of %zu bytes ", write ? "write" : "read", bytes);
    const std::size_t into_arenas = address - run.arenas.data();
    if (into_arenas < run.arenas.size()) {
        const Block& block = run.blocks[into_arenas / run.arena_stride];
        fail_here(access + (block.arena == run.arena
            ? text("at byte %zu of the block's %zu bytes of shared memory",
                   static_cast<std::size_t>(address - run.arena), run.arena_bytes)
            : text("in the shared memory of block %u", block.index)));
    }
    for (const Fiber& fiber : run.fibers)
        if (static_cast<std::size_t>(address - fiber.stack) < STACK_BYTES)
            fail_here(access + "in the local memory of " + who(fiber));
    const SimtRange *below = run.memory.below(at), *above = run.memory.above(at);
    if (below && at - below->base < below->bytes) {
        const unsigned long long offset = at - below->base, size = below->bytes;
        if (size - offset >= bytes)
            fail_here(access + text("to byte %llu of the read-only buffer '%s'", offset, below->name));
        fail_here(access + text("at byte %llu of the buffer '%s', which has %llu", offset,
                                below->name, size));
    }
    if (above && (!below || above->base - at < at - (below->base + below->bytes)))
        fail_here(access + text("%llu bytes before the buffer '%s' (address %p)",
                                static_cast<unsigned long long>(above->base - at), above->name,
                                static_cast<const void*>(address)));
    if (below)
        fail_here(access + text("%llu bytes after the end of the buffer '%s' of %llu bytes (address %p)",
                                static_cast<unsigned long long>(at - below->base - below->bytes),
                                below->name, static_cast<unsigned long long>(below->bytes),
                                static_cast<const void*>(address)));
    fail_here(access + text("at address %p", static_cast<const void*>(address)));
}

// ---- schedule ----

void record(std::uint64_t points) {
    SimtLaunch& launch = *run.launch;
    if (!launch.log || launch.schedule == REPLAY) return;
    if (launch.log_count < launch.log_capacity)
        launch.log[launch.log_count] = {
            static_cast<std::uint32_t>(run.current - run.fibers.data()),
            static_cast<std::uint32_t>(points)};
    ++launch.log_count;
}

// Who runs next, and until which point. The log of a replay gives both.
unsigned pick(unsigned current) {
    SimtLaunch& launch = *run.launch;
    std::uint64_t slice = LONG_SLICE;
    unsigned next;
    switch (launch.schedule) {
        case REPLAY: {
            if (run.log_position == launch.log_count) fail("the recorded schedule has ended");
            const SimtStep step = launch.log[run.log_position++];
            next = step.fiber;
            slice = step.points ? step.points : LONG_SLICE + 1;  // no slice is longer
            if (!run.ready.contains(next)) fail("the recorded schedule is not of this launch");
            break;
        }
        case RANDOM:
            run.sync_points_left = 1 + run.random() % 4;
            next = run.ready.next(run.random() % run.fibers.size());
            break;
        case ADVERSARIAL:
            if (!run.parks) {
                slice = 1 + run.random() % run.mean_slice;
                next = run.ready.next(run.random() % run.fibers.size());
                break;
            }
            [[fallthrough]];
        default:
            next = run.ready.next(current + 1);
            if (next == FiberSet::NONE && run.parks) {
                run.ready.swap(run.parked);
                next = run.ready.next(0);
            }
    }
    if (next == FiberSet::NONE) fail_deadlock();
    run.slice_start = run.points;
    run.switch_at = std::min(run.points + slice, launch.point_limit + 1);
    return next;
}

void go_to(unsigned next, void** save) {
    Fiber& fiber = run.fibers[next];
    run.current = &fiber;
    run.stack = fiber.stack;
    run.arena = fiber.block->arena;
    ++run.counters.fiber_switches;
    simt_switch(save, fiber.stack_pointer);
}

void leave() {
    Fiber& self = *run.current;
    const auto id = static_cast<unsigned>(&self - run.fibers.data());
    const unsigned next = pick(id);
    if (next != id) go_to(next, &self.stack_pointer);
}

// At a scheduling point: lets others run.
__attribute__((noinline)) void preempt() {
    if (run.points > run.launch->point_limit)
        fail_here(text("livelock: still running after %llu scheduling points",
                       static_cast<unsigned long long>(run.launch->point_limit)));
    const std::uint64_t passed = run.points - run.slice_start;
    if (passed > LONG_SLICE) fail_here("the recorded schedule is not of this launch");
    record(passed);
    if (run.parks) {
        const auto id = static_cast<unsigned>(run.current - run.fibers.data());
        run.ready.erase(id);
        run.parked.insert(id);
    }
    leave();
}

void wait() {
    record(0);
    run.ready.erase(static_cast<unsigned>(run.current - run.fibers.data()));
    leave();
}

void wake(Fiber& fiber, std::uint64_t result) {
    fiber.result = result;
    fiber.waits = Operation::none;
    run.ready.insert(static_cast<unsigned>(&fiber - run.fibers.data()));
}

void sync_point(bool switches) {
    switches |= ++run.points >= run.switch_at;
    if (run.is_random && --run.sync_points_left == 0) switches = true;
    if (switches) preempt();
}

// Whether the running thread looks again at a word that has not changed: others must run first.
bool spins(const void* address, std::size_t bytes) {
    Fiber& fiber = *run.current;
    std::uint64_t now = 0;
    std::memcpy(&now, address, std::min(bytes, sizeof now));
    const bool again = fiber.polled == address && fiber.seen == now;
    fiber.polled = address;
    fiber.seen = now;
    return again && run.detects_spins;
}

// ---- memory ----

enum class Space { local, shared, global };

inline Space check(const void* pointer, std::size_t bytes, bool write) {
    const char* const address = static_cast<const char*>(pointer);
    if (static_cast<std::size_t>(address - run.stack) < STACK_BYTES) return Space::local;
    const std::size_t into_arena = address - run.arena;
    if (into_arena < run.arena_bytes) {
        if (run.arena_bytes - into_arena < bytes) fail_access(address, bytes, write);
        return Space::shared;
    }
    if (!run.memory.allows(reinterpret_cast<std::uint64_t>(address), bytes, write))
        fail_access(address, bytes, write);
    return Space::global;
}

inline void access(const void* address, std::size_t bytes, bool write) {
    switch (check(address, bytes, write)) {
        case Space::local: return;
        case Space::shared: ++run.counters.shared_accesses; break;
        case Space::global: ++(write ? run.counters.plain_stores : run.counters.plain_loads);
    }
    if (++run.points >= run.switch_at || (write && run.parks)) preempt();
}

inline void aligned_access(const void* address, std::size_t bytes, bool write) {
    if (reinterpret_cast<std::uint64_t>(address) % std::min<std::size_t>(bytes, 8))
        fail_here(text("misaligned %s of %zu bytes at address %p", write ? "write" : "read", bytes,
                       address));
    access(address, bytes, write);
}

// ---- barriers and collectives ----

void release(Block& block, Operation operation) {
    const unsigned votes = block.votes, arrived = block.arrived;
    block.votes = block.arrived = 0;
    ++run.counters.block_barriers;
    const unsigned result = operation == Operation::syncthreads_or ? votes != 0
                            : operation == Operation::syncthreads_and ? votes == arrived
                                                                      : votes;
    for (unsigned i = 0; i < run.launch->threads; ++i)
        if (block.fibers[i].waits == operation) wake(block.fibers[i], result);
}

void complete(Warp& warp, Fiber* lanes, unsigned mask, Operation operation) {
    std::uint64_t common = operation == Operation::reduce_and ? ~0ull : 0;
    const Fiber& first = lanes[__builtin_ctz(mask)];
    if (operation == Operation::reduce_min || operation == Operation::reduce_max) common = first.value;
    for (unsigned rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = __builtin_ctz(rest);
        const auto value = static_cast<std::int64_t>(lanes[lane].value);
        const auto best = static_cast<std::int64_t>(common);
        switch (operation) {
            case Operation::ballot: case Operation::any: case Operation::all:
                common |= lanes[lane].value << lane; break;
            case Operation::match_all:
                common |= static_cast<std::uint64_t>(lanes[lane].value == first.value) << lane; break;
            case Operation::reduce_add: common += lanes[lane].value; break;
            case Operation::reduce_min: common = std::min(best, value); break;
            case Operation::reduce_max: common = std::max(best, value); break;
            case Operation::reduce_and: common &= lanes[lane].value; break;
            case Operation::reduce_or: common |= lanes[lane].value; break;
            case Operation::reduce_xor: common ^= lanes[lane].value; break;
            default: break;
        }
    }
    if (operation == Operation::any) common = common != 0;
    if (operation == Operation::all) common = common == mask;
    if (operation == Operation::match_all && common != mask) common = 0;

    warp.waiting &= ~mask;
    ++run.counters.warp_collectives;
    for (unsigned rest = mask; rest; rest &= rest - 1) {
        Fiber& lane = lanes[__builtin_ctz(rest)];
        std::uint64_t result = common;
        switch (operation) {
            case Operation::shuffle: case Operation::shuffle_up:
            case Operation::shuffle_down: case Operation::shuffle_xor:
                if (mask >> lane.argument & 1) result = lanes[lane.argument].value;
                else std::memset(&result, POISON, sizeof result);
                break;
            case Operation::match_any:
                for (unsigned other = mask; other; other &= other - 1)
                    if (lanes[__builtin_ctz(other)].value == lane.value) result |= other & -other;
                break;
            default: break;
        }
        wake(lane, result);
    }
}

// The first thread of the fibers that waits in a collective naming the lane; null if none does.
const Fiber* waits_for(const Warp& warp, const Fiber* lanes, unsigned lane) {
    for (unsigned rest = warp.waiting; rest; rest &= rest - 1)
        if (lanes[__builtin_ctz(rest)].mask >> lane & 1) return &lanes[__builtin_ctz(rest)];
    return nullptr;
}

bool same(Site a, Site b) { return a.line == b.line && std::strcmp(a.file, b.file) == 0; }

// ---- the life of a thread and of a launch ----

[[noreturn]] void finish() {
    Fiber& self = *run.current;
    Block& block = *self.block;
    self.returned = true;
    self.warp->live &= ~(1u << self.lane());
    if (const Fiber* other = waits_for(*self.warp, &self - self.lane(), self.lane()))
        fail_here("returned, but " + who(*other) + " waits for it in " + what(*other));
    if (run.grid_arrived)
        for (const Fiber& other : run.fibers)
            if (other.waits == Operation::grid_sync)
                fail_here("returned, but " + who(other) + " waits for it in " + what(other));
    --block.live;
    if (block.arrived && block.arrived == block.live)
        for (unsigned i = 0; i < run.launch->threads; ++i)
            if (block.fibers[i].waits != Operation::none) {
                release(block, block.fibers[i].waits);
                break;
            }
    void* abandoned;
    if (--run.alive == 0) {
        record(0);
        simt_switch(&abandoned, run.host_stack_pointer);
    }
    wait();
    __builtin_unreachable();
}

void thread_main() {
    run.kernel(run.arguments);
    finish();
}

void run_wave(unsigned first_block, unsigned blocks) {
    const unsigned threads = run.launch->threads;
    const unsigned warps = (threads + WARP - 1) / WARP;
    const unsigned fibers = blocks * threads;
    run.stacks.reserve(fibers);
    run.fibers.assign(fibers, Fiber{});
    run.warps.assign(std::size_t{blocks} * warps, Warp{});
    run.blocks.assign(blocks, Block{});
    run.ready.reset(fibers);
    run.parked.reset(fibers);
    run.alive = fibers;
    run.grid_arrived = 0;
    // A gap between blocks, so that a small overrun hits nobody.
    run.arena_bytes = (run.static_shared_bytes + 15) / 16 * 16 + run.launch->dynamic_shared_bytes;
    run.arena_stride = (run.arena_bytes + 127) / 128 * 128 + 128;
    run.arenas.assign(blocks * run.arena_stride + 128, static_cast<char>(POISON));
    char* const arenas = reinterpret_cast<char*>(
        (reinterpret_cast<std::uintptr_t>(run.arenas.data()) + 127) / 128 * 128);
    for (unsigned b = 0; b < blocks; ++b) {
        Block& block = run.blocks[b];
        block.index = first_block + b;
        block.fibers = &run.fibers[std::size_t{b} * threads];
        block.arena = arenas + b * run.arena_stride;
        block.live = threads;
        for (unsigned thread = 0; thread < threads; ++thread) {
            const std::size_t id = std::size_t{b} * threads + thread;
            Fiber& fiber = run.fibers[id];
            fiber.stack = run.stacks[id];
            fiber.stack_pointer = run.stacks.start(id, thread_main);
            fiber.block = &block;
            fiber.warp = &run.warps[std::size_t{b} * warps + thread / WARP];
            fiber.warp->live |= 1u << thread % WARP;
            fiber.thread = thread;
            run.ready.insert(static_cast<unsigned>(id));
        }
    }
    run.current = &run.fibers[fibers - 1];
    go_to(pick(fibers - 1), &run.host_stack_pointer);
}

std::string refusal(const SimtLaunch& launch) {
    if (launch.blocks == 0 || launch.threads == 0) return "a launch of no threads";
    if (launch.threads > MAX_THREADS)
        return text("%u threads in a block; the limit is %u", launch.threads, MAX_THREADS);
    if (launch.cooperative && launch.resident_blocks && launch.resident_blocks < launch.blocks)
        return text("a cooperative launch of %u blocks, of which %u are resident at once",
                    launch.blocks, launch.resident_blocks);
    return {};
}

}  // namespace

// ---- what the kernels call ----

Index thread_index() { return {run.current->thread, 0, 0}; }
Index block_index() { return {run.current->block->index, 0, 0}; }
Index block_shape() { return {run.launch->threads, 1, 1}; }
Index grid_shape() { return {run.launch->blocks, 1, 1}; }
unsigned lane() { return run.current->lane(); }
void* dynamic_shared() { return run.arena + (run.static_shared_bytes + 15) / 16 * 16; }

int block_barrier(Operation operation, bool vote, Site site) {
    sync_point(false);
    Fiber& self = *run.current;
    Block& block = *self.block;
    if (block.arrived)
        for (unsigned i = 0; i < run.launch->threads; ++i) {
            const Fiber& other = block.fibers[i];
            if (other.waits == Operation::none || other.waits > Operation::syncthreads_count) continue;
            if (other.waits != operation || !same(other.site, site))
                fail_here("divergent barrier: it is at " + what(operation, site) + ", but " +
                          who(other) + " is at " + what(other));
            break;
        }
    self.waits = operation;
    self.site = site;
    block.votes += vote;
    if (++block.arrived == block.live) release(block, operation);
    else wait();
    return static_cast<int>(self.result);
}

void grid_barrier(Site site) {
    sync_point(false);
    const Operation operation = Operation::grid_sync;
    Fiber& self = *run.current;
    if (!run.launch->cooperative)
        fail_here(what(operation, site) + " in a launch that is not cooperative");
    if (run.alive != run.fibers.size())
        for (const Fiber& other : run.fibers)
            if (other.returned)
                fail_here("deadlock: it waits for " + what(operation, site) + ", but " + who(other) +
                          " has returned");
    self.waits = operation;
    self.site = site;
    if (++run.grid_arrived < run.fibers.size()) return wait();
    run.grid_arrived = 0;
    ++run.counters.grid_barriers;
    for (Fiber& fiber : run.fibers) wake(fiber, 0);
}

std::uint64_t collective(Operation operation, unsigned mask, std::uint64_t value, unsigned argument,
                         Site site) {
    sync_point(false);
    Fiber& self = *run.current;
    Warp& warp = *self.warp;
    Fiber* const lanes = &self - self.lane();
    const unsigned own = 1u << self.lane();
    if (!(mask & own))
        fail_here(what(operation, site) + text(": the mask %08x leaves out its own lane", mask));
    if (const unsigned gone = mask & ~warp.live)
        fail_here(what(operation, site) + text(": the mask %08x names lane %d, which has returned or "
                                               "never was", mask, __builtin_ctz(gone)));
    // Two lanes that name each other must agree; a lane outside the mask has business of its own.
    for (unsigned rest = warp.waiting & mask; rest; rest &= rest - 1) {
        const Fiber& other = lanes[__builtin_ctz(rest)];
        if (other.mask == mask && other.waits == operation) break;  // and the others did with it
        if (other.mask & own)
            fail_here("mismatched collective: " + what(operation, site) +
                      text(" with mask %08x, but ", mask) + who(other) + " is at " + what(other) +
                      text(" with mask %08x", other.mask));
    }
    self.waits = operation;
    self.site = site;
    self.mask = mask;
    self.value = value;
    self.argument = argument;
    warp.waiting |= own;
    bool last = (warp.waiting & mask) == mask;
    for (unsigned rest = mask; last && rest; rest &= rest - 1)
        last = lanes[__builtin_ctz(rest)].mask == mask;
    if (last) complete(warp, lanes, mask, operation);
    else wait();
    return self.result;
}

void atomic_point(void* address, std::size_t bytes) {
    check(address, bytes, true);
    ++run.counters.atomics;
    sync_point(spins(address, bytes));
}

void relaxed_load_point(const void* address, std::size_t bytes) {
    check(address, bytes, false);
    ++run.counters.relaxed_loads;
    sync_point(spins(address, bytes));
}

void relaxed_store_point(void* address, std::size_t bytes) {
    check(address, bytes, true);
    ++run.counters.relaxed_stores;
    sync_point(run.parks);
}

void pause() { sync_point(run.launch->schedule != REPLAY); }

void count_lane_slots(unsigned slots) { run.counters.lane_slots += slots; }

}  // namespace simt

int simt_launch(void (*kernel)(const void* const*), const void* const* arguments, SimtLaunch* launch,
                SimtCounters* counters, char* error, std::size_t error_bytes) {
    using simt::run;
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    static const simt::Library library;

    const std::string refused = simt::refusal(*launch);
    if (!refused.empty()) {
        std::snprintf(error, error_bytes, "%s", refused.c_str());
        return 1;
    }
    const bool replays = launch->schedule == REPLAY;
    run.kernel = kernel;
    run.arguments = arguments;
    run.launch = launch;
    run.counters = *counters;
    run.error = error;
    run.error_bytes = error_bytes;
    run.failed = false;
    run.points = 0;
    run.parks = launch->schedule == ADVERSARIAL && launch->seed == 0;
    run.detects_spins = run.parks || launch->schedule == ROUNDROBIN;
    run.is_random = launch->schedule == RANDOM;
    run.log_position = 0;
    run.random.state = launch->seed;
    run.random.state = run.random() + launch->launch_index;
    // Some bugs need a switch at every access, some a long undisturbed stretch: seeds differ in it.
    run.mean_slice = 2ull << run.random() % 6;
    run.static_shared_bytes = library.shared_bytes;
    if (!replays) launch->log_count = 0;
    try {
        run.memory.reset(launch->ranges, launch->range_count, library.data);
        const unsigned resident = launch->resident_blocks ? launch->resident_blocks : launch->blocks;
        for (unsigned first = 0; first < launch->blocks && !run.failed; first += resident)
            simt::run_wave(first, std::min(resident, launch->blocks - first));
    } catch (const std::exception& problem) {
        std::snprintf(error, error_bytes, "the emulation ran out of memory: %s", problem.what());
        run.failed = true;
    }
    *counters = run.counters;
    return run.failed;
}

// ---- what the compiler's instrumentation calls ----

#define SIMT_HOOK extern "C" __attribute__((visibility("hidden")))
#define SIMT_HOOKS(bytes)                                                                          \
    SIMT_HOOK void __tsan_read##bytes(void* p) { simt::aligned_access(p, bytes, false); }          \
    SIMT_HOOK void __tsan_write##bytes(void* p) { simt::aligned_access(p, bytes, true); }          \
    SIMT_HOOK void __tsan_volatile_read##bytes(void* p) { simt::relaxed_load_point(p, bytes); }    \
    SIMT_HOOK void __tsan_volatile_write##bytes(void* p) { simt::relaxed_store_point(p, bytes); }  \
    SIMT_HOOK void __tsan_unaligned_read##bytes(void* p) { simt::access(p, bytes, false); }        \
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
    if (static_cast<std::size_t>(here - simt::run.stack) < simt::STACK_RESERVE)
        simt::fail_here(simt::text("needs more than %zu bytes of local memory", simt::STACK_BYTES - simt::STACK_RESERVE));
}

// Thread-local variables of this library are __shared__ ones: they live in the block's memory.
struct TlsIndex {
    std::size_t module, offset;
};
SIMT_HOOK void* __tls_get_addr(TlsIndex* index) { return simt::run.arena + index->offset; }

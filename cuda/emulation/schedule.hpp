// Who runs when.
//
// A thread runs until it waits or its slice of scheduling points is used up; then `pick` chooses
// the next one and its slice. A log of (thread, points) therefore says all of a schedule.
//
// roundrobin: on and on until a thread waits or spins. random: slices end at atomics, relaxed
// accesses, barriers and collectives only. adversarial: slices end at any access, and a thread may
// be parked just before a plain write until the others have moved on; with seed 0 each is, until
// no other can run, which splits every check from its write.
#pragma once

#include <algorithm>
#include <cstring>

#include "interrupt.hpp"
#include "observe.hpp"
#include "report.hpp"
#include "state.hpp"

namespace simt {

// A slice ends in any case after so many points, or a loop on plain loads could last for ever.
constexpr std::uint64_t LONG_SLICE = 1 << 16;
constexpr unsigned ALWAYS = 256;  // as a park_chance

inline void start_schedule(const SimtLaunch& launch) {
  run.points = 0;
  run.log_position = 0;
  run.random.state = launch.seed;
  run.random.state = run.random() + launch.launch_index;
  run.is_random = launch.schedule == RANDOM;
  const bool adversarial = launch.schedule == ADVERSARIAL;
  run.parks_spinners = adversarial && launch.seed == 0;
  run.detects_spins = run.parks_spinners || launch.schedule == ROUNDROBIN;
  // Some bugs need a switch at every access, some a long undisturbed stretch, some a late write:
  // seeds differ in it.
  constexpr unsigned CHANCES[] = {0, 32, 96, 192};
  run.slice_limit = 2ull << run.random() % 6;
  run.park_chance = !adversarial ? 0 : run.parks_spinners ? ALWAYS : CHANCES[run.random() % 4];
}

inline void record(std::uint64_t points) {
  SimtLaunch& launch = *run.launch;
  if (!launch.log || launch.schedule == REPLAY) return;
  if (launch.log_count < launch.log_capacity)
    launch.log[launch.log_count] = {id_of(*run.current), static_cast<std::uint32_t>(points)};
  ++launch.log_count;
}

inline unsigned pick(unsigned current) {
  SimtLaunch& launch = *run.launch;
  std::uint64_t slice = LONG_SLICE;
  unsigned next = current + 1;
  if (__builtin_expect(interrupted, false)) fail("interrupted");
  if (launch.schedule == REPLAY) {
    if (run.log_position == launch.log_count) fail("the recorded schedule has ended");
    const SimtStep step = launch.log[run.log_position++];
    if (!run.ready.contains(step.fiber)) fail("the recorded schedule is not of this launch");
    next = step.fiber;
    slice = step.points ? step.points : LONG_SLICE + 1;  // longer than any recorded one
  } else if (launch.schedule == RANDOM) {
    next = static_cast<unsigned>(run.random() % run.fibers.size());
    run.sync_points_left = 1 + run.random() % 4;
  } else if (launch.schedule == ADVERSARIAL && !run.parks_spinners) {
    next = static_cast<unsigned>(run.random() % run.fibers.size());
    slice = 1 + run.random() % run.slice_limit;
    if (run.random() % 256 == 0)
      run.ready.take(run.parked);  // or a spinning thread could wait for ever
  }
  next = run.ready.next(next);
  if (next == FiberSet::NONE) {
    run.ready.take(run.parked);
    next = run.ready.next(0);
  }
  if (next == FiberSet::NONE) fail_deadlock();
  run.slice_start = run.points;
  run.switch_at = std::min(run.points + slice, launch.point_limit + 1);
  return next;
}

inline void leave() {
  if (__builtin_expect(run.observes, false)) settle();
  Fiber& self = *run.current;
  Fiber& next = run.fibers[pick(id_of(self))];
  if (&next != &self) go_to(next, &self.stack_pointer);
}

// At a scheduling point: lets others run, and if parked, as long as they can.
__attribute__((noinline)) inline void preempt(bool park) {
  const std::uint64_t passed = run.points - run.slice_start;
  if (run.points > run.launch->point_limit)
    fail_here(text("livelock: still running after %llu scheduling points",
                   static_cast<unsigned long long>(run.launch->point_limit)));
  if (passed > LONG_SLICE) fail_here("the recorded schedule is not of this launch");
  record(passed);
  if (park || run.parks_spinners) {
    run.ready.erase(id_of(*run.current));
    run.parked.insert(id_of(*run.current));
  }
  leave();
}

// Until someone wakes it.
inline void wait() {
  record(0);
  run.ready.erase(id_of(*run.current));
  leave();
}

inline void wake(Fiber& fiber, std::uint64_t result) {
  fiber.result = result;
  fiber.waits = Operation::none;
  run.ready.insert(id_of(fiber));
}

inline bool must_park() { return run.park_chance && run.random() % ALWAYS < run.park_chance; }

// A plain access.
inline void point(bool write) {
  const bool park = write && must_park();
  if (++run.points >= run.switch_at || park) preempt(park);
}

// Whatever else threads see of each other.
inline void sync_point(bool leaves = false, bool park = false) {
  if (++run.points >= run.switch_at) leaves = true;
  if (run.is_random && --run.sync_points_left == 0) leaves = true;
  if (leaves || park) preempt(park);
}

// Whether the thread looks again at a word that has not changed: then others must run first.
inline bool spins(const void* address, std::size_t bytes) {
  Fiber& fiber = *run.current;
  std::uint64_t now = 0;
  std::memcpy(&now, address, std::min(bytes, sizeof now));
  const bool again = fiber.polled == address && fiber.seen == now;
  fiber.polled = address;
  fiber.seen = now;
  return again && run.detects_spins;
}

}  // namespace simt

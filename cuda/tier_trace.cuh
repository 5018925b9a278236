// The trace of a run of narrow levels: when each of them began, and who ran it.
//
// A narrow level is a chain of latencies, so whoever traces it must not lengthen that. As a level
// begins one thread writes one word, in which it has packed its multiprocessor's clock and who runs
// the level, while all wait for something else; nobody waits for the word. Sizes and arcs of the
// frontiers are left to the host, who knows the distances, and so are nanoseconds: it has the run's
// begin and end on both clocks. Cost: five instructions a level. Source: this project's own.
#pragma once

#include "position.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::tier {

// Every thread of the tier has one; who calls a function of it is one thread, not always the same.
template <class Policy>
class NarrowTrace {
 public:
  using Parameters = typename Policy::Parameters;

  // Of the run of levels that begins at `now`.
  __device__ __forceinline__ NarrowTrace(const Parameters& parameters, const Position& now)
      : parameters_(parameters), run_(now.turn) {}

  // Before the first level.
  __device__ __forceinline__ void enter() const {
    if constexpr (Policy::trace) {
      RunClocks& clocks = here();
      clocks.begin_nanoseconds = device_nanoseconds();
      clocks.begin_cycles = multiprocessor_cycles();
    }
  }

  // `level` begins, and is run so. A whole warp may call, of which one lane `writes`.
  __device__ __forceinline__ void keep(int level, Mapping mapping, bool writes) const {
    if constexpr (Policy::trace) {
      store_cycles_if(writes, &parameters_.trace[level].begin_nanoseconds, TIERS_LEVEL | mapping);
    }
  }

  // After the last level, `level` - 1; the tier's barrier comes after it.
  __device__ __forceinline__ void leave(int level) const {
    if constexpr (Policy::trace) {
      RunClocks& clocks = here();
      clocks.end_nanoseconds = device_nanoseconds();
      clocks.end_cycles = multiprocessor_cycles();
      LevelRecord& next = parameters_.trace[level];
      next.end_nanoseconds = 0;
      next.edges = 0;
    }
  }

 private:
  __device__ __forceinline__ RunClocks& here() const {
    const int place = parameters_.vertices + 2 - known_here(run_);
    return reinterpret_cast<RunClocks*>(parameters_.trace)[place];
  }

  const Parameters& parameters_;
  const int run_;  // its number, from 0
};

}  // namespace persistent_bfs::tier

// The trace of a run of narrow levels: when each of them began, and who ran it.
//
// A narrow level is a chain of latencies, so whoever traces it must not lengthen that. As a level
// begins every warp reads its multiprocessor's clock, while it waits for something else, and a lane
// of it keeps the time in a register, another one each level. Every 32 levels the lanes of one warp
// store what they have, and not when one warp takes over from its block or gives levels back, which
// may be at every other level: who ran them is kept in a register, too. Sizes and arcs of the
// frontiers are left to the host, who knows the distances, and so are nanoseconds: it has the run's
// begin and end on both clocks. Cost: two instructions a level.
#pragma once

#include "position.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::tier {

// By every thread of the tier; `by_one_warp` and `write` by the one warp that is to write, `enter`
// and `leave` by any one.
template <class Policy>
class NarrowTrace {
 public:
  using Parameters = typename Policy::Parameters;

  // Levels between two times of writing, at the most.
  static constexpr int LEVELS = WARP_SIZE;

  // Of the run of levels that begins at `now`.
  __device__ __forceinline__ NarrowTrace(const Parameters& parameters, const Position& now)
      : parameters_(parameters), run_(now.turn), first_(now.level) {}

  // Before the first level.
  __device__ __forceinline__ void enter(int lane) const {
    if constexpr (Policy::trace) {
      if (lane == 0) {
        RunClocks& clocks = here();
        clocks.begin_nanoseconds = device_nanoseconds();
        clocks.begin_cycles = multiprocessor_cycles();
      }
    }
  }

  // `level` begins, or goes on beginning; the levels before it are not full.
  __device__ __forceinline__ void keep(int level, int lane) {
    if constexpr (Policy::trace) {
      cycles_ = multiprocessor_cycles_if(((level ^ lane) & (WARP_SIZE - 1)) == 0, cycles_);
    }
  }

  // One warp ran the levels from `begin` up to `end`, which are at least one, and all of them in
  // one turn of the lanes; it is this one.
  __device__ __forceinline__ void by_one_warp(int begin, int end) {
    if constexpr (Policy::trace) {
      one_warp_ |= FULL_WARP >> (WARP_SIZE - (end - begin)) << (begin & (WARP_SIZE - 1));
    }
  }

  // Whether the levels before `level` must be written before its time is kept.
  static __device__ __forceinline__ bool is_full(int level) {
    return Policy::trace && (level & (LEVELS - 1)) == 0;
  }

  // What is kept of the levels up to `level`, which is not written yet; those that one warp has not
  // run were run so.
  __device__ __forceinline__ void write(int level, Mapping mapping, int lane) {
    if constexpr (Policy::trace) {
      // Or nvcc would have the address computed in every level.
      lane = known_here(lane);
      const int mine = ((level - 1) & -LEVELS) + lane;
      if (first_ <= mine && mine < level) {
        LevelRecord& record = parameters_.trace[mine];
        record.begin_nanoseconds = cycles_;
        record.edges = FRONTIERS_OWN;
        record.frontier_size = FRONTIERS_SIZE;
        record.mapping = one_warp_ >> lane & 1 ? BY_ONE_WARP : mapping;
        record.pulled = 0;
      }
      first_ = level;
      one_warp_ = 0;
    }
  }

  // After the last level, `level` - 1; the tier's barrier comes after it.
  __device__ __forceinline__ void leave(int level, int lane) const {
    if constexpr (Policy::trace) {
      if (lane == 0) {
        RunClocks& clocks = here();
        clocks.end_nanoseconds = device_nanoseconds();
        clocks.end_cycles = multiprocessor_cycles();
        LevelRecord& next = parameters_.trace[level];
        next.end_nanoseconds = 0;
        next.edges = 0;
      }
    }
  }

 private:
  __device__ __forceinline__ RunClocks& here() const {
    const int place = parameters_.vertices + 2 - known_here(run_);
    return reinterpret_cast<RunClocks*>(parameters_.trace)[place];
  }

  const Parameters& parameters_;
  const int run_;          // its number, from 0
  int first_;              // of the levels that have not been written
  unsigned cycles_ = 0;    // when the level began whose number is this lane's, modulo 32
  unsigned one_warp_ = 0;  // a bit for each of the levels modulo 32 that one warp ran
};

}  // namespace persistent_bfs::tier

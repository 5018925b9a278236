// The trace of a run of narrow levels: when each of them began, and who ran it.
//
// A narrow level is a chain of latencies, so whoever traces it must not lengthen that. As a level
// begins every warp reads its multiprocessor's clock, while it waits for something else, and a lane
// of it keeps the time in a register, another one each level. Every 31 levels the lanes of one warp
// store what they have; where a block runs the levels that is the last warp, which has the fewest
// arcs. Sizes and arcs of the frontiers are left to the host, who knows the distances, and so are
// nanoseconds: it has the run's begin and end on both clocks. Cost: two instructions a level.
#pragma once

#include "position.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::tier {

// By every thread of the tier; `write`, `enter` and `leave` by one warp, not always the same.
template <class Policy>
class NarrowTrace {
 public:
  using Parameters = typename Policy::Parameters;

  // Of the run of levels that begins at `now`.
  __device__ __forceinline__ NarrowTrace(const Parameters& parameters, const Position& now)
      : parameters_(parameters), run_(now.turn), full_(now.level + MOST) {}

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

  // `level` begins. It follows the one before, or `begin` does with the same level.
  __device__ __forceinline__ void keep(int level, int lane) {
    if constexpr (Policy::trace) {
      cycles_ = multiprocessor_cycles_if(((level ^ lane) & (WARP_SIZE - 1)) == 0, cycles_);
    }
  }

  // The levels before `level` have been written or are another warp's to write.
  __device__ __forceinline__ void begin(int level) {
    if constexpr (Policy::trace) full_ = level + MOST;
  }

  // Whether those kept must be written before `level` is over: it has the last lane.
  __device__ __forceinline__ bool is_full(int level) const {
    return Policy::trace && level >= full_;
  }

  // `level`, or the one before it that must be written first.
  __device__ __forceinline__ int fills(int level) const {
    return Policy::trace && level > full_ ? full_ : level;
  }

  // The levels kept, up to `level`, were run so.
  __device__ __forceinline__ void write(int level, Mapping mapping) {
    if constexpr (Policy::trace) {
      // Asked for here, or nvcc would have the address computed in every level.
      const int first = full_ - MOST;
      const int mine = first + ((lane_in_warp() - first) & (WARP_SIZE - 1));
      if (mine < level) {
        LevelRecord& record = parameters_.trace[mine];
        record.begin_nanoseconds = cycles_;
        record.edges = FRONTIERS_OWN;
        record.frontier_size = FRONTIERS_SIZE;
        record.mapping = mapping;
        record.pulled = 0;
      }
      begin(level);
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
  static constexpr int MOST = WARP_SIZE - 1;

  __device__ __forceinline__ RunClocks& here() const {
    const int place = parameters_.vertices + 2 - known_here(run_);
    return reinterpret_cast<RunClocks*>(parameters_.trace)[place];
  }

  const Parameters& parameters_;
  const int run_;  // its number, from 0
  int full_;       // the level up to which lanes keep what has not been written
  unsigned cycles_ = 0;  // when the level began whose number is this lane's, modulo 32
};

}  // namespace persistent_bfs::tier

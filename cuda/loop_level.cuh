// One level a launch, with the loop's state on the device: for host_batched and graph_unrolled.
//
// Consecutive launches alternate `parity`: each reads one copy of the state's doubled fields and
// its leader writes the other, so that no thread can read what another has already moved on.
// A launch that finds the search over passes the state on unchanged and returns at once.
#pragma once

#include "reset.cuh"
#include "step.cuh"
#include "trace.cuh"

namespace persistent_bfs {

// The level a launch finds itself at.
struct LevelState {
  int level;
  int begin;
  int size;
  int max_depth;
  int capacity;

  template <class Parameters>
  __device__ __forceinline__ LevelState(const Parameters& parameters, int parity) {
    const SearchState& state = *parameters.state;
    level = state.level[parity];
    begin = state.frontier_begin[parity];
    size = state.frontier_size[level % 3];
    max_depth = state.max_depth;
    capacity = parameters.queue_capacity;
  }

  __device__ __forceinline__ SearchStatus status() const {
    if (size > capacity - begin) return QUEUE_FULL;
    return size == 0 || level >= max_depth ? DONE : RUNNING;
  }
};

// The leader's bookkeeping: the count, the trace, the other copy of what moves with the level.
template <class Policy>
__device__ __forceinline__ void pass_on(const typename Policy::Parameters& parameters,
                                        const LevelState& now, int parity) {
  SearchState& state = *parameters.state;
  const bool running = now.status() == RUNNING;
  if (running) state.frontier_size[(now.level + 2) % 3] = 0;
  if (now.size > 0) {
    state.depth = now.level;
    state.enqueued = now.begin + now.size;
    trace_begin<Policy>(parameters, now.level, now.size);
  }
  state.status = now.status();
  state.level[1 - parity] = running ? now.level + 1 : now.level;
  state.frontier_begin[1 - parity] = running ? now.begin + now.size : now.begin;
}

template <class Policy>
__device__ __forceinline__ LevelState run_level(const typename Policy::Parameters& parameters,
                                                int parity) {
  const LevelState now(parameters, parity);
  if (is_grid_leader()) pass_on<Policy>(parameters, now, parity);
  if (now.status() == RUNNING) {
    expand_level<Policy>(parameters, frontier_at(parameters, now.begin, now.size, now.level),
                         next_frontier(parameters, now.begin, now.size,
                                       &parameters.state->frontier_size[(now.level + 1) % 3]));
    trace_block_end<Policy>(parameters, now.level);
  }
  return now;
}

template <class Policy>
__device__ __forceinline__ void search_level(const typename Policy::Parameters& parameters,
                                             const LaunchArguments& launch) {
  run_level<Policy>(parameters, launch.parity);
}

}  // namespace persistent_bfs

// The whole search in one cooperative kernel: reset, then a level and a grid barrier until done.
//
// Needs every block resident. Cost: one barrier for the reset and one a level, no launch, no
// round trip. Every thread keeps the loop's variables in registers; after the barrier all of them
// read the next frontier's size, which no one changes before the next barrier.
#pragma once

#include "barrier.cuh"
#include "reset.cuh"
#include "step.cuh"
#include "trace.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void search_persistent(const typename Policy::Parameters& parameters,
                                                  const LaunchArguments& launch) {
  GridBarrier barrier;
  SearchState& state = *parameters.state;
  reset<Policy>(parameters, launch.request);
  barrier.wait();

  int level = 0;
  int begin = 0;
  int size = 1;
  while (size > 0 && size <= parameters.queue_capacity - begin && level < launch.request.max_depth) {
    if (is_grid_leader()) {
      state.frontier_size[(level + 2) % 3] = 0;
      trace_begin<Policy>(parameters, level, size);
    }
    int* next_size = &state.frontier_size[(level + 1) % 3];
    expand_level<Policy>(parameters, frontier_at(parameters, begin, size, level),
                         next_frontier(parameters, begin, size, next_size));
    barrier.wait();
    if (is_grid_leader()) trace_end<Policy>(parameters, level);
    begin += size;
    size = load_relaxed(next_size);
    ++level;
  }

  if (is_grid_leader()) {
    if (size > 0) trace_begin<Policy>(parameters, level, size);
    state.depth = size > 0 ? level : level - 1;
    state.enqueued = begin + size;
    state.status = size > parameters.queue_capacity - begin ? QUEUE_FULL : DONE;
    state.barriers = barrier.waits();
  }
}

}  // namespace persistent_bfs

// The whole search in one cooperative kernel: reset, then a level and a grid barrier until done.
//
// Needs every block resident. Cost: one barrier for the reset and one a level, no launch, no
// round trip. Every thread keeps the loop's variables in registers; after the barrier all of them
// read the next frontier's count, which no one changes before the next barrier.
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
  unsigned long long explored = 0;
  bool pulling = false;
  FrontierCount count{load_relaxed(&state.frontier_count[0])};
  while (count.vertices() > 0 && fits(parameters, begin, count) &&
         level < launch.request.max_depth) {
    const Frontier frontier = frontier_at(parameters, begin, count, level, explored, pulling);
    if (is_grid_leader()) {
      state.frontier_count[(level + 2) % 3] = 0;
      trace_begin<Policy>(parameters, frontier);
    }
    unsigned long long* next_count = &state.frontier_count[(level + 1) % 3];
    expand_level<Policy>(parameters, frontier,
                         next_frontier(parameters, begin + frontier.size, next_count));
    barrier.wait();
    if (is_grid_leader()) trace_end<Policy>(parameters, level);
    pulling = pulls<Policy>(parameters, frontier);
    explored += count.edges();
    begin += frontier.size;
    count = FrontierCount{load_relaxed(next_count)};
    ++level;
  }

  if (is_grid_leader()) {
    const bool at_limit = count.vertices() > 0;
    if (at_limit) {
      trace_begin<Policy>(parameters,
                          frontier_at(parameters, begin, count, level, explored, pulling));
    }
    state.depth = at_limit ? level : level - 1;
    state.enqueued = begin + static_cast<int>(count.vertices());
    state.status = fits(parameters, begin, count) ? DONE : QUEUE_FULL;
    state.barriers = barrier.waits();
  }
}

}  // namespace persistent_bfs

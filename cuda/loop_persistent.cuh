// The whole search in one cooperative kernel: reset, then a level and a grid barrier until done.
//
// Needs every block resident. Cost: one barrier for the reset and one a level (one a phase, where
// the append has several), no launch, no round trip. Every thread keeps the loop's variables in
// registers; after the barrier all of them read the next frontier's count, which no one changes
// before the next barrier.
#pragma once

#include "barrier.cuh"
#include "dense.cuh"
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
  int padding = 0;  // slots of earlier frontiers without a vertex
  unsigned long long explored = 0;
  bool pulling = false;
  int stale = 0;
  FrontierCount count = count_of(state.totals[0]);
  const auto this_frontier = [&] {
    const int largest =
        Policy::counts_edges ? load_relaxed(&state.totals[level % 3].largest_degree) : 0;
    Frontier frontier = frontier_at(parameters, begin, count, largest, level, explored, pulling);
    if constexpr (Policy::padded) {
      frontier.discovered = load_relaxed(&state.totals[level % 3].discovered);
    }
    place_bitmap<Policy>(frontier, level % 3, stale);
    return frontier;
  };
  while (count.vertices() > 0 && fits<Policy>(parameters, begin, count) &&
         level < launch.request.max_depth) {
    const Frontier frontier = this_frontier();
    if (is_grid_leader()) {
      state.totals[(level + 2) % 3] = {};
      trace_begin<Policy>(parameters, frontier);
    }
    const int next = (level + 1) % 3;
    const NextFrontier growing = next_frontier(parameters, begin + frontier.size, next);
    expand_level<Policy>(parameters, frontier, growing);
    barrier.wait();
    for (int phase = 1; phase < Policy::phases; ++phase) {
      complete_level<Policy>(parameters, frontier, growing, phase);
      barrier.wait();
    }
    if (is_grid_leader()) trace_end<Policy>(parameters, level);
    pulling = pulls<Policy>(parameters, frontier);
    stale = stale_after<Policy>(frontier);
    explored += count.edges();
    begin += frontier.size;
    if constexpr (Policy::padded) padding += frontier.size - frontier.discovered;
    count = count_of(state.totals[next]);
    ++level;
  }

  if (is_grid_leader()) {
    const bool at_limit = count.vertices() > 0;
    if (at_limit) {
      trace_begin<Policy>(parameters, this_frontier());
    }
    state.depth = at_limit ? level : level - 1;
    state.enqueued = begin - padding + this_frontier().discovered;
    state.status = fits<Policy>(parameters, begin, count) ? DONE : QUEUE_FULL;
    state.barriers = barrier.waits();
  }
}

}  // namespace persistent_bfs

// host_loop's kernel: one level, or one phase of it, of which the host says everything.
//
// The host clears the one counter, launches this with the frontier's place and size, copies the
// counter back and swaps: a launch and a round trip a level. The baseline of every comparison.
#pragma once

#include "dense.cuh"
#include "step.cuh"
#include "trace.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void search_level_host(const typename Policy::Parameters& parameters,
                                                  const LaunchArguments& launch) {
  SearchState& state = *parameters.state;
  const FrontierCount count{FrontierCount::pack(launch.frontier_size, launch.frontier_edges)};
  Frontier frontier =
      frontier_at(parameters, launch.frontier_begin, count, launch.largest_degree, launch.level,
                  launch.explored, state.pulling[launch.parity] != 0);
  if constexpr (Policy::padded) frontier.discovered = launch.discovered;
  if constexpr (Policy::dense) frontier.left = launch.left;
  place_bitmap<Policy>(frontier, launch.level % 3, state.news[launch.parity].stale);
  decide_direction<Policy>(parameters, frontier);
  const NextFrontier next = next_frontier(parameters, launch.frontier_begin + frontier.size, 0);
  const int phase = Policy::phases > 1 ? launch.phase : 0;
  if (phase == 0 && is_grid_leader()) {
    trace_begin<Policy>(parameters, frontier);
    state.pulling[1 - launch.parity] = frontier.pulls;
    if constexpr (Policy::dense) {
      state.news[1 - launch.parity].stale = stale_after<Policy>(frontier);
    }
  }
  if (phase == 0) {
    expand_level<Policy>(parameters, frontier, next);
  } else {
    complete_level<Policy>(parameters, frontier, next, phase);
  }
  trace_block_end<Policy>(parameters, launch.level);
}

}  // namespace persistent_bfs

// One level, or one phase of it, a launch, with the loop's state on the device: for host_batched
// and graph_unrolled. Cost: a launch or a graph node a level, and as many empty ones at the end as
// fit between two looks.
//
// Consecutive launches alternate `parity`: each reads one copy of the state's doubled fields and
// its leader writes the other, so that no thread can read what another has already moved on.
// A launch that finds the search over passes the state on unchanged and returns at once. Launches
// of one level's phases read the same copy; the first of them passes the state on.
#pragma once

#include "dense.cuh"
#include "reset.cuh"
#include "step.cuh"
#include "trace.cuh"

namespace persistent_bfs {

// The level a launch finds itself at.
template <class Policy>
struct LevelState {
  Frontier frontier;
  int begin;
  SearchStatus status;

  __device__ __forceinline__ LevelState(const typename Policy::Parameters& parameters,
                                        int parity) {
    const SearchState& state = *parameters.state;
    const int level = state.level[parity];
    const FrontierCount count{state.totals[level % 3].count};
    begin = state.frontier_begin[parity];
    frontier = frontier_at(parameters, begin, count, state.totals[level % 3].largest_degree, level,
                           state.explored[parity], state.pulling[parity] != 0);
    if constexpr (Policy::padded) frontier.discovered = state.totals[level % 3].discovered;
    if constexpr (Policy::dense) frontier.left = state.totals[level % 3].left;
    place_bitmap<Policy>(frontier, level % 3, state.stale[parity]);
    const bool over = count.vertices() == 0 || level >= state.max_depth;
    status = !fits<Policy>(parameters, begin, count) ? QUEUE_FULL
             : over                                  ? DONE
             : state.stopping[parity] != 0           ? STOPPED
                                                     : RUNNING;
  }
};

// The leader's bookkeeping: the count, the trace, the other copy of what moves with the level.
template <class Policy>
__device__ __forceinline__ void pass_on(const typename Policy::Parameters& parameters,
                                        const LevelState<Policy>& now, int parity) {
  SearchState& state = *parameters.state;
  const Frontier& frontier = now.frontier;
  const bool running = now.status == RUNNING;
  if (running) state.totals[(frontier.depth + 2) % 3] = {};
  if (frontier.size > 0) {
    state.depth = frontier.depth;
    state.enqueued = (Policy::padded ? state.reached[parity] : now.begin) + frontier.discovered;
    trace_begin<Policy>(parameters, frontier);
  }
  state.status = now.status;
  // The host may say so at any time: what the leader hears is every thread's word of the next level.
  state.stopping[1 - parity] = load_relaxed(&state.stop);
  state.level[1 - parity] = running ? frontier.depth + 1 : frontier.depth;
  state.frontier_begin[1 - parity] = running ? now.begin + frontier.size : now.begin;
  state.pulling[1 - parity] = pulls<Policy>(parameters, frontier);
  if constexpr (Policy::dense) state.stale[1 - parity] = stale_after<Policy>(frontier);
  state.explored[1 - parity] = state.explored[parity] + (running ? frontier.edges : 0);
  if constexpr (Policy::padded) {
    state.reached[1 - parity] = state.reached[parity] + (running ? frontier.discovered : 0);
  }
}

template <class Policy>
__device__ __forceinline__ LevelState<Policy> run_level(
    const typename Policy::Parameters& parameters, const LaunchArguments& launch) {
  const LevelState<Policy> now(parameters, launch.parity);
  const Frontier& frontier = now.frontier;
  const int phase = Policy::phases > 1 ? launch.phase : 0;
  if (phase == 0 && is_grid_leader()) pass_on<Policy>(parameters, now, launch.parity);
  if (now.status == RUNNING) {
    const NextFrontier next =
        next_frontier(parameters, now.begin + frontier.size, (frontier.depth + 1) % 3);
    if (phase == 0) {
      expand_level<Policy>(parameters, frontier, next);
    } else {
      complete_level<Policy>(parameters, frontier, next, phase);
    }
    trace_block_end<Policy>(parameters, frontier.depth);
  }
  return now;
}

template <class Policy>
__device__ __forceinline__ void search_level(const typename Policy::Parameters& parameters,
                                             const LaunchArguments& launch) {
  run_level<Policy>(parameters, launch);
}

}  // namespace persistent_bfs

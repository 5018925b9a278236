// One level, or one phase of it, a launch, with the loop's state on the device: for host_batched
// and graph_unrolled. Cost: a launch or a graph node a level, and as many empty ones at the end as
// fit between two looks.
//
// Consecutive launches alternate `parity`: each reads one copy of the state's doubled fields and
// its leader writes the other, so that no thread can read what another has already moved on.
// A launch that finds the search over passes the state on unchanged and returns at once. Launches
// of one level's phases read the same copy; the first of them passes the state on.
//
// As nodes of graph_unrolled's graph the launches are dependent ones: the blocks of a level come to
// their places while the level in front runs, and wait there for its end.
#pragma once

#include "dense.cuh"
#include "reset.cuh"
#include "step.cuh"
#include "trace.cuh"

namespace persistent_bfs {

// The state's words that say where the search stands. One thread a block reads them and tells the
// others: reads of one address are served one after another.
struct Standing {
  FrontierTotals totals;
  LevelNews news;
  int level;
  int begin;
  int reached;
  int pulling;
  int max_depth;
};

// By the whole block. The first barrier is for compute-sanitizer's racecheck, to which the launches
// of a WHILE node's body are one kernel, so that each writes what the one before has read.
__device__ __forceinline__ const Standing& standing_of_block(const SearchState& state,
                                                             int parity) {
  __shared__ Standing of_block;
  __syncthreads();
  if (threadIdx.x == 0) {
    const int level = state.level[parity];
    of_block = {load_together(&state.totals[level % 3]),
                load_together(&state.news[parity]),
                level,
                state.frontier_begin[parity],
                state.reached[parity],
                state.pulling[parity],
                state.max_depth};
  }
  __syncthreads();
  return of_block;
}

// The level a launch finds itself at.
template <class Policy>
struct LevelState {
  const Standing& at;
  Frontier frontier;
  SearchStatus status;

  __device__ __forceinline__ LevelState(const typename Policy::Parameters& parameters,
                                        int parity)
      : at(standing_of_block(*parameters.state, parity)) {
    const FrontierCount count{at.totals.count};
    frontier = frontier_at(parameters, at.begin, count, at.totals.largest_degree, at.level,
                           at.news.explored, at.pulling != 0);
    if constexpr (Policy::padded) frontier.discovered = at.totals.discovered;
    if constexpr (Policy::dense) frontier.left = at.totals.left;
    place_bitmap<Policy>(frontier, at.level % 3, at.news.stale);
    decide_direction<Policy>(parameters, frontier);
    const bool over = count.vertices() == 0 || at.level >= at.max_depth;
    status = !fits<Policy>(parameters, at.begin, count) ? QUEUE_FULL
             : over                                     ? DONE
             : at.news.stopping != 0                    ? STOPPED
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
    state.enqueued = (Policy::padded ? now.at.reached : now.at.begin) + frontier.discovered;
    trace_begin<Policy>(parameters, frontier);
  }
  state.status = now.status;
  // The host may say so at any time: what the leader hears is every thread's word of the next level.
  LevelNews& next = state.news[1 - parity];
  next.stopping = load_relaxed(&state.stop);
  state.level[1 - parity] = running ? frontier.depth + 1 : frontier.depth;
  state.frontier_begin[1 - parity] = now.at.begin + (running ? frontier.size : 0);
  state.pulling[1 - parity] = frontier.pulls;
  if constexpr (Policy::dense) next.stale = stale_after<Policy>(frontier);
  next.explored = now.at.news.explored + (running ? frontier.edges : 0);
  if constexpr (Policy::padded) {
    state.reached[1 - parity] = now.at.reached + (running ? frontier.discovered : 0);
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
        next_frontier(parameters, now.at.begin + frontier.size, (frontier.depth + 1) % 3);
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
  let_next_grid_begin();
  wait_for_grid_in_front();
  run_level<Policy>(parameters, launch);
}

}  // namespace persistent_bfs

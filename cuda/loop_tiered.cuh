// The whole search in one cooperative kernel that uses as little of the device as a level needs.
//
// While the frontier is small, one block runs level after level alone (block_tier.cuh) and the
// others wait at the grid's barrier; while it is not, the grid runs them as loop_persistent.cuh
// does. Block 0 leaves where it stands in the state, and all go on from there. Dense frontiers have no
// bitmap while one block runs; it clears what there is when it sets out, and scatters the frontier it
// hands over. Cost: a barrier of
// the grid for the reset, for each wide level, and for each run of narrow ones. Source: this
// project's own.
#pragma once

#include "barrier.cuh"
#include "block_tier.cuh"
#include "dense.cuh"
#include "reset.cuh"
#include "step.cuh"
#include "trace.cuh"

namespace persistent_bfs {

// Hand the position over to the other blocks, through the state; they read it past a barrier.
//
// Some of them may still be reading the totals of the frontier that block 0 set out from. So it
// leaves those alone and takes the next of the three that rotate, which is clear, and clears the
// one after that for the level to come.
template <class Parameters>
__device__ __forceinline__ void publish(const Parameters& parameters, const Position& now) {
  SearchState& state = *parameters.state;
  state.level[0] = now.level;
  state.frontier_begin[0] = now.begin;
  state.explored[0] = now.explored;
  state.totals[now.slot].count = now.count.packed;
  state.totals[(now.slot + 1) % 3] = {};
}

template <class Parameters>
__device__ __forceinline__ void receive(const Parameters& parameters, Position& now) {
  const SearchState& state = *parameters.state;
  now.level = load_relaxed(&state.level[0]);
  now.begin = load_relaxed(&state.frontier_begin[0]);
  now.explored = load_relaxed(&state.explored[0]);
  now.slot = (now.slot + 1) % 3;
  now.count = count_of(state.totals[now.slot]);
}

template <class Policy>
__device__ __forceinline__ void search_tiered(const typename Policy::Parameters& parameters,
                                              const LaunchArguments& launch) {
  GridBarrier barrier;
  BlockTier<Policy> block;
  SearchState& state = *parameters.state;
  const int max_depth = launch.request.max_depth;
  if (blockIdx.x == 0) block.clear(parameters);
  reset<Policy>(parameters, launch.request);
  barrier.wait();

  Position now{0, 0, 0, count_of(state.totals[0]), 0};
  bool pulling = false;
  int stale = 0;
  bool bits_are_current = true;
  int padding = 0;  // slots of earlier frontiers without a vertex
  const auto this_frontier = [&] {
    const int largest =
        Policy::counts_edges ? load_relaxed(&state.totals[now.slot].largest_degree) : 0;
    Frontier frontier = frontier_at(parameters, now.begin, now.count, largest, now.level,
                                    now.explored, pulling);
    if constexpr (Policy::padded) {
      frontier.discovered = load_relaxed(&state.totals[now.slot].discovered);
    }
    place_bitmap<Policy>(frontier, now.slot, stale);
    return frontier;
  };
  while (now.count.vertices() > 0 && fits<Policy>(parameters, now.begin, now.count) &&
         now.level < max_depth) {
    const Frontier frontier = this_frontier();
    if (BlockTier<Policy>::suits(parameters, frontier)) {
      if (blockIdx.x == 0) {
        if (!bits_are_current) block.rebuild(parameters);
        clear_all<Policy>(parameters, frontier);
        __syncthreads();
        const Position reached = block.run(parameters, now, max_depth);
        scatter<Policy>(parameters, reached.slot, reached.begin, reached.count.vertices());
        if (threadIdx.x == 0) {
          if (reached.level > 0) trace_end<Policy>(parameters, reached.level - 1);
          publish(parameters, reached);
        }
      }
      barrier.wait();
      receive(parameters, now);
      bits_are_current = true;
      pulling = false;
      stale = 0;
      continue;
    }
    if (is_grid_leader()) {
      state.totals[(now.slot + 2) % 3] = {};
      trace_begin<Policy>(parameters, frontier);
    }
    const int next = (now.slot + 1) % 3;
    const NextFrontier growing = next_frontier(parameters, now.begin + frontier.size, next);
    expand_level<Policy>(parameters, frontier, growing);
    barrier.wait();
    for (int phase = 1; phase < Policy::phases; ++phase) {
      complete_level<Policy>(parameters, frontier, growing, phase);
      barrier.wait();
    }
    if (is_grid_leader()) trace_end<Policy>(parameters, now.level);
    bits_are_current = false;
    pulling = pulls<Policy>(parameters, frontier);
    stale = stale_after<Policy>(frontier);
    now.explored += now.count.edges();
    now.begin += frontier.size;
    now.slot = next;
    if constexpr (Policy::padded) padding += frontier.size - frontier.discovered;
    now.count = count_of(state.totals[next]);
    ++now.level;
  }

  if (is_grid_leader()) {
    const bool at_limit = now.count.vertices() > 0;
    if (at_limit) trace_begin<Policy>(parameters, this_frontier());
    state.depth = at_limit ? now.level : now.level - 1;
    state.enqueued = now.begin - padding + this_frontier().discovered;
    state.status = fits<Policy>(parameters, now.begin, now.count) ? DONE : QUEUE_FULL;
    state.barriers = barrier.waits();
  }
}

}  // namespace persistent_bfs

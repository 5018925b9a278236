// graph_while's reset, its levels, and its last level a turn: levels as in loop_level.cuh, and the
// WHILE node's condition after the last.
//
// A turn of the node costs several microseconds more than a graph node, so its body holds a few
// levels; only the last decides whether there is another turn. The last block to finish does
// that, since only then is the next frontier's size known.
#pragma once

#include "loop_level.cuh"

namespace persistent_bfs {

// The reset as a graph's node, behind one that copies what is asked for.
template <class Policy>
__device__ __forceinline__ void reset_search_requested(
    const typename Policy::Parameters& parameters, const LaunchArguments&) {
  reset<Policy>(parameters,
                GivenRequest(reinterpret_cast<const SearchRequest*>(parameters.request)));
}

// Not a dependent launch: in a WHILE node's body compute-sanitizer's racecheck cannot tell a grid
// from the one that begins before it ends.
template <class Policy>
__device__ __forceinline__ void search_level_in_turn(const typename Policy::Parameters& parameters,
                                                     const LaunchArguments& launch) {
  run_level<Policy>(parameters, launch);
}

template <class Policy>
__device__ __forceinline__ void search_level_while(const typename Policy::Parameters& parameters,
                                                   const LaunchArguments& launch) {
  const LevelState<Policy> now = run_level<Policy>(parameters, launch);
  SearchState& state = *parameters.state;
  __threadfence();  // this thread's appends are counted before its block reports itself finished
  __syncthreads();
  if (threadIdx.x == 0) {
    const int finished = atomicAdd(&state.blocks_finished, 1) + 1;
    if (finished == static_cast<int>(gridDim.x)) {
      __threadfence();  // and what the other blocks counted is read after that
      store_relaxed(&state.blocks_finished, 0);
      const bool again =
          now.status == RUNNING &&
          count_of(state.totals[(now.frontier.depth + 1) % 3]).vertices() != 0;
      cudaGraphSetConditional(launch.condition, again);
    }
  }
}

}  // namespace persistent_bfs

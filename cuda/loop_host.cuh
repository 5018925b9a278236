// host_loop's kernel: one level, of which the host says everything.
//
// The host clears the one counter, launches this with the frontier's place and size, copies the
// counter back and swaps: a launch and a round trip a level. The baseline of every comparison.
#pragma once

#include "step.cuh"
#include "trace.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void search_level_host(const typename Policy::Parameters& parameters,
                                                  const LaunchArguments& launch) {
  if (is_grid_leader()) trace_begin<Policy>(parameters, launch.level, launch.frontier_size);
  expand_level<Policy>(
      parameters,
      frontier_at(parameters, launch.frontier_begin, launch.frontier_size, launch.level),
      next_frontier(parameters, launch.frontier_begin, launch.frontier_size,
                    &parameters.state->frontier_size[0]));
  trace_block_end<Policy>(parameters, launch.level);
}

}  // namespace persistent_bfs

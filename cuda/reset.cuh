// Everything a search must find in its first level: distances and predecessors cleared, the source
// at distance 0 and alone in the frontier, the state at its beginning.
//
// Cost: one store for four vertices (two with predecessors), coalesced; where frontiers are dense,
// one for 32 vertices and each of the three bitmaps; what is asked for (request.cuh), on its way
// meanwhile; a barrier of the block.
#pragma once

#include "dense.cuh"
#include "frontier.cuh"
#include "request.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// An array from device memory gets one value; by every thread of the grid, four entries each at a
// time.
class Filling {
 public:
  __device__ __forceinline__ Filling()
      : thread_(blockIdx.x * blockDim.x + threadIdx.x), threads_(blockDim.x * gridDim.x) {}

  __device__ __forceinline__ void fill(int* array, unsigned size, int value) const {
    int4* const fours = reinterpret_cast<int4*>(array);
    for (unsigned i = thread_; i < size / 4; i += threads_) fours[i] = {value, value, value, value};
    const unsigned last = size / 4 * 4 + thread_;
    if (last < size) array[last] = value;
  }

  // Whether this thread fills entry `i`: only it may write another value there at once.
  __device__ __forceinline__ bool fills(unsigned i, unsigned size) const {
    return thread_ == (i / 4 < size / 4 ? i / 4 % threads_ : i % 4);
  }

 private:
  const unsigned thread_;
  const unsigned threads_;
};

// By every thread of the grid; a device-wide barrier comes after. Where predecessors are not
// filled, those of the vertices that are never reached are left to unreached.cuh.
template <class Policy, bool fills_predecessors = Policy::predecessors, class Request>
__device__ __forceinline__ void reset(const typename Policy::Parameters& parameters,
                                      Request asked) {
  if (threadIdx.x == 0) asked.ask();
  const Filling filling;
  const unsigned vertices = parameters.vertices;
  filling.fill(parameters.distances, vertices, UNVISITED);
  if constexpr (fills_predecessors) {
    filling.fill(parameters.predecessors, vertices, NO_PREDECESSOR);
  }
  if constexpr (Policy::dense) {
    filling.fill(reinterpret_cast<int*>(bitmap(parameters, 0)), rotating_words(parameters), 0);
  }
  if (threadIdx.x == 0) request_of_block() = asked.answer();
  __syncthreads();
  const SearchRequest request = request_of_block();

  const vertex_t source = request.source;
  if (filling.fills(source, vertices)) {
    parameters.distances[source] = 0;
    if constexpr (Policy::predecessors && !fills_predecessors) {
      parameters.predecessors[source] = NO_PREDECESSOR;
    }
  }
  if constexpr (Policy::dense) {
    if (filling.fills(word_of(source), rotating_words(parameters))) {
      bitmap(parameters, 0)[word_of(source)] = bit_of(source);
    }
  }
  if (is_grid_leader()) {
    parameters.queue[0] = source;
    SearchState fresh = {};
    unsigned edges = 0;
    if constexpr (Policy::counts_edges) {
      edges = degree_of(parameters, source);
      fresh.totals[0].largest_degree = edges;
      parameters.edge_begin[0] = 0;
    }
    fresh.totals[0].count = FrontierCount::pack(1, edges);
    fresh.totals[0].discovered = 1;
    fresh.max_depth = request.max_depth;
    *parameters.state = fresh;
    if constexpr (Policy::trace) {
      parameters.trace[0].end_nanoseconds = 0;
      parameters.trace[0].edges = 0;
    }
  }
}

template <class Policy>
__device__ __forceinline__ void reset_search(const typename Policy::Parameters& parameters,
                                             const LaunchArguments& launch) {
  reset<Policy>(parameters, GivenRequest(&launch.request));
}

}  // namespace persistent_bfs

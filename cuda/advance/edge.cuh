// Edge mapping: every lane gets the same number of the frontier's edges, whoever they belong to.
//
// The appends of the level before left the exclusive scan of the degrees beside the queue, at no
// barrier of its own. A warp takes a chunk of consecutive edges, finds the vertex of the first by a
// search 32 ways at a time, then works through windows of 32 vertices: each lane finds the owner
// of its edge by a binary search in the lanes' registers. Lane slots are the edges, rounded up to
// whole warps; the price is the search, and a degree read for each vertex appended. Source: the
// scan-based gather of D. Merrill et al., PPoPP 2012, and the merge-path load balancing of
// Gunrock (Y. Wang et al., PPoPP 2016).
#pragma once

#include "frontier.cuh"
#include "mapping.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct Edge : FixedMapping {
  static constexpr int BATCH = 4;
  static constexpr unsigned CHUNK = BATCH * WARP_SIZE;

  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    static_assert(Policy::counts_edges, "the edge mapping needs the scan of the degrees");
    unsigned long long edges = 0;
    const unsigned long long step = static_cast<unsigned long long>(workers.warps) * CHUNK;
    for (unsigned long long first = static_cast<unsigned long long>(workers.warp) * CHUNK;
         first < frontier.edges; first += step) {
      const unsigned left = frontier.edges - static_cast<unsigned>(first);
      const unsigned size = left < CHUNK ? left : CHUNK;
      if (workers.lane == 0) {
        edges += size;
        count_lane_slots((size + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE);
      }
      chunk<Policy>(graph, frontier, static_cast<unsigned>(first), size, workers.lane, visit);
    }
    return edges;
  }

 private:
  // The edges [first, first + size) of the frontier's numbering, by one warp.
  template <class Policy, class Visit>
  static __device__ __forceinline__ void chunk(const typename Policy::Parameters& graph,
                                               const Frontier& frontier, unsigned first,
                                               unsigned size, int lane, Visit& visit) {
    using Offset = typename Policy::Offset;
    vertex_t sources[BATCH];
    vertex_t neighbours[BATCH];
    unsigned valid = 0;
#pragma unroll
    for (int i = 0; i < BATCH; ++i) sources[i] = neighbours[i] = 0;

    const unsigned last = first + size;
    int window = owner_of(frontier, first, lane);
    for (unsigned reached = first; reached < last; window += WARP_SIZE) {
      // A lane a vertex: where its edges begin in the frontier's numbering, and its row.
      const int index = window + lane;
      unsigned begin = frontier.edges;
      vertex_t vertex = 0;
      Offset row = 0;
      if (index < frontier.size) {
        begin = frontier.edge_begin[index];
        vertex = frontier.vertices[index];
        if (!Policy::padded || vertex != NO_VERTEX) row = __ldg(graph.row_offsets + vertex);
      }
      const int beyond = window + WARP_SIZE;
      const unsigned window_end =
          beyond < frontier.size ? frontier.edge_begin[beyond] : frontier.edges;
      const unsigned end = window_end < last ? window_end : last;
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const unsigned edge = first + i * WARP_SIZE + lane;
        // The last lane whose vertex begins at or before this edge.
        int owner = 0;
#pragma unroll
        for (int half = WARP_SIZE / 2; half > 0; half /= 2) {
          if (__shfl_sync(FULL_WARP, begin, owner + half) <= edge) owner += half;
        }
        const unsigned owner_begin = __shfl_sync(FULL_WARP, begin, owner);
        const vertex_t source = __shfl_sync(FULL_WARP, vertex, owner);
        const Offset owner_row = __shfl_sync(FULL_WARP, row, owner);
        if (edge >= reached && edge < end) {
          sources[i] = source;
          neighbours[i] = __ldg(graph.col_indices + owner_row + (edge - owner_begin));
          valid |= 1u << i;
        }
      }
      reached = end;
    }
    visit(sources, neighbours, valid, Places{first + lane, WARP_SIZE});
  }

  // The frontier vertex that edge `edge` belongs to: the last whose edges begin at or before it.
  static __device__ __forceinline__ int owner_of(const Frontier& frontier, unsigned edge,
                                                 int lane) {
    int low = 0;
    int high = frontier.size;  // the owner is in [low, high)
    while (high - low > 1) {
      const int step = (high - low + WARP_SIZE - 1) / WARP_SIZE;
      const int probe = low + lane * step;
      const bool at_or_before = probe < high && frontier.edge_begin[probe] <= edge;
      const int passed = __popc(__ballot_sync(FULL_WARP, at_or_before));
      low += (passed - 1) * step;
      high = low + step < high ? low + step : high;
    }
    return low;
  }
};

}  // namespace persistent_bfs::advance

// Edge mapping: every warp gets the same number of the frontier's edges, whoever they belong to.
//
// The appends of the level before left the exclusive scan of the degrees beside the queue, at no
// barrier of its own. A warp takes a run of consecutive edges, finds the vertex of the first by a
// search 32 ways at a time, then works through windows of 32 vertices, a lane each, 128 edges at a
// time. Edges of one vertex it takes as they come; where there are several, each lane finds the
// owner of its edge by a binary search in the lanes' registers. Lane slots are the edges, rounded
// up to whole warps; the price is the searches, and a degree read for each vertex appended. Source:
// the scan-based gather of D. Merrill et al., PPoPP 2012, and the merge-path load balancing of
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
    // Whole warps of edges, so that no lanes idle but in the last run.
    const unsigned warps = workers.warps;
    const unsigned share = frontier.edges / warps + (frontier.edges % warps != 0);
    const unsigned long long length = (share + WARP_SIZE - 1ull) / WARP_SIZE * WARP_SIZE;
    const unsigned long long begin = workers.warp * length;
    if (begin >= frontier.edges) return 0;
    const unsigned left = frontier.edges - static_cast<unsigned>(begin);
    const unsigned size = left < length ? left : static_cast<unsigned>(length);
    if (workers.lane == 0) count_lane_slots((size + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE);

    const unsigned first = static_cast<unsigned>(begin);
    Window<Policy> window(graph, frontier, owner_of(frontier, first, workers.lane), workers.lane);
    for (unsigned done = 0; done < size; done += CHUNK) {
      const unsigned more = size - done < CHUNK ? size - done : CHUNK;
      chunk<Policy>(graph, frontier, first + done, first + done + more, workers.lane, window,
                    visit);
    }
    return workers.lane == 0 ? size : 0;
  }

 private:
  // 32 vertices of the frontier, a lane each: where their edges begin in the frontier's numbering,
  // and their rows.
  template <class Policy>
  struct Window {
    unsigned index;
    unsigned begin;
    unsigned end;  // of the last vertex's edges; the same in all lanes
    vertex_t vertex;
    typename Policy::Offset row;

    __device__ __forceinline__ Window(const typename Policy::Parameters& graph,
                                      const Frontier& frontier, unsigned first, int lane) {
      load(graph, frontier, first, lane);
    }

    __device__ __forceinline__ void load(const typename Policy::Parameters& graph,
                                         const Frontier& frontier, unsigned first, int lane) {
      const unsigned size = frontier.size;
      index = first;
      begin = frontier.edges;
      vertex = 0;
      row = 0;
      if (first + lane < size) {
        begin = frontier.edge_begin[first + lane];
        vertex = frontier.vertices[first + lane];
        if (!Policy::padded || vertex != NO_VERTEX) row = __ldg(graph.row_offsets + vertex);
      }
      const unsigned beyond = first + WARP_SIZE;
      end = beyond < size ? frontier.edge_begin[beyond] : frontier.edges;
    }
  };

  // The edges [first, last) of the frontier's numbering, by one warp; the window moves along.
  template <class Policy, class Visit>
  static __device__ __forceinline__ void chunk(const typename Policy::Parameters& graph,
                                               const Frontier& frontier, unsigned first,
                                               unsigned last, int lane, Window<Policy>& window,
                                               Visit& visit) {
    using Offset = typename Policy::Offset;
    vertex_t sources[BATCH];
    vertex_t neighbours[BATCH];
    unsigned valid = 0;
#pragma unroll
    for (int i = 0; i < BATCH; ++i) sources[i] = neighbours[i] = 0;

    for (unsigned reached = first; reached < last;) {
      if (reached == window.end) window.load(graph, frontier, window.index + WARP_SIZE, lane);
      const unsigned end = window.end < last ? window.end : last;
      // The last lanes whose vertices begin at or before the first edge, and before the end.
      const int low = __popc(__ballot_sync(FULL_WARP, window.begin <= reached)) - 1;
      const int high = __popc(__ballot_sync(FULL_WARP, window.begin < end)) - 1;
      unsigned owner_begin = __shfl_sync(FULL_WARP, window.begin, low);
      vertex_t source = __shfl_sync(FULL_WARP, window.vertex, low);
      Offset owner_row = __shfl_sync(FULL_WARP, window.row, low);
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const unsigned group = first + i * WARP_SIZE;
        if (group >= end || (group < reached && reached - group >= WARP_SIZE)) continue;
        const unsigned edge = group + lane;
        if (low != high) {
          int owner = 0;
#pragma unroll
          for (int half = WARP_SIZE / 2; half > 0; half /= 2) {
            if (__shfl_sync(FULL_WARP, window.begin, owner + half) <= edge) owner += half;
          }
          owner_begin = __shfl_sync(FULL_WARP, window.begin, owner);
          source = __shfl_sync(FULL_WARP, window.vertex, owner);
          owner_row = __shfl_sync(FULL_WARP, window.row, owner);
        }
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
  static __device__ __forceinline__ unsigned owner_of(const Frontier& frontier, unsigned edge,
                                                      int lane) {
    unsigned low = 0;
    unsigned high = frontier.size;  // the owner is in [low, high)
    while (high - low > 1) {
      const unsigned step = (high - low + WARP_SIZE - 1) / WARP_SIZE;
      const unsigned probe = low + lane * step;
      const bool at_or_before = probe < high && frontier.edge_begin[probe] <= edge;
      const int passed = __popc(__ballot_sync(FULL_WARP, at_or_before));
      low += (passed - 1) * step;
      high = low + step < high ? low + step : high;
    }
    return low;
  }
};

}  // namespace persistent_bfs::advance

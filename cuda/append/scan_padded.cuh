// Append by scan, padded: an arc's place in the scan of the frontier's degrees is its slot in the
// next frontier, and the slots whose arcs discovered nobody stay in it as NO_VERTEX.
//
// No filter: the expansion writes the next frontier itself, which every mapping reads as vertices
// without arcs. Cost: frontiers as long as the edges of the level before, so lanes that find
// nobody, and a queue of an entry an arc; the degrees are still scanned, for the places (see
// slots.cuh), which takes the same two phases. Source: the advance without filter of Gunrock (Y.
// Wang et al., PPoPP 2016).
#pragma once

#include "frontier.cuh"
#include "slots.cuh"

namespace persistent_bfs::append {

template <class Policy>
struct ScanPadded {
  const typename Policy::Parameters& parameters;
  NextFrontier next;
  int lane;

  // Bit i of `discovered` says that this lane discovered neighbours[i], of `valid` that it looked.
  template <int N>
  __device__ __forceinline__ void push(const vertex_t (&neighbours)[N], unsigned valid,
                                       unsigned discovered, Places places) {
    fill_slots(next.vertices, neighbours, valid, discovered, places);
  }

  __device__ __forceinline__ void finish() {}

  static __device__ __forceinline__ void complete(const typename Policy::Parameters& parameters,
                                                  const Frontier& frontier,
                                                  const NextFrontier& next, int phase) {
    const SlotPart<Policy> part(parameters, next.vertices, frontier.edges);
    if (phase == SUM_SLOTS) return part.sum(next);
    const FrontierCount all = part.scan([&](unsigned slot, vertex_t, FrontierCount before) {
      next.edge_begin[slot] = before.edges();
    });
    // Slots with nobody in them are no frontier: the search is over.
    if (part.speaks_for_all() && all.vertices() > 0) {
      next.reserve(FrontierCount::pack(frontier.edges, all.edges()));
      store_relaxed(&next.totals->discovered, static_cast<int>(all.vertices()));
    }
  }
};

}  // namespace persistent_bfs::append

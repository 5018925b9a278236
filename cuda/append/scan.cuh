// Append by scan, compacted: an arc's place in the scan of the frontier's degrees is its slot, and
// a filter removes the slots whose arcs discovered nobody.
//
// No cursor and no atomic: the order of the next frontier is that of the arcs, whatever the order
// in which threads run. Cost: a write an arc instead of one a discovery, then two more phases, each
// behind a device-wide barrier (see slots.cuh). Source: the contraction by prefix sum of D.
// Merrill, M. Garland, A. Grimshaw, "Scalable GPU Graph Traversal", PPoPP 2012; the advance and
// filter of Gunrock (Y. Wang et al., PPoPP 2016).
#pragma once

#include "frontier.cuh"
#include "slots.cuh"

namespace persistent_bfs::append {

template <class Policy>
struct Scan {
  const typename Policy::Parameters& parameters;
  NextFrontier next;
  int lane;

  // Bit i of `discovered` says that this lane discovered neighbours[i], of `valid` that it looked.
  template <int N>
  __device__ __forceinline__ void push(const vertex_t (&neighbours)[N], unsigned valid,
                                       unsigned discovered, Places places) {
    fill_slots(slots_behind_sums(parameters), neighbours, valid, discovered, places);
  }

  __device__ __forceinline__ void finish() {}

  static __device__ __forceinline__ void complete(const typename Policy::Parameters& parameters,
                                                  const Frontier& frontier,
                                                  const NextFrontier& next, int phase) {
    const SlotPart<Policy> part(parameters, slots_behind_sums(parameters), frontier.edges);
    if (phase == SUM_SLOTS) return part.sum(next);
    const FrontierCount all = part.scan([&](unsigned, vertex_t v, FrontierCount before) {
      if (v == NO_VERTEX || before.vertices() >= static_cast<unsigned>(next.capacity)) return;
      next.vertices[before.vertices()] = v;
      next.edge_begin[before.vertices()] = before.edges();
    });
    if (part.speaks_for_all()) next.reserve(all.packed);
  }
};

}  // namespace persistent_bfs::append

// The likely parent of every vertex: of those with an arc to it, one with the most arcs itself.
//
// Built once at upload. Whoever looks for a parent looks at this one first: a vertex of many arcs
// is in a large frontier more often than others, and 32 vertices in a row have theirs in one cache
// line, where first neighbours in their rows lie far apart. A vertex without a likely parent has
// none at all, so that nobody looks at its row. Cost: 4 bytes a vertex. Source: rows sorted by
// degree serve the same end in Y. Yasui, K. Fujisawa, K. Goto, "NUMA-optimized Parallel
// Breadth-first Search on Multicore Single-node System", IEEE BigData 2013; keeping the first of
// them apart is this project's own.
#pragma once

#include "types.cuh"

namespace persistent_bfs::pull {

// They are where packed rows would be, which no search by bitmaps has: more than 128 bytes of
// kernel parameters cost every kernel registers.
template <class Parameters>
__device__ __forceinline__ vertex_t likely_parent(const Parameters& parameters, unsigned v) {
  return __ldg(reinterpret_cast<const vertex_t*>(parameters.packed_rows) + v);
}

}  // namespace persistent_bfs::pull

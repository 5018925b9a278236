// Packed rows: the first arcs of a vertex in one aligned read, or two.
//
// Row v of the first table holds the first four neighbours of v, row v of the second the next four,
// which few vertices of a road or a mesh have. So that both can be asked for at once, an entry says
// whether the vertex it names is long: it has more than four arcs. A vertex of more than eight, a
// hub, has MORE_NEIGHBOURS in its last place and goes on in the CSR arrays from there. Cost: 16
// bytes a vertex, 32 where the graph has long ones (persistent_bfs/engines/base.py builds them).
// Source: this project's own.
#pragma once

#include "types.cuh"

namespace persistent_bfs {

constexpr int PACKED = 4;                    // neighbours in a row
constexpr int PACKED_ARCS = 2 * PACKED - 1;  // of a hub, before MORE_NEIGHBOURS
constexpr int LONG = 1 << 30;                // beside the number of a long neighbour
constexpr int NO_NEIGHBOUR = -1;             // an entry past the vertex's last arc
constexpr int MORE_NEIGHBOURS = -2;

// Entries from 0 on name a neighbour.
__device__ __forceinline__ vertex_t neighbour_of(int entry) { return entry & ~LONG; }

__device__ __forceinline__ bool is_long(int entry) { return entry & LONG; }

__device__ __forceinline__ int entry_of(vertex_t v, int degree) {
  return degree > PACKED ? v | LONG : v;
}

}  // namespace persistent_bfs

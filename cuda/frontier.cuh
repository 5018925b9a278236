// A level's place in the queue of all frontiers, and the count that grows the next one.
#pragma once

#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// Vertices of a frontier in the low 32 bits, their edges in the high 32 where the policy counts
// them: one atomic reserves a slot and a place among the edges at once, so that both orders agree.
struct FrontierCount {
  unsigned long long packed;

  static __device__ __forceinline__ unsigned long long pack(unsigned vertices, unsigned edges) {
    return static_cast<unsigned long long>(edges) << 32 | vertices;
  }

  __device__ __forceinline__ unsigned vertices() const { return static_cast<unsigned>(packed); }
  __device__ __forceinline__ unsigned edges() const { return static_cast<unsigned>(packed >> 32); }
};

// Degrees up to this are alike to every mapping; where a graph has no other, the host compiles the
// automatic mapping not to count any.
constexpr int EVEN_DEGREE = 64;

// The frontier of one level: `size` vertices, all at distance `depth`. Where edges are counted,
// `edges` is the sum of their degrees, `edge_begin` its exclusive scan, `largest_degree` the
// largest (EVEN_DEGREE standing for anything smaller), and `unexplored` the arcs of the vertices
// that have been in no frontier yet, or in one whose edges were not counted; `unvisited` vertices
// have been in none. `pulling` says how the level before was expanded. Of a padded
// frontier `discovered` of the `size` slots hold a vertex, the others NO_VERTEX. A dense frontier
// has bitmap number `bitmap` of three, and after a pulled level nothing else: its vertices are not
// in the queue then, and `left` vertices are still to look for a parent. `stale` says what is left
// in the bitmap of the frontier before. See dense.cuh. `pulls` says how this level is expanded: see
// step.cuh.
struct Frontier {
  const vertex_t* vertices;
  const unsigned* edge_begin;
  int size;
  unsigned edges;
  int largest_degree;
  int depth;
  unsigned long long unexplored;
  int unvisited;
  bool pulling;
  int discovered;
  int bitmap;
  int stale;
  int left;
  bool pulls;
};

// Where the next frontier grows: right behind this one. Its count is of every discovery, also those
// past `capacity`, which are not stored; the loop compares the count and stops with QUEUE_FULL.
// Only a claim that discovers twice can get there.
struct NextFrontier {
  vertex_t* vertices;
  unsigned* edge_begin;
  FrontierTotals* totals;
  int capacity;

  __device__ __forceinline__ FrontierCount reserve(unsigned long long more) const {
    return {atomicAdd(&totals->count, more)};
  }

  // Remember the largest degree; small ones need not be told apart. By one thread: atomics on one
  // address are served one after another, so it looks first whether there is anything to say.
  __device__ __forceinline__ void note_degree(int degree) const {
    if (degree > EVEN_DEGREE && degree > load_relaxed(&totals->largest_degree)) {
      atomicMax(&totals->largest_degree, degree);
    }
  }

  // The same by a whole warp, with a degree a lane; without waiting for it.
  __device__ __forceinline__ void note_degrees(int degree, int lane) const {
    const int largest = warp_max(degree);
    if (lane == 0 && largest > EVEN_DEGREE) atomicMax(&totals->largest_degree, largest);
  }
};

template <class Parameters>
__device__ __forceinline__ Frontier frontier_at(const Parameters& parameters, int begin,
                                                FrontierCount count, int largest_degree,
                                                int depth, unsigned long long explored,
                                                bool pulling) {
  return {parameters.queue + begin,
          parameters.edge_begin + begin,
          static_cast<int>(count.vertices()),
          count.edges(),
          largest_degree > EVEN_DEGREE ? largest_degree : EVEN_DEGREE,
          depth,
          parameters.arcs - explored - count.edges(),
          parameters.vertices - begin - static_cast<int>(count.vertices()),
          pulling,
          static_cast<int>(count.vertices()),
          0,
          0,
          0,
          false};
}

template <class Parameters>
__device__ __forceinline__ NextFrontier next_frontier(const Parameters& parameters, int end,
                                                      int which) {
  return {parameters.queue + end, parameters.edge_begin + end,
          &parameters.state->totals[which], parameters.queue_capacity - end};
}

// The count as it is now, between the levels.
__device__ __forceinline__ FrontierCount count_of(const FrontierTotals& totals) {
  return {load_relaxed(&totals.count)};
}

// Whether a frontier that begins at `begin` is all in the queue, and the slots of its arcs in
// memory.
template <class Policy>
__device__ __forceinline__ bool fits(const typename Policy::Parameters& parameters, int begin,
                                     FrontierCount count) {
  const unsigned room = parameters.queue_capacity - begin;
  if (count.vertices() > room) return false;
  if constexpr (Policy::padded) {
    return count.edges() <= room - count.vertices();
  } else if constexpr (Policy::needs_places) {
    return count.edges() <= static_cast<unsigned long long>(parameters.arcs);
  } else {
    return true;
  }
}

// The host refuses a graph with a row of 2^31 - 2^20 arcs or more, parallel ones too: so a degree is
// an int, and so is the place in a row of a few strides beyond its end.
template <class Parameters>
__device__ __forceinline__ int degree_of(const Parameters& graph, vertex_t v) {
  return static_cast<int>(__ldg(graph.row_offsets + v + 1) - __ldg(graph.row_offsets + v));
}

// The arcs of one vertex: `degree` of them, from `begin` of col_indices on. Where places are
// needed, the first has place `place` among the frontier's arcs, in the order of its vertices.
template <class Policy>
struct Row {
  typename Policy::Offset begin = 0;
  int degree = 0;
  vertex_t source = 0;
  unsigned place = 0;

  // Nobody's: no arcs.
  __device__ __forceinline__ Row() {}

  __device__ __forceinline__ Row(const typename Policy::Parameters& graph,
                                 const Frontier& frontier, int index)
      : source(frontier.vertices[index]) {
    if constexpr (Policy::needs_places) place = frontier.edge_begin[index];
    if (Policy::padded && source == NO_VERTEX) return;
    begin = __ldg(graph.row_offsets + source);
    degree = static_cast<int>(__ldg(graph.row_offsets + source + 1) - begin);
  }
};

// The places of a batch of arcs: arc i is at `first + i * pitch`.
struct Places {
  unsigned first;
  unsigned pitch;

  __device__ __forceinline__ unsigned operator[](int i) const { return first + i * pitch; }
};

}  // namespace persistent_bfs

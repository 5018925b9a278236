// Looks along the rows of unvisited vertices for a parent in the frontier, up to the first.
//
// Rows differ in length, and in how soon they end: so a lane goes along a row of its own only while
// many lanes of the warp still do. Then the warp takes the rows that are left one by one, and puts
// those that are long even for a warp by for the block, which takes them when all its warps are
// through. Cost: a chain of three dependent reads for each batch of neighbours; a row of d arcs
// without a parent takes d / 128 of them, or d / (4 x threads a block) if it is long. Needs the
// transposed graph if directed. Source: the bottom-up step of S. Beamer, K. Asanovic, D. Patterson,
// "Direction-Optimizing Breadth-First Search", SC 2012; rows by length as in bucketed.cuh.
#pragma once

#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::pull {

// `Members` says by contains(v) whether v is in the frontier.
template <class Policy, class Members>
class ParentSearch {
 public:
  using Offset = typename Policy::Offset;
  using Parameters = typename Policy::Parameters;

  // By the whole block.
  __device__ __forceinline__ ParentSearch(const Parameters& parameters, const Members& members,
                                          int lane)
      : parameters_(parameters), members_(members), lane_(lane) {
    __shared__ LongRows rows;
    rows_ = &rows;
    if (threadIdx.x == 0) rows.count = 0;
    __syncthreads();
  }

  // By a whole warp, with a vertex a lane or NO_VERTEX. NO_PREDECESSOR where there is no parent, or
  // where finish() will tell. A lane that has its `parent` already looks no further.
  __device__ __forceinline__ vertex_t find(vertex_t v, vertex_t parent = NO_PREDECESSOR) {
    const bool seeks = v != NO_VERTEX && parent == NO_PREDECESSOR;
    if (!__any_sync(FULL_WARP, seeks)) return parent;
    const Offset begin = seeks ? __ldg(parameters_.in_row_offsets + v) : 0;
    const int degree =
        seeks ? static_cast<int>(__ldg(parameters_.in_row_offsets + v + 1) - begin) : 0;
    int step = 0;
    unsigned open = __ballot_sync(FULL_WARP, degree > 0);
    while (open != 0 && (step < ALONE || (step < MOST_ALONE && __popc(open) > FEW))) {
      if (lane_ == 0) count_lane_slots(BATCH * WARP_SIZE);
      if (open >> lane_ & 1u) parent = look(begin, degree, step, 1);
      step += BATCH;
      open = __ballot_sync(FULL_WARP, parent == NO_PREDECESSOR && step < degree);
    }
    for (; open != 0; open &= open - 1) {
      const int its = __ffs(open) - 1;
      const vertex_t found = find_together(__shfl_sync(FULL_WARP, v, its),
                                           __shfl_sync(FULL_WARP, begin, its),
                                           __shfl_sync(FULL_WARP, degree, its), step);
      if (lane_ == its) parent = found;
    }
    return parent;
  }

  // By the whole block, when all its warps are through: calls enter(vertex, parent) by its first
  // warp, a lane a vertex, if any was put by; NO_PREDECESSOR where there is no parent.
  template <class Enter>
  __device__ __forceinline__ void finish(Enter enter) {
    __syncthreads();
    const int count = rows_->count < KEPT ? rows_->count : KEPT;
    if (count == 0) return;
    for (int i = 0; i < count; ++i) {
      const vertex_t v = rows_->vertices[i];
      const Offset begin = __ldg(parameters_.in_row_offsets + v);
      const int degree = static_cast<int>(__ldg(parameters_.in_row_offsets + v + 1) - begin);
      vertex_t parent = NO_PREDECESSOR;
      for (int step = 0; step < degree; step += BATCH * Policy::block_threads) {
        if (lane_ == 0) count_lane_slots(BATCH * WARP_SIZE);
        parent = look(begin, degree, step + threadIdx.x, Policy::block_threads);
        if (__syncthreads_or(parent != NO_PREDECESSOR)) break;
      }
      if (parent != NO_PREDECESSOR) atomicMax(rows_->parents + i, parent);
    }
    __syncthreads();
    if (threadIdx.x >= WARP_SIZE) return;
    const bool mine = lane_ < count;
    enter(mine ? rows_->vertices[lane_] : NO_VERTEX,
          mine ? rows_->parents[lane_] : NO_PREDECESSOR);
  }

  // Arcs that this thread looked at by itself, before it searched.
  __device__ __forceinline__ void count_looks(unsigned looks) { edges_ += looks; }

  // Arcs that this thread looked at.
  __device__ __forceinline__ unsigned edges() const { return edges_; }

 private:
  static constexpr int BATCH = 4;
  static constexpr int ALONE = 8;        // neighbours that a lane looks at alone in any case,
  static constexpr int MOST_ALONE = 64;  // and at most,
  static constexpr int FEW = 4;          // while more lanes than these do
  static constexpr int LONG = 1024;      // neighbours: eight batches of a warp
  static constexpr int KEPT = WARP_SIZE;

  struct LongRows {
    int count;
    vertex_t vertices[KEPT];
    vertex_t parents[KEPT];
  };

  // The first of this thread's next BATCH neighbours that is in the frontier.
  __device__ __forceinline__ vertex_t look(Offset begin, int degree, int first, int pitch) {
    vertex_t neighbours[BATCH];
    bool in_frontier[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      const int mine = first + i * pitch;
      neighbours[i] =
          mine < degree ? __ldg(parameters_.in_col_indices + begin + mine) : NO_PREDECESSOR;
    }
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      in_frontier[i] = neighbours[i] != NO_PREDECESSOR && members_.contains(neighbours[i]);
      edges_ += neighbours[i] != NO_PREDECESSOR;
    }
    vertex_t parent = NO_PREDECESSOR;
#pragma unroll
    for (int i = BATCH - 1; i >= 0; --i) {
      if (in_frontier[i]) parent = neighbours[i];
    }
    return parent;
  }

  // By a whole warp: one row, from neighbour `step` on; or it is put by.
  __device__ __forceinline__ vertex_t find_together(vertex_t v, Offset begin, int degree,
                                                    int step) {
    if (degree - step > LONG && put_by(v)) return NO_PREDECESSOR;
#pragma unroll 1
    for (; step < degree; step += BATCH * WARP_SIZE) {
      if (lane_ == 0) count_lane_slots(BATCH * WARP_SIZE);
      const vertex_t mine = look(begin, degree, step + lane_, WARP_SIZE);
      const unsigned found = __ballot_sync(FULL_WARP, mine != NO_PREDECESSOR);
      if (found != 0) return __shfl_sync(FULL_WARP, mine, __ffs(found) - 1);
    }
    return NO_PREDECESSOR;
  }

  // By a whole warp; whether there was room.
  __device__ __forceinline__ bool put_by(vertex_t v) {
    int slot = 0;
    if (lane_ == 0) {
      slot = atomicAdd(&rows_->count, 1);
      if (slot < KEPT) {
        rows_->vertices[slot] = v;
        rows_->parents[slot] = NO_PREDECESSOR;
      }
    }
    return __shfl_sync(FULL_WARP, slot, 0) < KEPT;
  }

  const Parameters& parameters_;
  const Members& members_;
  const int lane_;
  LongRows* rows_;
  unsigned edges_ = 0;  // more arcs than 32 bits count are one thread's in no device's memory
};

}  // namespace persistent_bfs::pull

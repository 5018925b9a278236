// Bucketed mapping: a row is expanded by a team of lanes, a warp or the whole block, by its degree.
//
// A frontier of no more vertices than blocks: the block mapping. Else a vertex is given as many
// lanes as leave no thread of the grid without, 1 to 32, and its row four strides of them at a
// time; longer rows go to the whole warp, one after another. A row that would keep one warp long is
// put by, and when the warps of a block are through with the rest, they all take it together. Cost:
// a vote of the block a level (none where the largest degree is known to be small), and a barrier
// where a row was put by; few idle lanes at any degree. A hub still has one block only. Source: the
// three classes of D. Merrill, M. Garland, A. Grimshaw, "Scalable GPU Graph Traversal", PPoPP 2012;
// teams of lanes after S. Hong, S. K. Kim, T. Oguntebi, K. Olukotun, PPoPP 2011.
#pragma once

#include "frontier.cuh"
#include "mapping.cuh"
#include "rows.cuh"
#include "stride.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct Bucketed : FixedMapping {
  static constexpr int KEPT = 8;  // hubs a warp puts by; more it strides alone

  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    unsigned long long edges = 0;
    Hubs<Policy> hubs;
    const unsigned size = frontier.size;
    const bool a_block_each = size <= gridDim.x;
    if (!a_block_each) {
      const int lane = workers.lane;
      const int shift = team_shift(size, workers.threads());
      const int team = 1 << shift;
      const unsigned step = workers.threads() >> shift;
      // The whole warp stays as long as any of its teams has a vertex.
      for (unsigned index = workers.thread() >> shift; __any_sync(FULL_WARP, index < size);
           index += step) {
        Row<Policy> row;
        if (index < size) row = Row<Policy>(graph, frontier, index);
        if ((lane & (team - 1)) == 0) edges += row.degree;
        if (hubs.possible(frontier)) hubs.put_by(row, lane, team);
        rows_by_teams(graph, row, team, lane, visit);
      }
      if (!hubs.possible(frontier) || !hubs.any()) return edges;
    }
    // One row of the frontier, or all that the block's warps put by.
    for (unsigned next = a_block_each ? blockIdx.x : 0;;) {
      Row<Policy> row;
      if (a_block_each) {
        if (next >= size) break;
        row = Row<Policy>(graph, frontier, next);
        if (threadIdx.x == 0) edges += row.degree;
        next = size;
      } else if (!hubs.take(row, next)) {
        break;
      }
      stride_row<false>(graph, row, Policy::block_threads, threadIdx.x, visit);
    }
    if (!a_block_each) __syncthreads();  // all hubs are read before the next level puts others by
    return edges;
  }

 private:
  // The logarithm of the lanes a vertex gets: the most, up to a warp, that there are for each.
  static __device__ __forceinline__ int team_shift(unsigned vertices, unsigned threads) {
    int shift = 0;
#pragma unroll
    for (int more = 1; 1 << more <= WARP_SIZE; ++more) {
      if (vertices <= threads >> more) shift = more;
    }
    return shift;
  }

  // The rows that the warps of a block put by for all of them.
  template <class Policy>
  struct Hubs {
    static constexpr int WARPS = Policy::block_threads / WARP_SIZE;
    // Two strides of the block, for which one warp takes WARPS / 2 batches one after another.
    static constexpr int DEGREE = 2 * Policy::block_threads;

    struct Kept {
      typename Policy::Offset begin;
      int degree;
      vertex_t source;
      unsigned place;
    };
    struct Shared {
      Kept rows[WARPS][KEPT];
      int count[WARPS];
    };

    Shared* shared;
    int kept = 0;  // by this warp

    __device__ __forceinline__ Hubs() {
      __shared__ Shared memory;
      shared = &memory;
    }

    static __device__ __forceinline__ bool possible(const Frontier& frontier) {
      return !Policy::counts_edges || frontier.largest_degree >= DEGREE;
    }

    // By a whole warp with a row a team: takes hubs away from it, as long as there is room.
    __device__ __forceinline__ void put_by(Row<Policy>& row, int lane, int team) {
      const bool is_hub = row.degree >= DEGREE;
      const bool leads = (lane & (team - 1)) == 0;
      const unsigned found = __ballot_sync(FULL_WARP, leads && is_hub);
      if (found == 0) return;
      const int slot = kept + lanes_below(found, lane & -team);
      if (is_hub && slot < KEPT) {
        if (leads) {
          shared->rows[threadIdx.x / WARP_SIZE][slot] = {row.begin, row.degree, row.source,
                                                         row.place};
        }
        row.degree = 0;
      }
      kept += __popc(found);
      if (kept > KEPT) kept = KEPT;
    }

    // By the whole block, when all its warps are through: whether any row was put by.
    __device__ __forceinline__ bool any() const {
      if (threadIdx.x % WARP_SIZE == 0) shared->count[threadIdx.x / WARP_SIZE] = kept;
      return __syncthreads_or(kept != 0);
    }

    // The row at `next` or, where there is none, the one after it; false behind the last.
    __device__ __forceinline__ bool take(Row<Policy>& row, unsigned& next) const {
      int warp = next / KEPT;
      int i = next % KEPT;
      for (; warp < WARPS && i == shared->count[warp]; i = 0) ++warp;
      if (warp == WARPS) return false;
      const Kept& hub = shared->rows[warp][i];
      row.begin = hub.begin;
      row.degree = hub.degree;
      row.source = hub.source;
      row.place = hub.place;
      next = i + 1 == KEPT ? (warp + 1) * KEPT : warp * KEPT + i + 1;
      return true;
    }
  };
};

}  // namespace persistent_bfs::advance

// Bucketed mapping: a row is expanded by a team of lanes, a warp or the whole block, by its degree.
//
// A frontier of no more vertices than blocks: the block mapping. Else a vertex is given as many lanes
// as leave no thread of the grid without, 1 to 32, and its row four strides of them at a time; longer
// rows go to the whole warp, one after another. A row that would keep one warp long is put by, and
// when the warps of a block are through with the rest, they all take it together. Cost: a vote of
// the block a level (none where the largest degree is known to be small), and a barrier where a row
// was put by; few idle lanes at any degree. A hub still has one block only. Source: the three
// classes of D. Merrill, M. Garland, A. Grimshaw, "Scalable GPU Graph Traversal", PPoPP 2012; teams
// of lanes after S. Hong, S. K. Kim, T. Oguntebi, K. Olukotun, PPoPP 2011.
#pragma once

#include "advance/block.cuh"
#include "frontier.cuh"
#include "mapping.cuh"
#include "stride.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::advance {

struct Bucketed : FixedMapping {
  static constexpr int BATCH = 4;
  static constexpr int KEPT = 8;  // hubs a warp puts by; more it strides alone

  template <class Policy, class Visit>
  static __device__ __forceinline__ unsigned long long run(
      const typename Policy::Parameters& graph, const Frontier& frontier, const Workers& workers,
      Visit& visit) {
    if (frontier.size <= static_cast<int>(gridDim.x)) {
      return Block::run<Policy>(graph, frontier, workers, visit);
    }
    Hubs<Policy> hubs;
    unsigned long long edges = 0;
    const int lane = workers.lane;
    const int team = lanes_a_vertex(frontier.size, workers.warps * WARP_SIZE);
    const int rank = lane & (team - 1);
    const int long_row = BATCH * team > WARP_SIZE ? BATCH * team : WARP_SIZE;
    const int vertices = WARP_SIZE / team;
    for (int first = workers.warp * vertices; first < frontier.size;
         first += workers.warps * vertices) {
      const int index = first + lane / team;
      Row<Policy> row;
      if (index < frontier.size) row = Row<Policy>(graph, frontier, index);
      if (rank == 0) edges += row.degree;

      if (hubs.possible(frontier)) hubs.put_by(row, lane, team);
      for (unsigned left = __ballot_sync(FULL_WARP, rank == 0 && row.degree >= long_row);
           left != 0; left &= left - 1) {
        stride_row(graph, row_of_lane(row, __ffs(left) - 1), WARP_SIZE, lane, visit);
      }
      if (row.degree >= long_row) row.degree = 0;
      const int longest = warp_max(row.degree);
      if (lane == 0) count_lane_slots((longest + team - 1) / team * WARP_SIZE);
      for (int step = 0; step < longest; step += BATCH * team) {
        stride<BATCH>(graph, row, step, team, rank, visit);
      }
    }
    if (hubs.possible(frontier)) hubs.expand(graph, visit);
    return edges;
  }

 private:
  // The largest power of two, up to a warp, that gives every vertex so many of the threads.
  static __device__ __forceinline__ int lanes_a_vertex(int vertices, int threads) {
    int lanes = 1;
#pragma unroll
    for (int more = 2; more <= WARP_SIZE; more *= 2) {
      if (vertices <= threads / more) lanes = more;
    }
    return lanes;
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

    // By the whole block, when all its warps are through.
    template <class Visit>
    __device__ __forceinline__ void expand(const typename Policy::Parameters& graph,
                                           Visit& visit) {
      if (threadIdx.x % WARP_SIZE == 0) shared->count[threadIdx.x / WARP_SIZE] = kept;
      if (!__syncthreads_or(kept != 0)) return;
      for (int warp = 0; warp < WARPS; ++warp) {
        for (int i = 0; i < shared->count[warp]; ++i) {
          const Kept& hub = shared->rows[warp][i];
          Row<Policy> row;
          row.begin = hub.begin;
          row.degree = hub.degree;
          row.source = hub.source;
          row.place = hub.place;
          stride_row(graph, row, blockDim.x, threadIdx.x, visit);
        }
      }
      __syncthreads();  // all are read before the next level puts others by
    }
  };
};

}  // namespace persistent_bfs::advance

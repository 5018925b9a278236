// The block tier: one block runs level after level alone while the frontier is small.
//
// A barrier of one block never leaves its multiprocessor, where the grid's goes to L2 and back, and
// what a level touches first is in shared memory: the frontier with the first four
// neighbours of each vertex, and a bit a vertex for what has been visited. The one global latency
// of a level is the read of a discovered vertex's packed row, which is under way while its slot is
// reserved; distances go out unwaited for. Longer rows go on in the CSR arrays. The other blocks
// wait at the grid's next barrier. Needs a bit a vertex of shared memory, and pays as long as one
// multiprocessor can keep up with the frontier. Source: this project's own; the frontier in shared
// memory after L. Luo, M. Wong, W. Hwu, DAC 2010.
#pragma once

#include "advance/thread.cuh"
#include "dense.cuh"
#include "frontier.cuh"
#include "stride.cuh"
#include "trace.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// Where a search stands between two levels.
struct Position {
  int level;
  int slot;   // of the frontier's totals, among the three that rotate
  int begin;  // of the frontier, in the queue of all frontiers
  FrontierCount count;
  unsigned long long explored;
};

template <class Policy>
struct BlockTier {
  using Parameters = typename Policy::Parameters;

  // A frontier larger than LEAVE goes to the grid, one of at most ENTER comes back: apart, so that
  // a search does not go to and fro.
  static constexpr unsigned LEAVE = Policy::tier_vertices;
  static constexpr unsigned ENTER = LEAVE / 2;

  // Everything shared: two frontiers with their rows, and the visited bits behind all this.
  struct Shared {
    int4 rows[2][LEAVE];
    unsigned long long scan[WARP_SIZE];
    unsigned long long walked;  // edges of the levels run here, where they are counted
    unsigned long long reserved;
    int sizes[4];  // the first three rotate, as the totals of the grid's frontiers do
    vertex_t vertices[2][LEAVE];
  };
  Shared* shared;
  unsigned* visited;

  __device__ __forceinline__ BlockTier() {
    PERSISTENT_BFS_DYNAMIC_SHARED(int4, memory);
    shared = reinterpret_cast<Shared*>(memory);
    visited = reinterpret_cast<unsigned*>(shared + 1);
  }

  static __device__ __forceinline__ bool suits(const Parameters& parameters,
                                               const Frontier& frontier) {
    return Policy::Claim::exact && !Policy::padded && in_queue<Policy>(frontier) &&
           static_cast<unsigned>(frontier.size) <= ENTER &&
           !Policy::template Direction<Policy>::pulls(parameters, frontier);
  }

  // No vertex visited; by the whole block, before its next barrier.
  __device__ __forceinline__ void clear(const Parameters& parameters) {
    for (int word = threadIdx.x; word < words(parameters); word += blockDim.x) visited[word] = 0;
  }

  // The visited bits as the distances have them, after levels that were not run here.
  __device__ __forceinline__ void rebuild(const Parameters& parameters) {
    const int lane = threadIdx.x % WARP_SIZE;
    for (int word = threadIdx.x / WARP_SIZE; word < words(parameters);
         word += blockDim.x / WARP_SIZE) {
      const long long v = static_cast<long long>(word) * WARP_SIZE + lane;
      const bool is_visited =
          v < parameters.vertices && load_relaxed(parameters.distances + v) != UNVISITED;
      const unsigned bits = __ballot_sync(FULL_WARP, is_visited);
      if (lane == 0) visited[word] = bits;
    }
  }

  // Runs levels from `now` until the frontier is empty, too large or at the depth limit; by the
  // whole block. The frontier's vertices are visited already. Returns where the search stands.
  __device__ __forceinline__ Position run(const Parameters& parameters, Position now,
                                          int max_depth) {
    int size = now.count.vertices();
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      const vertex_t v = parameters.queue[now.begin + i];
      shared->vertices[now.level % 2][i] = v;
      shared->rows[now.level % 2][i] = __ldg(parameters.packed_rows + v);
      atomicOr(visited + v / WARP_SIZE, bit_of(v));
    }
    if (threadIdx.x < 3) shared->sizes[threadIdx.x] = 0;
    if (threadIdx.x == 0) shared->walked = 0;
    __syncthreads();
    unsigned long long walked = 0;
    do {
      walked += level(parameters, now, size);
      __syncthreads();
      now.begin += size;
      ++now.level;
      size = load_shared(&shared->sizes[now.level % 3]);
    } while (size > 0 && static_cast<unsigned>(size) <= LEAVE && now.level < max_depth);
    now.slot = (now.slot + 1) % 3;
    now.count = {FrontierCount::pack(size, 0)};
    if constexpr (Policy::counts_edges) {
      const unsigned long long warp_walked = warp_sum(walked);
      if (threadIdx.x % WARP_SIZE == 0) atomicAdd(&shared->walked, warp_walked);
      __syncthreads();
      count_edges(parameters, now, size);
      now.explored += shared->walked;
    }
    return now;
  }

 private:
  static __device__ __forceinline__ int words(const Parameters& parameters) {
    return static_cast<int>((static_cast<unsigned>(parameters.vertices) + WARP_SIZE - 1) /
                            WARP_SIZE);
  }

  static __device__ __forceinline__ unsigned bit_of(vertex_t v) { return 1u << v % WARP_SIZE; }

  // What is done with a batch of arcs, as in visit.cuh, but with the block's own memory.
  struct Visit {
    const Parameters& parameters;
    unsigned* visited;
    vertex_t* next_vertices;
    int4* next_rows;
    int* next_size;
    int end;  // of this frontier in the queue of all, where the next one goes too
    int distance;
    int lane;

    template <int N>
    __device__ __forceinline__ void operator()(const vertex_t (&sources)[N],
                                               const vertex_t (&neighbours)[N], unsigned valid,
                                               Places) {
      // A look first: most neighbours are visited, and a shared atomic takes longer.
      unsigned unvisited = 0;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const vertex_t v = valid >> i & 1u ? neighbours[i] : 0;
        unvisited |= (~load_shared(visited + v / WARP_SIZE) >> v % WARP_SIZE & 1u) << i;
      }
      unvisited &= valid;
      unsigned discovered = 0;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const vertex_t v = neighbours[i];
        if ((unvisited >> i & 1u) && !(atomicOr(visited + v / WARP_SIZE, bit_of(v)) & bit_of(v))) {
          discovered |= 1u << i;
        }
      }
      int4 rows[N];
      unsigned ballots[N];
      int total = 0;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (discovered >> i & 1u) rows[i] = __ldg(parameters.packed_rows + neighbours[i]);
        ballots[i] = __ballot_sync(FULL_WARP, discovered >> i & 1u);
        total += __popc(ballots[i]);
      }
      if (total == 0) return;
      int slot = 0;
      if (lane == 0) slot = atomicAdd(next_size, total);
      slot = __shfl_sync(FULL_WARP, slot, 0);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (discovered >> i & 1u) {
          const unsigned mine = slot + lanes_below(ballots[i], lane);
          const vertex_t v = neighbours[i];
          parameters.distances[v] = distance;
          parameters.queue[end + mine] = v;
          if constexpr (Policy::predecessors) parameters.predecessors[v] = sources[i];
          if (mine < LEAVE) {
            next_vertices[mine] = v;
            next_rows[mine] = rows[i];
          }
        }
        slot += __popc(ballots[i]);
      }
    }
  };

  // One level; returns the edges this thread was given, where anyone asks.
  __device__ __forceinline__ unsigned long long level(const Parameters& parameters,
                                                      const Position& now, int size) {
    const int lane = threadIdx.x % WARP_SIZE;
    const int here = now.level % 2;
    if (threadIdx.x == 0) {
      shared->sizes[(now.level + 2) % 3] = 0;
      trace_level(parameters, now, size);
    }
    Visit visit{parameters,
                visited,
                shared->vertices[1 - here],
                shared->rows[1 - here],
                &shared->sizes[(now.level + 1) % 3],
                now.begin + size,
                now.level + 1,
                lane};
    unsigned long long edges = 0;
    for (int first = threadIdx.x / WARP_SIZE * WARP_SIZE; first < size; first += blockDim.x) {
      const int index = first + lane;
      int4 row = {NO_NEIGHBOUR, NO_NEIGHBOUR, NO_NEIGHBOUR, NO_NEIGHBOUR};
      vertex_t source = 0;
      if (index < size) {
        row = shared->rows[here][index];
        source = shared->vertices[here][index];
        if constexpr (Policy::trace || Policy::counts_edges) {
          edges += degree_of(parameters, source);
        }
      }
      if (lane == 0) count_lane_slots(PACKED * WARP_SIZE);
      const vertex_t sources[PACKED] = {source, source, source, source};
      const vertex_t neighbours[PACKED] = {row.x, row.y, row.z, row.w};
      unsigned valid = 0;
#pragma unroll
      for (int i = 0; i < PACKED; ++i) valid |= (neighbours[i] >= 0 ? 1u : 0u) << i;
      visit(sources, neighbours, valid, Places{});
      long_rows(parameters, source, row.w == MORE_NEIGHBOURS, lane, visit);
    }
    if constexpr (Policy::trace) {
      const unsigned long long warp_edges = warp_sum(edges);
      if (lane == 0 && warp_edges != 0) {
        atomicAdd(&parameters.trace[now.level].edges, warp_edges);
      }
    }
    return edges;
  }

  // What did not fit the packed rows of a warp's vertices: long rows by the whole warp, one after
  // another, the others a lane each.
  static __device__ __forceinline__ void long_rows(const Parameters& parameters, vertex_t source,
                                                   bool is_long, int lane, Visit& visit) {
    if (!__any_sync(FULL_WARP, is_long)) return;
    Row<Policy> left;
    left.source = source;
    if (is_long) {
      left.begin = __ldg(parameters.row_offsets + source) + (PACKED - 1);
      left.degree = degree_of(parameters, source) - (PACKED - 1);
    }
    for (unsigned hubs = __ballot_sync(FULL_WARP, left.degree >= WARP_SIZE); hubs != 0;
         hubs &= hubs - 1) {
      stride_row(parameters, row_of_lane(left, __ffs(hubs) - 1), WARP_SIZE, lane, visit);
    }
    if (left.degree >= WARP_SIZE) left.degree = 0;
    advance::Thread::rows(parameters, left, lane, visit);
  }

  __device__ __forceinline__ void trace_level(const Parameters& parameters, const Position& now,
                                              int size) {
    if constexpr (Policy::trace) {
      if (now.level > 0) trace_end<Policy>(parameters, now.level - 1);
      LevelRecord* record = parameters.trace + now.level;
      record[0].begin_nanoseconds = device_nanoseconds();
      record[0].frontier_size = size;
      record[0].mapping = BY_ONE_BLOCK;
      record[0].pulled = 0;
      record[1].end_nanoseconds = 0;
      record[1].edges = 0;
    }
  }

  // The frontier's edges, their scan and the largest degree, as the appends of the grid leave them
  // in totals that are clear.
  __device__ __forceinline__ void count_edges(const Parameters& parameters, Position& now,
                                              int size) {
    const int lane = threadIdx.x % WARP_SIZE;
    const int warp = threadIdx.x / WARP_SIZE;
    const int warps = blockDim.x / WARP_SIZE;
    const NextFrontier frontier = next_frontier(parameters, now.begin, now.slot);
    unsigned edges = 0;
    for (int first = 0; first < size; first += blockDim.x) {
      const int i = first + threadIdx.x;
      const int degree = i < size ? degree_of(parameters, frontier.vertices[i]) : 0;
      frontier.note_degree(degree);
      const unsigned long long through = warp_inclusive_sum(degree, lane);
      if (lane == WARP_SIZE - 1) shared->scan[warp] = through;
      __syncthreads();
      const unsigned long long of_warps =
          warp_inclusive_sum(lane < warps ? shared->scan[lane] : 0, lane);
      const unsigned long long before =
          __shfl_sync(FULL_WARP, of_warps, warp > 0 ? warp - 1 : 0) * (warp > 0);
      if (i < size) {
        frontier.edge_begin[i] = edges + static_cast<unsigned>(before + through) - degree;
      }
      edges += static_cast<unsigned>(__shfl_sync(FULL_WARP, of_warps, warps - 1));
      __syncthreads();
    }
    now.count = {FrontierCount::pack(size, edges)};
  }
};

}  // namespace persistent_bfs

// One warp at the end of a frontier of n vertices, in a grid whose next stride is beyond 2^31.
//
// Of the frontier only the last 32 vertices are in memory, `in`; behind them the offsets of their
// rows, and an arc each. `out` gets the number of arcs that were visited, and the sum of their far
// ends: what is read beside the frontier is out of bounds.
#include "advance/bucketed.cuh"
#include "advance/thread.cuh"
#include "advance/warp.cuh"

using namespace persistent_bfs;

struct Arguments {
  int* in;
  int* out;
  int n;
  unsigned long long handle;
};

struct Policy {
  using Offset = int;
  using Parameters = SearchParameters<int>;
  static constexpr bool needs_places = false;
  static constexpr bool padded = false;
  static constexpr bool counts_edges = false;
  static constexpr int block_threads = WARP_SIZE;
};

struct CountArcs {
  int* out;

  template <int N>
  __device__ __forceinline__ void operator()(const vertex_t (&)[N],
                                             const vertex_t (&neighbours)[N], unsigned valid,
                                             Places) {
    for (int i = 0; i < N; ++i) {
      if (!(valid >> i & 1u)) continue;
      atomicAdd(out, 1);
      atomicAdd(out + 1, neighbours[i]);
    }
  }
};

template <class Advance>
__device__ __forceinline__ void at_the_end(const Arguments& a, int warp, int warps) {
  Policy::Parameters graph = {};
  graph.row_offsets = a.in + WARP_SIZE;
  graph.col_indices = a.in + 2 * WARP_SIZE + 1;
  Frontier frontier = {};
  frontier.vertices = a.in - (a.n - WARP_SIZE);
  frontier.size = a.n;
  Workers workers;
  workers.warp = warp;
  workers.warps = warps;
  CountArcs visit{a.out};
  Advance::template run<Policy>(graph, frontier, workers, visit);
}

#define KERNEL(name, body)                                                          \
  extern "C" __global__ void __launch_bounds__(32) name(Arguments a) { body; }      \
  PERSISTENT_BFS_EMULATE(name, Arguments)

constexpr int THREADS = 1 << 21;

KERNEL(by_warp, (at_the_end<advance::Warp>(a, a.n - 1, THREADS)))
KERNEL(by_thread, (at_the_end<advance::Thread>(a, a.n / WARP_SIZE - 1, THREADS / WARP_SIZE)))
KERNEL(bucketed, (at_the_end<advance::Bucketed>(a, a.n / WARP_SIZE - 1, THREADS / WARP_SIZE)))

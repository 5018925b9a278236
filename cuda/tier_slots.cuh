// A narrow level's frontier in shared memory, as slots of four arcs.
//
// A slot holds a packed row of a frontier vertex, and whose it is; a long vertex has two. A lane
// takes one arc of one slot, so that a level of a hundred vertices has work for a whole block and
// each thread one short chain of reads: the entry, whether its vertex is visited, and the row of a
// vertex that looks unvisited, which is under way while the vertex is being claimed. Distances go
// out unwaited for. Cost: four lanes a slot, however few of its arcs there are. Source: this
// project's own; a frontier in shared memory after L. Luo, M. Wong, W. Hwu, "An Effective GPU
// Implementation of Breadth-First Search", DAC 2010.
#pragma once

#include "frontier.cuh"
#include "packed_rows.cuh"
#include "shared_array.cuh"
#include "position.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs::tier {

// One frontier's slots.
struct Slots {
  SharedArray<int4> rows;
  SharedArray<vertex_t> vertices;

  // The arcs' entries, four a slot.
  __device__ __forceinline__ SharedArray<int> entries() const { return {rows.begin}; }
};

__device__ __forceinline__ void swap(Slots& a, Slots& b) {
  const Slots before = a;
  a = b;
  b = before;
}

// The layout of a block's dynamic shared memory: two frontiers of `capacity` slots, counters, a
// word for each lane of one warp that holds nothing, and the visited bits behind them.
struct Layout {
  shared_address begin;
  int capacity;

  static constexpr int SLOT_BYTES = 2 * (16 + 4);  // SLOT_BYTES of persistent_bfs/layout.py
  // Counters 0 to 2 are a frontier's slots, and rotate; those from 4 on are the tier's own.
  static constexpr int COUNTERS = 32;

  __device__ __forceinline__ Slots slots(int which) const {
    return {{begin + which * capacity * 16}, {begin + capacity * (32 + 4 * which)}};
  }
  __device__ __forceinline__ SharedArray<int> counters() const {
    return {begin + capacity * SLOT_BYTES};
  }
  __device__ __forceinline__ SharedArray<unsigned> visited() const {
    return {begin + capacity * SLOT_BYTES + (COUNTERS + WARP_SIZE) * 4};
  }
  // A lane's own word.
  __device__ __forceinline__ shared_address own(int lane) const {
    return begin + capacity * SLOT_BYTES + (COUNTERS + lane) * 4;
  }
};

// Whether anyone asks whose a slot is.
template <class Policy>
constexpr bool KEEPS_VERTICES = Policy::predecessors || Policy::has_hubs;

// Slots of the next frontier are reserved by a counter in shared memory, an atomic a warp.
struct CountedReserve {
  static constexpr bool costs = true;
  shared_address counter;

  // The first of `wanted` slots, which differs from warp to warp; all lanes call.
  __device__ __forceinline__ int operator()(int wanted, int lane) const {
    // An address that the lanes share would have nvcc sum over them first, which costs more.
    const int first = fetch_add_shared_if(lane == 0, counter + 4 * lane, wanted);
    return __shfl_sync(FULL_WARP, first, 0);
  }
};

// Slots of a frontier that one warp has to itself are counted in a register.
struct RunningReserve {
  static constexpr bool costs = false;
  int& used;

  __device__ __forceinline__ int operator()(int wanted, int) const {
    const int first = used;
    used += wanted;
    return first;
  }
};

// What there is time for while rows are under way.
struct Nothing {
  __device__ __forceinline__ void operator()() const {}
};

// What is done with the arcs of a narrow level. `Bits` says who has been visited, `Reserve` where
// the next slot is.
template <class Policy, class Bits, class Reserve>
struct SlotVisit {
  const typename Policy::Parameters& parameters;
  Bits bits;
  Reserve reserve;
  Slots next;
  int capacity;
  int distance;
  int lane;
  TierWork& work;
  bool overflowed = false;  // whether this lane had no slot to store in

  // By a whole warp: ARCS arcs a lane, to the vertices that `entries` name, from `sources`, where
  // `valid`. Each step is taken for all of them, so that their waits are one.
  template <int ARCS, class Meanwhile = Nothing>
  __device__ __forceinline__ void operator()(const int (&entries)[ARCS], const bool (&valid)[ARCS],
                                             const vertex_t (&sources)[ARCS],
                                             Meanwhile meanwhile = {}) {
    vertex_t neighbours[ARCS];
    int4 first[ARCS], second[ARCS];
    int* distances[ARCS];
    bool unvisited[ARCS], two_slots[ARCS], discovered[ARCS];
    int slots[ARCS];
    unsigned ballots = 0;
    int wanted = 0;
#pragma unroll
    for (int i = 0; i < ARCS; ++i) {
      neighbours[i] = Policy::has_long_rows ? neighbour_of(entries[i]) : entries[i];
      unvisited[i] = bits.look_unvisited(valid[i], neighbours[i]);
      two_slots[i] = Policy::has_long_rows && unvisited[i] && is_long(entries[i]);
    }
#pragma unroll
    for (int i = 0; i < ARCS; ++i) {
      const int4* const row = parameters.packed_rows + neighbours[i];
      first[i] = load_row_if(unvisited[i], row, NO_NEIGHBOUR);
      if constexpr (Policy::has_long_rows) {
        second[i] = load_row_if(two_slots[i], row + parameters.vertices, NO_NEIGHBOUR);
      }
    }
    meanwhile();
#pragma unroll
    for (int i = 0; i < ARCS; ++i) {
      distances[i] = place_of(parameters.distances, neighbours[i]);
      discovered[i] = bits.claim(unvisited[i], neighbours[i]);
    }
#pragma unroll
    for (int i = 0; i < ARCS; ++i) {
      const unsigned ballot = __ballot_sync(FULL_WARP, discovered[i]);
      ballots |= ballot;
      slots[i] = wanted + lanes_below(ballot, lane);
      wanted += __popc(ballot);
      if constexpr (Policy::has_long_rows) {
        const unsigned longs = __ballot_sync(FULL_WARP, discovered[i] && two_slots[i]);
        slots[i] += lanes_below(longs, lane);
        wanted += __popc(longs);
      }
    }
    // A branch is dearer than nothing to store.
    if (Reserve::costs && ballots == 0) return;
    const int begin = reserve(wanted, lane);
#pragma unroll
    for (int i = 0; i < ARCS; ++i) {
      const int slot = begin + slots[i];
      store_slot(discovered[i], slot, first[i], neighbours[i]);
      if constexpr (Policy::has_long_rows) {
        store_slot(discovered[i] && two_slots[i], slot + 1, second[i], neighbours[i]);
      }
      overflowed |= discovered[i] && slot + two_slots[i] >= capacity;
      store_if(discovered[i], distances[i], distance);
      if constexpr (Policy::predecessors) {
        if (discovered[i]) parameters.predecessors[neighbours[i]] = sources[i];
      }
      work.found += discovered[i];
    }
  }

 private:
  __device__ __forceinline__ void store_slot(bool wanted, int slot, int4 row, vertex_t v) const {
    const bool stored = wanted && slot < capacity;
    next.rows.store_if(stored, slot, row);
    if constexpr (KEEPS_VERTICES<Policy>) next.vertices.store_if(stored, slot, v);
  }
};

// A frontier of `slots` slots in the block's own memory; arc i is entry i % 4 of slot i / 4.
struct OwnSlots {
  Slots here;
  int slots;

  __device__ __forceinline__ int entry(int arc) const {
    return here.entries().load_if(arc < PACKED * slots, arc, NO_NEIGHBOUR);
  }
  __device__ __forceinline__ vertex_t vertex(bool wanted, int arc) const {
    return here.vertices.load_if(wanted, arc / PACKED, NO_VERTEX);
  }
};

// The arcs that the packed rows of hubs had no room for, each hub's by the whole warp; `vertex` is
// the hub of a lane that read MORE_NEIGHBOURS.
template <class Policy, class Visit>
__device__ __forceinline__ void visit_hubs(const typename Policy::Parameters& parameters,
                                           bool is_hub, vertex_t vertex, int lane,
                                           Visit& visit, TierWork& work) {
  for (unsigned hubs = __ballot_sync(FULL_WARP, is_hub); hubs != 0; hubs &= hubs - 1) {
    const vertex_t source = __shfl_sync(FULL_WARP, vertex, __ffs(hubs) - 1);
    const typename Policy::Offset begin = __ldg(parameters.row_offsets + source) + PACKED_ARCS;
    const int left = degree_of(parameters, source) - PACKED_ARCS;
    for (int step = 0; step < left; step += WARP_SIZE) {
      const bool mine = step + lane < left;
      vertex_t v = NO_NEIGHBOUR;
      if (mine) v = __ldg(parameters.col_indices + begin + step + lane);
      if (lane == 0) count_lane_slots(WARP_SIZE);
      if constexpr (Policy::counts_edges) work.edges += mine;
      const bool unvisited = visit.bits.look_unvisited(mine, v);
      const int entry = unvisited ? entry_of(v, degree_of(parameters, v)) : NO_NEIGHBOUR;
      visit({entry}, {unvisited}, {source});
    }
  }
}

// A warp's arcs of the frontier, of which arc `arc` is this lane's, and those `pitch` arcs on.
template <class Policy, int ARCS, class Source, class Visit, class Meanwhile = Nothing>
__device__ __forceinline__ void visit_slots(const typename Policy::Parameters& parameters,
                                            const Source& frontier, int arc, int pitch, int lane,
                                            Visit& visit, TierWork& work,
                                            Meanwhile meanwhile = {}) {
  int entries[ARCS];
  bool valid[ARCS];
  vertex_t sources[ARCS];
#pragma unroll
  for (int i = 0; i < ARCS; ++i) entries[i] = frontier.entry(arc + i * pitch);
#pragma unroll
  for (int i = 0; i < ARCS; ++i) {
    valid[i] = is_not_negative(entries[i]);
    sources[i] = Policy::predecessors ? frontier.vertex(valid[i], arc + i * pitch) : NO_VERTEX;
    if constexpr (Policy::counts_edges) work.edges += valid[i];
  }
  if (lane == 0) count_lane_slots(ARCS * WARP_SIZE);
  visit(entries, valid, sources, meanwhile);
  if constexpr (Policy::has_hubs) {
#pragma unroll
    for (int i = 0; i < ARCS; ++i) {
      const bool is_hub = entries[i] == MORE_NEIGHBOURS;
      if (__any_sync(FULL_WARP, is_hub)) {
        const vertex_t hub = frontier.vertex(is_hub, arc + i * pitch);
        visit_hubs<Policy>(parameters, is_hub, hub, lane, visit, work);
      }
    }
  }
}

// A block's arcs of the frontier, up to AT_ONCE a thread together; `thread` is this thread's.
template <class Policy, int AT_ONCE, class Source, class Visit>
__device__ __forceinline__ void visit_all(const typename Policy::Parameters& parameters,
                                          const Source& frontier, int thread, int lane,
                                          Visit& visit, TierWork& work) {
  const int threads = blockDim.x;
  const int arcs = PACKED * frontier.slots;
  int arc = thread;
  if constexpr (AT_ONCE > 1) {
    for (; arc - lane + (AT_ONCE - 1) * threads < arcs; arc += AT_ONCE * threads) {
      visit_slots<Policy, AT_ONCE>(parameters, frontier, arc, threads, lane, visit, work);
    }
  }
  for (; arc - lane < arcs; arc += threads) {
    visit_slots<Policy, 1>(parameters, frontier, arc, threads, lane, visit, work);
  }
}

// The slots of every `blocks`-th vertex that `queue` holds, from number `rank` on; by a block.
template <class Policy, class Reserve>
__device__ __forceinline__ void enter_slots(const typename Policy::Parameters& parameters,
                                            const vertex_t* queue, int size, int rank, int blocks,
                                            const Slots& slots, int capacity, Reserve reserve,
                                            int lane) {
  const int share = (size - rank + blocks - 1) / blocks;
  for (int i = thread_in_block() - lane; i < share; i += blockDim.x) {
    const bool mine = i + lane < share;
    const vertex_t v = mine ? queue[(i + lane) * blocks + rank] : 0;
    const bool two_slots = Policy::has_long_rows && mine && degree_of(parameters, v) > PACKED;
    const int4* const row = parameters.packed_rows + v;
    const int4 first = load_row_if(mine, row, NO_NEIGHBOUR);
    const int4 second = load_row_if(two_slots, row + parameters.vertices, NO_NEIGHBOUR);
    const unsigned ballot = __ballot_sync(FULL_WARP, mine);
    const unsigned longs = __ballot_sync(FULL_WARP, two_slots);
    const int slot = reserve(__popc(ballot) + __popc(longs), lane) + lanes_below(ballot, lane) +
                     lanes_below(longs, lane);
    slots.rows.store_if(mine && slot < capacity, slot, first);
    slots.vertices.store_if(mine && slot < capacity, slot, v);
    slots.rows.store_if(two_slots && slot + 1 < capacity, slot + 1, second);
    slots.vertices.store_if(two_slots && slot + 1 < capacity, slot + 1, v);
  }
}

}  // namespace persistent_bfs::tier

// The cluster tier: a few blocks that reach each other's shared memory run level after level alone.
//
// For graphs with more vertices than one block has bits for, and frontiers that one multiprocessor
// is slow with. The visited bits are spread over the blocks (visited_bits.cuh); a block keeps the
// vertices that it discovers in slots of its own, so that only claims cross between
// multiprocessors, and when the blocks' shares have become uneven one level is dealt out anew from
// all of them. Cost of a level: one round trip for the claim, the cluster's barrier, and a packed
// row from L2. The barrier is relaxed, but for those around a level dealt out anew: with a fence it
// would wait for the distances to be written.
// Needs thread block clusters (sm_90). Source: this project's own.
#pragma once

#include "clusters.cuh"
#include "tier_slots.cuh"
#include "tier_trace.cuh"
#include "visited_bits.cuh"

namespace persistent_bfs::tier {

// A frontier in the slots of all blocks of the cluster, of which this block takes a share: slot i
// of the share is slot `begin + i` of them all. `through` is, in lane b, the sum of the slots of
// blocks 0 to b.
struct DealtSlots {
  Slots here;
  int begin;
  int slots;
  int through;
  int blocks;

  __device__ __forceinline__ int entry(int arc) const {
    return load(begin + arc / PACKED, here.entries().begin, PACKED, arc % PACKED,
                arc < PACKED * slots, NO_NEIGHBOUR);
  }
  __device__ __forceinline__ vertex_t vertex(bool wanted, int arc) const {
    return load(begin + arc / PACKED, here.vertices.begin, 1, 0, wanted, NO_VERTEX);
  }

 private:
  // By whole warps.
  __device__ __forceinline__ int load(int slot, shared_address array, int pitch, int offset,
                                      bool wanted, int otherwise) const {
    int owner = 0;
    int before = 0;
    for (int block = 0; block < blocks; ++block) {
      const int end = __shfl_sync(FULL_WARP, through, block);
      if (slot >= end) {
        owner = block + 1;
        before = end;
      }
    }
    if (!wanted) return otherwise;
    const int item = (slot - before) * pitch + offset;
    return load_cluster_at(shared_address_in(array + 4 * item, owner));
  }
};

template <class Policy>
struct Cluster {
  using Parameters = typename Policy::Parameters;
  static constexpr bool exists = true;
  // Arcs that a thread has under way together: it pays with claims so far away, not where one block
  // has the bits (docs/performance.md).
  static constexpr int AT_ONCE = Policy::block_threads > 512 ? 1 : 2;

  Layout layout;
  int capacity;
  int blocks;
  int rank;
  ClusterBits bits;

  explicit __device__ __forceinline__ Cluster(int slots) : capacity(slots) {
    PERSISTENT_BFS_DYNAMIC_SHARED(int4, memory);
    layout = {shared_address_of(memory), capacity};
    blocks = cluster_blocks();
    rank = cluster_rank();
    bits = {layout.visited(), rank, __ffs(blocks) - 1};
  }

  // As Block::enters; dealt out evenly, such a frontier takes at most half of each block's slots.
  __device__ __forceinline__ unsigned enters() const { return capacity / 4 * blocks + 1; }

  __device__ __forceinline__ bool is_member() const {
    return blockIdx.x < static_cast<unsigned>(blocks);
  }
  __device__ __forceinline__ bool is_leader() const {
    return rank == 0 && thread_in_block() == 0;
  }

  // As Block::run.
  __device__ __forceinline__ void run(const Parameters& parameters, Position now, int max_depth) {
    const int thread = thread_in_block();
    const int lane = lane_in_warp();
    const SharedArray<int> counters = layout.counters();
    shared_address spent = counters.at(0), growing = counters.at(1), cleared = counters.at(2);
    // Set in all blocks: level i is the grid's. Two that take turns, since a block may say so while
    // another one still looks.
    const SharedArray<int> leave{counters.at(8)};
    Slots here = layout.slots(0), next = layout.slots(1);
    TierWork work;

    if (thread < Layout::COUNTERS) store_shared_at(counters.at(thread), 0);
    const int size = now.count.vertices();
    NarrowTrace<Policy> trace{parameters, now};
    // In the warp that has the fewest arcs.
    const bool traces = rank == 0 && thread == static_cast<int>(blockDim.x) - WARP_SIZE;
    if (is_leader()) begin_work(parameters);
    cluster_barrier();
    if (traces) trace.enter();
    enter_slots<Policy>(parameters, parameters.queue + now.begin, size, rank, blocks, here,
                        capacity, CountedReserve{spent}, lane);
    cluster_barrier();
    bool deal = false;
    int all = 0;
    while (true) {
      // Everyone reads what every block has; nobody waits for it before the level is done. Counted by
      // atomics before a relaxed arrival: see the assumption at cluster_arrive_relaxed.
      const int block = lane & (blocks - 1);
      const int slots_of_lane = load_cluster_at(shared_address_in(spent, block));
      const int slots = load_shared_at(spent);
      const bool leaves =
          load_shared_at(leave.at(now.level % 2)) != 0 || now.level >= max_depth;
      const shared_address leave_next = leave.at(1 - now.level % 2);
      if (!leaves) {
        if (traces) trace.keep(now.level, BY_ONE_CLUSTER, true);
        if (thread == 0) store_shared_at(cleared, 0);
        if (thread == 0 && rank == 0 && now.level % LEVELS_BETWEEN_LOOKS == 0 &&
            host_wants_stop(parameters)) {
          tell(leave_next);
        }
        SlotVisit<Policy, ClusterBits, CountedReserve> visit{
            parameters, bits, {growing}, next, capacity, now.level + 1, lane, work};
        if (deal) {
          visit_all<Policy, AT_ONCE>(parameters, dealt(here, slots_of_lane, lane), thread, lane,
                                     visit, work);
        } else {
          visit_all<Policy, AT_ONCE>(parameters, OwnSlots{here, slots}, thread, lane, visit, work);
        }
        if (visit.overflowed) tell(leave_next);
      }
      // Lanes from `blocks` on repeat those before.
      all = warp_add(slots_of_lane) / (WARP_SIZE / blocks);
      const int most = warp_max(slots_of_lane);
      if (leaves || all == 0) break;
      const bool was_dealt = deal;
      deal = !deal && most * blocks > 2 * all && PACKED * most > static_cast<int>(blockDim.x) / 2;
      // Slots that other blocks are about to read must be visible to them, and slots that they have
      // read must be so before they are written over.
      if (deal || was_dealt) {
        cluster_arrive();
      } else {
        cluster_arrive_relaxed();
      }
      cluster_wait();
      swap(here, next);
      const shared_address spent_counter = spent;
      spent = growing;
      growing = cleared;
      cleared = spent_counter;
      ++now.level;
    }
    if (traces) trace.leave(now.level);
    publish(parameters, now, all, work, is_leader(), [] { cluster_barrier(); });
  }

 private:
  // This block's share of all slots, evenly.
  __device__ __forceinline__ DealtSlots dealt(const Slots& here, int slots_of_lane,
                                              int lane) const {
    int through = slots_of_lane;
    for (int distance = 1; distance < blocks; distance *= 2) {
      const int below = __shfl_up_sync(FULL_WARP, through, distance);
      if (lane >= distance) through += below;
    }
    const long long all = __shfl_sync(FULL_WARP, through, blocks - 1);
    const int begin = static_cast<int>(all * rank / blocks);
    const int end = static_cast<int>(all * (rank + 1) / blocks);
    return {here, begin, end - begin, through, blocks};
  }

  // A word to every block, there before the cluster's next barrier.
  __device__ __forceinline__ void tell(shared_address word) const {
    for (int block = 0; block < blocks; ++block) {
      fetch_or_cluster_if(true, shared_address_in(word, block), 1);
    }
    __threadfence();
  }
};

}  // namespace persistent_bfs::tier

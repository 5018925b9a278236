// The block tier: one block runs level after level alone while the frontier is small.
//
// Its barrier never leaves the multiprocessor, where the grid's goes to L2 and back; the frontier
// and the visited bits are in its shared memory (tier_slots.cuh, visited_bits.cuh). What is left of
// a level's global latency is one packed row. A frontier of no more arcs than a warp has lanes is
// run by one warp, without a barrier and without a shared counter. Needs a bit a vertex of one
// block's shared memory; pays until one multiprocessor's throughput is the limit, at some 2,000
// slots. Source: this project's own.
#pragma once

#include "tier_slots.cuh"
#include "tier_trace.cuh"
#include "visited_bits.cuh"

namespace persistent_bfs::tier {

template <class Policy>
struct Block {
  using Parameters = typename Policy::Parameters;
  static constexpr bool exists = true;
  static constexpr int WARP_SLOTS = WARP_SIZE / PACKED;

  Layout layout;
  int capacity;
  BlockBits bits;

  explicit __device__ __forceinline__ Block(int slots) : capacity(slots) {
    PERSISTENT_BFS_DYNAMIC_SHARED(int4, memory);
    layout = {shared_address_of(memory), capacity};
    bits = {layout.visited()};
  }

  // The largest frontier that is given to the tier: apart from the largest it keeps, so that a
  // search does not go to and fro.
  __device__ __forceinline__ unsigned enters() const { return capacity / 2; }

  static __device__ __forceinline__ bool is_member() { return blockIdx.x == 0; }
  static __device__ __forceinline__ bool is_leader() { return thread_in_block() == 0; }

  // Runs levels from `now` until the frontier is empty, too large, at the depth limit, or the host
  // wants an end; by the whole tier. The visited bits are right.
  __device__ __forceinline__ void run(const Parameters& parameters, Position now, int max_depth) {
    const int thread = thread_in_block();
    const int lane = lane_in_warp();
    const SharedArray<int> counters = layout.counters();
    // Three that rotate, as the totals of the grid's frontiers do, and what one warp tells all.
    shared_address spent = counters.at(0), growing = counters.at(1), cleared = counters.at(2);
    const SharedArray<int> told{counters.at(4)};
    const shared_address own = layout.own(lane);
    Slots here = layout.slots(0), next = layout.slots(1);
    TierWork work;

    if (thread < Layout::COUNTERS) store_shared_at(counters.at(thread), 0);
    const int size = now.count.vertices();
    NarrowTrace<Policy> trace{parameters, now};
    const bool is_first_warp = thread < WARP_SIZE;
    // Does what one thread has to do, in the warp that has the fewest arcs.
    const bool leads_last_warp = thread == static_cast<int>(blockDim.x) - WARP_SIZE;
    if (is_leader()) begin_work(parameters);
    __syncthreads();
    if (leads_last_warp) trace.enter();
    enter_slots<Policy>(parameters, parameters.queue + now.begin, size, 0, 1, here, capacity,
                        CountedReserve{spent}, lane);
    __syncthreads();
    const int warp_slots = capacity < WARP_SLOTS ? capacity : WARP_SLOTS;
    int slots = load_shared_at(spent);
    do {
      if (slots <= warp_slots) {
        if (is_first_warp) {
          slots = warp_levels(parameters, here, next, now.level, slots, warp_slots, max_depth, lane,
                              own, work, trace);
          if (lane == 0) {
            // The slots counted in `spent` stay: another warp may not have read them yet.
            store_shared_at(growing, 0);
            store_shared_at(cleared, 0);
            store_shared_at(told.at(0), slots);
            store_shared_at(told.at(1), now.level);
          }
        }
        __syncthreads();
        slots = load_shared_at(told.at(0));
        const int level = load_shared_at(told.at(1));
        if (!is_first_warp && ((level - now.level) & 1)) swap(here, next);
        now.level = level;
      } else {
        if (leads_last_warp) {
          store_shared_at(cleared, 0);
          trace.keep(now.level, BY_ONE_BLOCK, true);
          if (now.level % LEVELS_BETWEEN_LOOKS == 0 && host_wants_stop(parameters)) {
            fetch_add_shared_if(true, growing, capacity + 1);
          }
        }
        level(parameters, here, next, now.level, slots, growing, thread, lane, work);
        __syncthreads();
        swap(here, next);
        const shared_address spent_counter = spent;
        spent = growing;
        growing = cleared;
        cleared = spent_counter;
        ++now.level;
        slots = load_shared_at(spent);
      }
    } while (slots > 0 && slots <= capacity && now.level < max_depth);
    if (leads_last_warp) trace.leave(now.level);
    publish(parameters, now, slots, work, is_leader(), [] { __syncthreads(); });
  }

 private:
  // A frontier of no more arcs than a warp has lanes, and this lane's.
  struct WarpSlots : OwnSlots {
    int own_entry;

    __device__ __forceinline__ int entry(int) const { return own_entry; }
  };

  // Levels by one warp, while no more than `most` slots are left and the host wants no end; returns
  // the slots of the frontier after the last.
  __device__ __forceinline__ int warp_levels(const Parameters& parameters, Slots& here,
                                             Slots& next, int& level, int slots, int most,
                                             int max_depth, int lane, shared_address own,
                                             TierWork& work, const NarrowTrace<Policy>& trace) {
    // The slot that this lane's arc is in, if it is one of those that a warp takes.
    const int slot = lane / PACKED < most ? lane / PACKED : 0x7fffffff;
    do {
      // Asked for apart from the levels, whose chain it would lengthen; any lane's word is all's.
      if (level % LEVELS_BETWEEN_LOOKS == 0 &&
          __any_sync(FULL_WARP, host_wants_stop(parameters))) {
        return capacity + 1;
      }
      const int look = (level / LEVELS_BETWEEN_LOOKS + 1) * LEVELS_BETWEEN_LOOKS;
      const int until = min(look, max_depth);
      int entry = here.entries().load_if(slot < slots, lane, NO_NEIGHBOUR);
      do {
        slots = warp_level(parameters, {{here, slots}, entry}, next, level, lane, own, work, trace);
        swap(here, next);
        ++level;
        // On its way while it is found out whether there is another level for one warp.
        entry = here.entries().load_if(slot < slots, lane, NO_NEIGHBOUR);
      } while (slots > 0 && slots <= most && level < until);
    } while (slots > 0 && slots <= most && level < max_depth);
    return slots;
  }

  // A level by the whole block; the next frontier's slots are counted in `growing`.
  __device__ __forceinline__ void level(const Parameters& parameters, const Slots& here,
                                        const Slots& next, int level, int slots,
                                        shared_address growing, int thread, int lane,
                                        TierWork& work) {
    SlotVisit<Policy, BlockBits, CountedReserve> visit{
        parameters, bits, {growing}, next, capacity, level + 1, lane, work};
    visit_all<Policy, 1>(parameters, OwnSlots{here, slots}, thread, lane, visit, work);
  }

  // A level by one warp; returns the slots of the next frontier.
  __device__ __forceinline__ int warp_level(const Parameters& parameters,
                                            const WarpSlots& frontier, const Slots& next,
                                            int level, int lane, shared_address own, TierWork& work,
                                            const NarrowTrace<Policy>& trace) {
    int used = 0;
    auto keep_time = [&] { trace.keep(level, BY_ONE_WARP, lane == 0); };
    SlotVisit<Policy, WarpBits, RunningReserve> visit{
        parameters, {bits.words, own}, {used}, next, capacity, level + 1, lane, work};
    visit_slots<Policy, 1>(parameters, frontier, lane, WARP_SIZE, lane, visit, work, keep_time);
    __syncwarp();
    return used;
  }
};

}  // namespace persistent_bfs::tier

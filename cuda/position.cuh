// Where a persistent search stands between two levels, and how a tier hands that over.
//
// The blocks outside a tier wait at one word of the state, its turn, which the tier's leader moves
// on; they look at it with pauses, so that they do not crowd the path to L2 of those that work.
// Cost: some microseconds at the end of a run of narrow levels, nothing while it lasts.
#pragma once

#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

struct Position {
  int level;
  int totals;  // which of the three that rotate counts this frontier
  int begin;   // of the frontier, in the queue of all frontiers
  int found;   // vertices in the frontiers so far, this one's too
  int turn;    // of the tier
  FrontierCount count;
  unsigned long long explored;  // arcs of the vertices of earlier frontiers, where counted
};

// What one thread of a tier did.
struct TierWork {
  int found = 0;
  unsigned long long edges = 0;
};

// How often a narrow level looks whether the host wants the search stopped.
constexpr int LEVELS_BETWEEN_LOOKS = 64;

template <class Parameters>
__device__ __forceinline__ bool host_wants_stop(const Parameters& parameters) {
  return load_relaxed(&parameters.state->stop) != 0;
}

// By the tier's leader, before a run and a barrier of the tier.
template <class Parameters>
__device__ __forceinline__ void begin_work(const Parameters& parameters) {
  parameters.state->tier_found = 0;
  parameters.state->tier_edges = 0;
}

// By all threads of the tier, whose own barrier is `meet`: leaves in the state what the run came
// to, lets the others go on, and returns when the tier's threads may read it too. The totals that
// the next frontier is counted in are clear then.
template <class Parameters, class Meet>
__device__ __forceinline__ void publish(const Parameters& parameters, const Position& now,
                                        int slots, const TierWork& work, bool is_leader,
                                        Meet meet) {
  SearchState& state = *parameters.state;
  const int lane = lane_in_warp();
  const unsigned long long found = warp_sum(work.found);
  const unsigned long long edges = warp_sum(work.edges);
  if (lane == 0) {
    if (found != 0) atomicAdd(&state.tier_found, static_cast<int>(found));
    if (edges != 0) atomicAdd(&state.tier_edges, edges);
  }
  __threadfence();  // the distances and sums come before the turn
  meet();
  if (is_leader) {
    state.totals[(now.totals + 1) % 3] = {};
    state.totals[(now.totals + 2) % 3] = {};
    state.tier_level = now.level;
    state.tier_slots = slots;
    __threadfence();
    store_relaxed(&state.turn, now.turn + 1);
    __threadfence();
  }
  meet();
}

// By the threads of a block outside the tier.
template <class Parameters>
__device__ __forceinline__ void await_turn(const Parameters& parameters, int turn) {
  if (thread_in_block() == 0) {
    while (load_relaxed(&parameters.state->turn) == turn) __nanosleep(200);
    __threadfence();
  }
  __syncthreads();
}

// By whole blocks, when the turn has come: the position, but for the frontier's count, which the
// tier leaves to whoever collects the frontier. Returns whether there is one. One thread a block
// reads what the others are told: reads of one address are served one after another.
template <class Parameters>
__device__ __forceinline__ bool receive(const Parameters& parameters, Position& now) {
  struct Left {
    unsigned long long edges;
    int level;
    int found;
    int slots;
  };
  __shared__ Left left;
  if (thread_in_block() == 0) {
    const SearchState& state = *parameters.state;
    left = {load_relaxed(&state.tier_edges), load_relaxed(&state.tier_level),
            load_relaxed(&state.tier_found), load_relaxed(&state.tier_slots)};
  }
  __syncthreads();
  now.level = left.level;
  now.found += left.found;
  now.explored += left.edges;
  now.totals = (now.totals + 1) % 3;
  ++now.turn;
  return left.slots > 0;
}

}  // namespace persistent_bfs

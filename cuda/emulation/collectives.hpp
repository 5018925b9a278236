// Barriers of the block, the cluster and the grid, and the collectives of a warp.
//
// Each thread leaves what it brings and waits; the last one to come works out everyone's result.
// What CUDA leaves undefined is an error: barriers at different lines of one block, lanes that name
// each other in different collectives, a thread that returns while another waits for it.
#pragma once

#include <algorithm>
#include <cstring>

#include "report.hpp"
#include "schedule.hpp"
#include "state.hpp"

namespace simt {

inline bool same(Site a, Site b) { return a.line == b.line && std::strcmp(a.file, b.file) == 0; }

// A thread that waits at the block's barrier, or null.
inline const Fiber* waits_at_barrier(const Block& block) {
  for (unsigned i = 0; i < run.launch->threads; ++i) {
    const Operation waits = block.fibers[i].waits;
    if (waits >= Operation::syncthreads && waits <= Operation::syncthreads_count)
      return &block.fibers[i];
  }
  return nullptr;
}

// A thread of the warp that waits in a collective for this lane, or null.
inline const Fiber* waits_for_lane(const Fiber& self) {
  const Fiber* const lanes = &self - self.lane();
  for (unsigned rest = self.warp->waiting; rest; rest &= rest - 1)
    if (lanes[__builtin_ctz(rest)].mask >> self.lane() & 1) return &lanes[__builtin_ctz(rest)];
  return nullptr;
}

inline void release(Block& block, Operation operation) {
  const unsigned votes = block.votes, arrived = block.arrived;
  block.votes = block.arrived = 0;
  ++run.counters.block_barriers;
  if (checks_races()) run.races.clocks.meet(id_of(*block.fibers), run.launch->threads);
  const unsigned result = operation == Operation::syncthreads_or    ? votes != 0
                          : operation == Operation::syncthreads_and ? votes == arrived
                                                                    : votes;
  for (unsigned i = 0; i < run.launch->threads; ++i)
    if (block.fibers[i].waits == operation) wake(block.fibers[i], result);
}

inline void release(Cluster& cluster) {
  const unsigned first = id_of(*cluster.blocks->fibers);
  const unsigned count = run.launch->cluster * run.launch->threads;
  cluster.arrived = 0;
  ++run.counters.cluster_barriers;
  if (checks_races()) {
    const unsigned together = cluster.orders ? count : run.launch->threads;
    for (unsigned i = first; i < first + count; i += together)
      run.races.clocks.complete(i, together);
  }
  cluster.orders = true;
  for (unsigned b = 0; b < run.launch->cluster; ++b) cluster.blocks[b].first_at_cluster = nullptr;
  for (unsigned i = first; i < first + count; ++i) {
    Fiber& fiber = run.fibers[i];
    if (fiber.arrival != Arrival::arrived) continue;
    fiber.arrival = Arrival::complete;
    if (fiber.waits == Operation::cluster_barrier) wake(fiber, 0);
  }
}

inline void complete(Warp& warp, Fiber* lanes, unsigned mask, Operation operation) {
  std::uint64_t common = operation == Operation::reduce_and ? ~0ull : 0;
  const Fiber& first = lanes[__builtin_ctz(mask)];
  if (operation == Operation::reduce_min || operation == Operation::reduce_max)
    common = first.value;
  for (unsigned rest = mask; rest; rest &= rest - 1) {
    const unsigned lane = __builtin_ctz(rest);
    const auto value = static_cast<std::int64_t>(lanes[lane].value);
    const auto best = static_cast<std::int64_t>(common);
    switch (operation) {
      case Operation::ballot:
      case Operation::any:
      case Operation::all:
        common |= lanes[lane].value << lane;
        break;
      case Operation::match_all:
        common |= static_cast<std::uint64_t>(lanes[lane].value == first.value) << lane;
        break;
      case Operation::reduce_add:
        common += lanes[lane].value;
        break;
      case Operation::reduce_min:
        common = std::min(best, value);
        break;
      case Operation::reduce_max:
        common = std::max(best, value);
        break;
      case Operation::reduce_and:
        common &= lanes[lane].value;
        break;
      case Operation::reduce_or:
        common |= lanes[lane].value;
        break;
      case Operation::reduce_xor:
        common ^= lanes[lane].value;
        break;
      default:
        break;
    }
  }
  if (operation == Operation::any) common = common != 0;
  if (operation == Operation::all) common = common == mask;
  if (operation == Operation::match_all && common != mask) common = 0;

  if (checks_races()) run.races.clocks.meet(id_of(*lanes), WARP, mask);
  warp.waiting &= ~mask;
  ++run.counters.warp_collectives;
  for (unsigned rest = mask; rest; rest &= rest - 1) {
    Fiber& lane = lanes[__builtin_ctz(rest)];
    std::uint64_t result = common;
    switch (operation) {
      case Operation::shuffle:
      case Operation::shuffle_up:
      case Operation::shuffle_down:
      case Operation::shuffle_xor:
        if (mask >> lane.argument & 1)
          result = lanes[lane.argument].value;
        else
          std::memset(&result, POISON, sizeof result);
        break;
      case Operation::match_any:
        for (unsigned other = mask; other; other &= other - 1)
          if (lanes[__builtin_ctz(other)].value == lane.value) result |= other & -other;
        break;
      default:
        break;
    }
    wake(lane, result);
  }
}

int block_barrier(Operation operation, bool vote, Site site) {
  sync_point();
  Fiber& self = *run.current;
  Block& block = *self.block;
  if (const Fiber* other = block.arrived ? waits_at_barrier(block) : nullptr)
    if (other->waits != operation || !same(other->site, site))
      fail_here("divergent barrier: it is at " + what(operation, site) + ", but " + who(*other) +
                " is at " + what(*other));
  self.waits = operation;
  self.site = site;
  block.votes += vote;
  if (++block.arrived == block.live)
    release(block, operation);
  else
    wait();
  return static_cast<int>(self.result);
}

void grid_barrier(Site site) {
  sync_point();
  const Operation operation = Operation::grid_sync;
  Fiber& self = *run.current;
  if (!run.launch->cooperative)
    fail_here(what(operation, site) + " in a launch that is not cooperative");
  if (run.alive != run.fibers.size())
    for (const Fiber& other : run.fibers)
      if (other.returned)
        fail_here("deadlock: it waits for " + what(operation, site) + ", but " + who(other) +
                  " has returned");
  self.waits = operation;
  self.site = site;
  if (++run.grid_arrived < run.fibers.size()) return wait();
  run.grid_arrived = 0;
  ++run.counters.grid_barriers;
  if (checks_races()) run.races.start_anew();
  for (Fiber& fiber : run.fibers) wake(fiber, 0);
}

// Blocks of a cluster may arrive at different lines; the threads of one may not.
void cluster_arrive(Site site, bool for_all) {
  sync_point();
  const Operation operation = Operation::cluster_barrier;
  Fiber& self = *run.current;
  Block& block = *self.block;
  if (self.arrival != Arrival::none)
    fail_here("arrives at " + what(operation, site) +
              " without having waited since it arrived at " + what(operation, self.arrived_at));
  if (!block.first_at_cluster)
    block.first_at_cluster = &self;
  else if (const Fiber& other = *block.first_at_cluster; !same(other.arrived_at, site))
    fail_here("divergent barrier: it is at " + what(operation, site) + ", but " + who(other) +
              " is at " + what(operation, other.arrived_at));
  self.arrival = Arrival::arrived;
  self.arrived_at = site;
  if (checks_races()) run.races.clocks.arrive(id_of(self));
  Cluster& cluster = *block.cluster;
  cluster.orders &= for_all;
  if (++cluster.arrived == cluster.live) release(cluster);
}

void cluster_wait(Site site) {
  sync_point();
  const Operation operation = Operation::cluster_barrier;
  Fiber& self = *run.current;
  if (self.arrival == Arrival::none)
    fail_here("waits for " + what(operation, site) + " without having arrived");
  if (self.arrival == Arrival::arrived) {
    self.waits = operation;
    self.site = site;
    wait();
  }
  self.arrival = Arrival::none;
  if (checks_races()) run.races.clocks.acquire(id_of(self));
}

std::uint64_t collective(Operation operation, unsigned mask, std::uint64_t value, unsigned argument,
                         Site site) {
  sync_point();
  Fiber& self = *run.current;
  Warp& warp = *self.warp;
  Fiber* const lanes = &self - self.lane();
  const unsigned own = 1u << self.lane();
  if (!(mask & own))
    fail_here(what(operation, site) + text(": the mask %08x leaves out its own lane", mask));
  if (const unsigned gone = mask & ~warp.live)
    fail_here(what(operation, site) + text(": the mask %08x names lane %d, which has returned or "
                                           "never was",
                                           mask, __builtin_ctz(gone)));
  // Two lanes that name each other must agree; a lane outside the mask has business of its own.
  for (unsigned rest = warp.waiting & mask; rest; rest &= rest - 1) {
    const Fiber& other = lanes[__builtin_ctz(rest)];
    if (other.mask == mask && other.waits == operation) break;  // and the others did with it
    if (other.mask & own)
      fail_here("mismatched collective: " + what(operation, site) +
                text(" with mask %08x, but ", mask) + who(other) + " is at " + what(other) +
                text(" with mask %08x", other.mask));
  }
  self.waits = operation;
  self.site = site;
  self.mask = mask;
  self.value = value;
  self.argument = argument;
  warp.waiting |= own;
  bool last = (warp.waiting & mask) == mask;
  for (unsigned rest = mask; last && rest; rest &= rest - 1)
    last = lanes[__builtin_ctz(rest)].mask == mask;
  if (last)
    complete(warp, lanes, mask, operation);
  else
    wait();
  return self.result;
}

}  // namespace simt

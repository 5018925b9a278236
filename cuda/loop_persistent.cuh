// The whole search in one cooperative kernel: reset, then level after level until done.
//
// Needs every block resident. Without a tier every level is the grid's: one barrier for the reset
// and one a level (one a phase, where the append has several), no launch, no round trip. Every
// thread keeps the loop's variables in registers; after the barrier one thread a block reads the
// next frontier's count, which no one changes before the next barrier. With a tier (cuda/tier/) the
// levels of a small frontier are run by a few blocks alone while the others wait. Cost then: a
// barrier for the reset, one for each wide level, and one more where a run of narrow levels ends
// in a wide one.
#pragma once

#include "barrier.cuh"
#include "collect.cuh"
#include "dense.cuh"
#include "position.cuh"
#include "prefetch.cuh"
#include "reset.cuh"
#include "step.cuh"
#include "trace.cuh"
#include "unreached.cuh"
#include "visited_bits.cuh"

namespace persistent_bfs {

// The loop on the whole grid, and what it hands to the tier, if the policy has one.
template <class Policy>
class PersistentSearch {
 public:
  using Parameters = typename Policy::Parameters;
  using Tier = typename Policy::template Tier<Policy>;

  __device__ __forceinline__ PersistentSearch(const Parameters& parameters,
                                              const LaunchArguments& launch)
      : parameters_(parameters),
        state_(*parameters.state),
        tier_(launch.tier_slots) {
    if constexpr (Tier::exists) {
      prefetch(parameters_.packed_rows, launch.prefetched_bytes);
      if (tier_.is_member()) tier::clear(tier_.bits, parameters_.vertices);
    }
    const ToldRequest request(launch.asked, parameters.request);
    reset<Policy, Policy::predecessors && !fills_unreached>(parameters_, request);
    barrier_.wait();
    if (is_grid_leader()) request.forget();
    now_ = {0, 0, 0, 1, 0, {0}, 0};
    hear();
  }

  __device__ __forceinline__ void run() {
    bool may_enter = true;
    while (has_frontier() && now_.level < max_depth() && !stopped_) {
      const Frontier frontier = this_frontier();
      if constexpr (Tier::exists) {
        if (may_enter && suits_tier(frontier)) {
          if (!run_tier() || now_.level >= max_depth()) break;
          collect();
          may_enter = false;  // or a tier that gave up at once would be asked again
          continue;
        }
        may_enter = true;
      }
      expand(frontier);
    }
    if constexpr (fills_unreached) {
      if (!news().has_pulled) fill_unreached(parameters_);
    }
  }

  // By the grid's leader.
  __device__ __forceinline__ SearchSummary finish() {
    const bool at_limit = left_at_limit_ || now_.count.vertices() > 0;
    if (at_limit) trace_limit();
    // A tier that the host stopped at the depth limit may have left no frontier after all.
    const bool stopped = stopped_ || (left_at_limit_ && host_wants_stop(parameters_));
    SearchSummary summary;
    summary.depth = at_limit ? now_.level : now_.level - 1;
    summary.enqueued =
        keeps_found ? now_.found : now_.begin + static_cast<int>(now_.count.vertices());
    summary.status = stopped                                              ? STOPPED
                     : fits<Policy>(parameters_, now_.begin, now_.count) ? DONE
                                                                         : QUEUE_FULL;
    // Without a tier: one for the reset, and one for each phase of each level.
    summary.barriers = Tier::exists ? barrier_.waits() : 1 + Policy::phases * now_.level;
    return summary;
  }

 private:
  // What a loop without a tier need not remember, since registers are dear: vertices in frontiers
  // are those in the queue, and the totals rotate with the levels.
  static constexpr bool keeps_found = Policy::padded || Tier::exists;

  // Not in a register, for the same reason.
  static __device__ __forceinline__ int max_depth() { return request_of_block().max_depth; }

  // Whether the reset leaves predecessors alone: see unreached.cuh.
  static constexpr bool fills_unreached = Policy::predecessors && Policy::dense;

  __device__ __forceinline__ int totals() const {
    return Tier::exists ? now_.totals : now_.level % 3;
  }

  __device__ __forceinline__ int next_totals() const { return (totals() + 1) % 3; }

  // Whether the level before was the grid's too: its end is this one's begin.
  __device__ __forceinline__ bool follows() const {
    return Tier::exists ? follows_ : now_.level > 0;
  }

  // For the next level; two that take turns.
  __device__ __forceinline__ LevelNews& next_news() const {
    return state_.news[1 - now_.level % 2];
  }

  __device__ __forceinline__ bool has_frontier() const {
    return now_.count.vertices() > 0 && fits<Policy>(parameters_, now_.begin, now_.count);
  }

  // What a level is told of its frontier. One thread a block asks for it, past the barrier: reads
  // of one address are served one after another, and all the grid's warps would keep each other
  // waiting for as long as a narrow level takes. Nor are registers held for what is read once.
  struct News {
    FrontierTotals totals;
    LevelNews level;
    bool has_pulled;  // at any level
  };

  static __device__ __forceinline__ News& news() {
    __shared__ News of_block;
    return of_block;
  }

  // By the whole block, past a barrier of the grid.
  __device__ __forceinline__ void hear() {
    if (threadIdx.x == 0) {
      News& told = news();
      if (now_.level == 0) told.has_pulled = false;
      told.totals = load_together(&state_.totals[totals()]);
      told.level = load_together(&state_.news[now_.level % 2]);
    }
    __syncthreads();
    now_.count = {news().totals.count};
  }

  __device__ __forceinline__ Frontier this_frontier() const {
    const News& told = news();
    Frontier frontier = frontier_at(parameters_, now_.begin, now_.count,
                                    Policy::counts_edges ? told.totals.largest_degree : 0,
                                    now_.level, Policy::dense ? told.level.explored : now_.explored,
                                    pulling_);
    if constexpr (Policy::padded) frontier.discovered = told.totals.discovered;
    if constexpr (Policy::dense) frontier.left = told.totals.left;
    place_bitmap<Policy>(frontier, totals(), Policy::dense ? told.level.stale : 0);
    decide_direction<Policy>(parameters_, frontier);
    return frontier;
  }

  // One level by the whole grid.
  __device__ __forceinline__ void expand(const Frontier& frontier) {
    if (is_grid_leader()) {
      // The host may say so at any time; the leader's word is the same for all.
      next_news().stopping = load_relaxed(&state_.stop);
      state_.totals[(totals() + 2) % 3] = {};
      if constexpr (Policy::dense) {
        // Kernels that push and pull have no registers for what each level reads once.
        next_news().explored = parameters_.arcs - frontier.unexplored;
        next_news().stale = stale_after<Policy>(frontier);
      }
    }
    if (is_grid_tracer()) trace_begin<Policy>(parameters_, frontier, !follows());
    // All that the frontier tells of the next level is taken down first: fewer registers are held
    // while it is expanded.
    now_.begin += frontier.size;
    if constexpr (!Policy::dense) now_.explored += frontier.edges;
    pulling_ = frontier.pulls;
    has_pulled_ |= pulling_;
    if (fills_unreached && pulling_ && threadIdx.x == 0) news().has_pulled = true;
    const NextFrontier growing =
        next_frontier(parameters_, now_.begin, next_totals());
    expand_level<Policy>(parameters_, frontier, growing);
    barrier_.wait();
    for (int phase = 1; phase < Policy::phases; ++phase) {
      complete_level<Policy>(parameters_, frontier, growing, phase);
      barrier_.wait();
    }
    if (is_grid_tracer()) trace_end<Policy>(parameters_, now_.level);
    follows_ = true;
    now_.totals = next_totals();
    ++now_.level;
    hear();
    stopped_ = news().level.stopping != 0;
    if constexpr (Policy::padded) {
      now_.found += news().totals.discovered;
    } else if constexpr (keeps_found) {
      now_.found += static_cast<int>(now_.count.vertices());
    }
  }

  __device__ __forceinline__ bool suits_tier(const Frontier& frontier) const {
    return Policy::Claim::exact && !Policy::padded &&
           static_cast<unsigned>(frontier.size) <= tier_.enters() &&
           !frontier.pulls;
  }

  // Levels by the tier, from this one on; whether they left a frontier.
  __device__ __forceinline__ bool run_tier() {
    if (tier_.is_member()) {
      // What the grid's levels have visited is in the queue, but for what was pulled.
      if (has_pulled_) {
        tier::rebuild(tier_.bits, parameters_.distances, parameters_.vertices);
      } else {
        const int size = static_cast<int>(now_.count.vertices());
        tier::visit(tier_.bits, parameters_.queue, visited_before_, now_.begin + size);
      }
      tier_.run(parameters_, now_, max_depth());
    } else {
      await_turn(parameters_, now_.turn);
    }
    now_.begin += static_cast<int>(now_.count.vertices());
    visited_before_ = now_.begin;
    has_pulled_ = pulling_ = follows_ = false;
    now_.count = {0};
    left_at_limit_ = receive(parameters_, now_);
    return left_at_limit_;
  }

  // The frontier that the tier left, into the queue.
  __device__ __forceinline__ void collect() {
    left_at_limit_ = false;
    const NextFrontier growing = next_frontier(parameters_, now_.begin, now_.totals);
    collect_frontier<Policy>(parameters_, now_.level, growing);
    barrier_.wait();
    hear();
  }

  __device__ __forceinline__ void trace_limit() const {
    if constexpr (Policy::trace) {
      Frontier frontier = this_frontier();
      if (left_at_limit_) frontier.discovered = FRONTIERS_SIZE;
      trace_begin<Policy>(parameters_, frontier);
    }
  }

  const Parameters& parameters_;
  SearchState& state_;
  Tier tier_;
  GridBarrier barrier_;
  Position now_;
  int visited_before_ = 0;      // in the queue, up to here, the tier knows who is visited
  bool has_pulled_ = false;     // since then
  bool pulling_ = false;        // at the level before
  bool follows_ = false;        // see follows()
  bool stopped_ = false;        // by the host
  bool left_at_limit_ = false;  // the tier left a frontier that nobody has collected
};

template <class Policy>
__device__ __forceinline__ void search_persistent(const typename Policy::Parameters& parameters,
                                                  const LaunchArguments& launch) {
  PersistentSearch<Policy> search(parameters, launch);
  search.run();
  if (is_grid_leader()) *launch.summary = search.finish();
}

}  // namespace persistent_bfs

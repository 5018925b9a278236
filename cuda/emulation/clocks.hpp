// What each thread knows of the others: the happens-before order of a launch, as vector clocks.
//
// A thread's time goes up whenever others may learn of what it did. `known` holds, of each thread
// of the launch, the time up to which all it did is ordered before what the owner does next.
// Orders are made by
//   - barriers of the block (of every thread in it; one that has returned has arrived) and warp
//     collectives (of the lanes in the mask);
//   - barriers of the cluster, in the same way, between what came before a thread's arrival and
//     what comes after another's wait;
//   - fences and atomics: what a thread knows at a fence goes along with its later atomics and
//     relaxed stores, and whoever reads the word by an atomic or a relaxed load knows it from
//     then on. A read-modify-write passes on what it found there; a store replaces it. What was
//     published travels through barriers too, so that each thread may fence and one of them count
//     the block as finished;
//   - barriers of the grid, which order everything: they begin anew, as a launch does.
// Generous where CUDA is stricter: every warp collective orders memory (CUDA promises it of
// __syncwarp), a fence of any scope publishes to the whole grid, and the reader needs no fence of
// its own (as in the CUDA guide's example of __threadfence). Hence what is reported is a race, but
// a missing fence on the reader's side, or memory passed by a vote or shuffle alone, is not seen.
//
// Threads that met share one vector, and it is changed in place when no one else holds it, so
// that a collective costs a step a lane, not one a thread of the launch. After C. Flanagan,
// S. Freund, "FastTrack: Efficient and Precise Dynamic Race Detection", PLDI 2009.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace simt {

class Clocks {
 public:
  // For a launch of so many threads in all.
  void start(unsigned threads) {
    nothing_ = std::make_shared<Times>(threads);
    released_.clear();
  }

  // For threads [first, first + count) of the launch, called fibers 0 to count - 1 from now on.
  void start_wave(unsigned first, unsigned count) {
    fibers_.resize(count);
    for (unsigned i = 0; i < count; ++i) fibers_[i] = fresh(first + i);
  }

  // All threads of the grid have met.
  void start_anew() {
    released_.clear();
    for (Thread& fiber : fibers_) fiber = fresh(fiber.clock.thread);
  }

  unsigned thread(unsigned fiber) const { return fibers_[fiber].clock.thread; }
  std::uint32_t now(unsigned fiber) const { return fibers_[fiber].clock.now; }

  // Whether what the thread did at that time is ordered before what the fiber does now.
  bool knows(unsigned fiber, unsigned thread, std::uint32_t time) const {
    const Clock& clock = fibers_[fiber].clock;
    return thread == clock.thread || time <= (*clock.known)[thread];
  }

  // Fibers first to first + count - 1 have met, or of each 32 of them those in the mask.
  __attribute__((noinline)) void meet(unsigned first, unsigned count, unsigned mask = ~0u) {
    met_.clear();
    for (unsigned i = 0; i < count; ++i)
      if (mask >> i % 32 & 1) met_.push_back(&fibers_[first + i]);
    const std::shared_ptr<Times> joined = join();
    std::shared_ptr<Times> published;
    for (const Thread* fiber : met_) {
      if (!fiber->published.known) continue;
      if (!published) published = std::make_shared<Times>(nothing_->size());
      raise(*published, fiber->published);
    }
    for (Thread* fiber : met_) {
      Clock& clock = fiber->clock;
      (*joined)[clock.thread] = clock.now++;
      clock.known = joined;
      if (published) fiber->published = {published, clock.thread, (*published)[clock.thread]};
    }
  }

  // The fiber arrives at a barrier: what it does from now on is in no order with those that wait.
  void arrive(unsigned fiber) {
    Thread& self = fibers_[fiber];
    self.arrived = {self.clock, self.published};
    ++self.clock.now;
  }

  // All of fibers first to first + count - 1 have arrived, or returned.
  __attribute__((noinline)) void complete(unsigned first, unsigned count) {
    auto known = std::make_shared<Times>(nothing_->size());
    std::shared_ptr<Times> published;
    const Times* last = nullptr;
    for (unsigned i = first; i < first + count; ++i) {
      const Knowledge& arrived = fibers_[i].arrived;
      if (!arrived.clock.known) continue;  // all of the grid has met since
      const Clock& clock = arrived.clock;
      if (clock.known.get() != last) raise(*known, *(last = clock.known.get()));
      (*known)[clock.thread] = std::max((*known)[clock.thread], clock.now);
      if (!arrived.published.known) continue;
      if (!published) published = std::make_shared<Times>(nothing_->size());
      raise(*published, arrived.published);
    }
    for (unsigned i = first; i < first + count; ++i) {
      const unsigned thread = fibers_[i].clock.thread;
      fibers_[i].released = {{known, thread, 0}, {}};
      if (published) fibers_[i].released.published = {published, thread, (*published)[thread]};
    }
  }

  // The fiber has waited for those that have arrived.
  void acquire(unsigned fiber) {
    Thread& self = fibers_[fiber];
    if (self.released.clock.known) {
      if (self.clock.known == self.arrived.clock.known)
        self.clock.known = self.released.clock.known;
      else
        self.clock.known = both(self.clock.known, self.released.clock);
      const Clock& published = self.released.published;
      if (published.known && self.published.known == self.arrived.published.known)
        self.published = published;
      else if (published.known)
        self.published.known = both(self.published.known, published);
    }
    self.arrived = self.released = {};
  }

  void fence(unsigned fiber) {
    Clock& clock = fibers_[fiber].clock;
    fibers_[fiber].published = clock;
    ++clock.now;
  }

  // An atomic or relaxed access to the word.
  void touch(unsigned fiber, std::uint64_t word, bool reads, bool writes) {
    Clock &clock = fibers_[fiber].clock, &published = fibers_[fiber].published;
    const auto found = released_.find(word);
    if (reads && found != released_.end()) {
      auto joined = std::make_shared<Times>(*clock.known);
      raise(*joined, *found->second);
      clock.known = std::move(joined);
    }
    if (!writes || (!published.known && (reads || found == released_.end()))) return;
    auto released = std::make_shared<Times>(nothing_->size());
    if (published.known) raise(*released, published);
    if (reads && found != released_.end()) raise(*released, *found->second);
    released_[word] = std::move(released);
  }

 private:
  using Times = std::vector<std::uint32_t>;

  struct Clock {
    std::shared_ptr<Times> known;
    unsigned thread;
    std::uint32_t now;  // of this thread itself, which `known` may not be up to date with
  };

  struct Knowledge {
    Clock clock;
    Clock published;  // what it knew at its last fence, and those it met at theirs
  };

  struct Thread : Knowledge {
    Knowledge arrived;   // when it arrived at a barrier that it has not waited at
    Knowledge released;  // by that barrier, once all have arrived
  };

  Thread fresh(unsigned thread) const { return {{{nothing_, thread, 1}, {}}, {}, {}}; }

  static std::shared_ptr<Times> both(const std::shared_ptr<Times>& one, const Clock& other) {
    auto joined = std::make_shared<Times>(*one);
    raise(*joined, *other.known);
    return joined;
  }

  static void raise(Times& times, const Times& others) {
    for (std::size_t i = 0; i < times.size(); ++i) times[i] = std::max(times[i], others[i]);
  }
  static void raise(Times& times, const Clock& clock) {
    raise(times, *clock.known);
    times[clock.thread] = std::max(times[clock.thread], clock.now);
  }

  // What those that met know together: their own vector if they share one that is theirs alone.
  std::shared_ptr<Times> join() const {
    const std::shared_ptr<Times>& first = met_.front()->clock.known;
    bool theirs = first.use_count() == static_cast<long>(met_.size());
    for (const Thread* fiber : met_) theirs &= fiber->clock.known == first;
    if (theirs) return first;
    auto joined = std::make_shared<Times>(*first);
    const Times* last = first.get();
    for (const Thread* fiber : met_)
      if (fiber->clock.known.get() != last) raise(*joined, *(last = fiber->clock.known.get()));
    return joined;
  }

  std::shared_ptr<Times> nothing_;
  std::vector<Thread> fibers_;
  std::vector<Thread*> met_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Times>> released_;
};

}  // namespace simt

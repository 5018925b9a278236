// Data races: two accesses to the same bytes by threads that nothing orders, at least one of them
// a write and at least one of them plain.
//
// Atomics and relaxed accesses do not race with each other. Of what each 8 bytes of memory have
// seen, only those accesses are kept that a later one could race with although it does not race
// with what came after them. What is found does not depend on who happened to be first, as long
// as both accesses happen.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "clocks.hpp"
#include "launch.hpp"

namespace simt {

class Races {
 public:
  Clocks clocks;

  void start() {
    words_.clear();
    found_.clear();
  }
  // All threads of the grid have met: nothing that was can race with what will be.
  void start_anew() {
    words_.clear();
    clocks.start_anew();
  }

  void see(const SimtAccess& access, unsigned fiber, SimtLaunch& launch) {
    const bool shared = access.kind & SHARED;
    const std::uint64_t space = shared ? SHARED_SPACE : 0;
    const std::uint64_t begin = space + access.address, end = begin + access.bytes;
    for (std::uint64_t word = begin / WORD; word * WORD < end; ++word) {
      const std::uint64_t from = std::max(begin, word * WORD) % WORD;
      const std::uint64_t to = std::min(end - word * WORD, WORD);
      const auto bytes = static_cast<std::uint8_t>((1u << to) - (1u << from));
      see_word(words_[word], {access, clocks.thread(fiber), clocks.now(fiber), bytes}, fiber,
               launch);
    }
    if (access.kind & ATOMIC) clocks.touch(fiber, begin, access.kind & READ, access.kind & WRITE);
  }

  // The block of the fiber, its last thread, has returned: no other may have reached into its
  // shared memory but those that some thread of it waited for.
  void see_exit(const SimtAccess& exit, unsigned fiber, SimtLaunch& launch) {
    const std::uint64_t begin = SHARED_SPACE + exit.address, end = begin + exit.bytes;
    for (std::uint64_t word = begin / WORD; word * WORD < end; ++word) {
      const auto found = words_.find(word);
      if (found == words_.end()) continue;
      for (const Seen& old : found->second) {
        if (old.access.block == exit.block || clocks.knows(fiber, old.thread, old.time)) continue;
        SimtAccess here = exit;
        here.address = old.access.address;
        report(old.access, here, launch);
      }
    }
  }

 private:
  static constexpr std::uint64_t SHARED_SPACE = 1ull << 63;
  static constexpr std::uint64_t WORD = 8;

  struct Seen {
    SimtAccess access;
    unsigned thread;  // of the launch
    std::uint32_t time;
    std::uint8_t bytes;  // of the word, as a mask
  };

  void see_word(std::vector<Seen>& word, const Seen& now, unsigned fiber, SimtLaunch& launch) {
    const bool writes = now.access.kind & WRITE, atomic = now.access.kind & ATOMIC;
    std::size_t kept = 0;
    for (const Seen& old : word) {
      const bool wrote = old.access.kind & WRITE, was_atomic = old.access.kind & ATOMIC;
      const bool ordered = clocks.knows(fiber, old.thread, old.time);
      if (!ordered && old.bytes & now.bytes && (wrote || writes) && !(was_atomic && atomic))
        report(old.access, now.access, launch);
      const bool covered = !(old.bytes & ~now.bytes) && writes >= wrote && atomic <= was_atomic;
      if (!(ordered && covered)) word[kept++] = old;
    }
    word.resize(kept);
    word.push_back(now);
  }

  void report(const SimtAccess& first, const SimtAccess& second, SimtLaunch& launch) {
    Code code{first.kind, second.kind};
    std::copy_n(first.callers, CALLERS, code.begin() + 2);
    std::copy_n(second.callers, CALLERS, code.begin() + 2 + CALLERS);
    const auto [place, is_new] = found_.try_emplace(code, launch.race_count);
    if (is_new && launch.race_count++ < launch.race_capacity)
      launch.races[place->second] = {first, second, 0};
    if (place->second < launch.race_capacity) ++launch.races[place->second].count;
  }

  static constexpr std::size_t CALLERS = std::size(SimtAccess{}.callers);
  using Code = std::array<std::uint64_t, 2 + 2 * CALLERS>;

  std::unordered_map<std::uint64_t, std::vector<Seen>> words_;
  std::map<Code, std::uint64_t> found_;
};

}  // namespace simt

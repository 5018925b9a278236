// Fibers: a stack each, and a switch that saves only what the x86-64 calling convention asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#if !defined(__x86_64__) || !defined(__linux__)
#error "the emulated device's fibers and thread-local memory are written for x86-64 Linux"
#endif

// Saves the running stack pointer in *from and goes on where `to` was saved.
extern "C" __attribute__((visibility("hidden"))) void simt_switch(void** from, void* to);
asm(R"(
    .text
    .hidden simt_switch
    .globl simt_switch
    .type simt_switch, @function
simt_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size simt_switch, .-simt_switch
)");

namespace simt {

constexpr std::size_t STACK_BYTES = 64 * 1024;

// The memory of all fibers' stacks, which the host lends for a launch: one after another.
class Stacks {
 public:
  Stacks() = default;
  explicit Stacks(char* memory) : memory_(memory) {}

  char* operator[](std::size_t i) const { return memory_ + i * STACK_BYTES; }

  // A saved stack pointer from which the i-th fiber starts in entry.
  void* start(std::size_t i, void (*entry)()) const {
    // Tops at one offset in every page would share a few cache sets: spread them.
    const std::size_t colour = i % 7 * 512;
    auto* top = reinterpret_cast<void**>((*this)[i] + STACK_BYTES - colour);
    *--top = nullptr;  // entry never returns; this keeps its frame aligned
    *--top = reinterpret_cast<void*>(entry);
    return top - 6;  // what simt_switch pops; the values do not matter
  }

 private:
  char* memory_ = nullptr;
};

// A set of fibers that is walked in cyclic order.
class FiberSet {
 public:
  static constexpr unsigned NONE = ~0u;

  void reset(unsigned fibers) { words_.assign((fibers + 63) / 64, 0); }
  void insert(unsigned fiber) { words_[fiber / 64] |= bit(fiber); }
  void erase(unsigned fiber) { words_[fiber / 64] &= ~bit(fiber); }
  bool contains(unsigned fiber) const {
    return fiber / 64 < words_.size() && (words_[fiber / 64] & bit(fiber));
  }

  // Moves all members of the other set into this one.
  void take(FiberSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= std::exchange(other.words_[i], 0);
  }

  // The first member at or after `from`, else the first of all.
  unsigned next(unsigned from) const {
    const std::size_t count = words_.size();
    std::size_t word = from / 64 < count ? from / 64 : 0;
    std::uint64_t bits = words_[word] & (from / 64 < count ? ~0ull << from % 64 : ~0ull);
    for (std::size_t turned = 0; turned <= count; ++turned) {
      if (bits) return static_cast<unsigned>(word * 64 + __builtin_ctzll(bits));
      if (++word == count) word = 0;
      bits = words_[word];
    }
    return NONE;
  }

 private:
  static std::uint64_t bit(unsigned fiber) { return 1ull << fiber % 64; }
  std::vector<std::uint64_t> words_;
};

}  // namespace simt

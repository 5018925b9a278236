// How a launch fails: one line that names the thread, what it did or waits for, and where.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "state.hpp"

namespace simt {

__attribute__((format(printf, 1, 2))) inline std::string text(const char* format, ...) {
  char line[512];
  va_list values;
  va_start(values, format);
  std::vsnprintf(line, sizeof line, format, values);
  va_end(values);
  return line;
}

inline std::string who(const Fiber& fiber) {
  return text("block %u, thread %u (warp %u, lane %u)", fiber.block->index, fiber.thread,
              fiber.thread / WARP, fiber.lane());
}

inline std::string where(Site site) {
  const char* const slash = std::strrchr(site.file, '/');
  return text(" at %s:%d", slash ? slash + 1 : site.file, site.line);
}

inline std::string what(Operation operation, Site site) {
  return NAMES[static_cast<int>(operation)] + where(site);
}

inline std::string what(const Fiber& fiber) { return what(fiber.waits, fiber.site); }

[[noreturn]] inline void fail(const std::string& message) {
  run.failed = true;
  std::snprintf(run.error, run.error_bytes, "%s", message.c_str());
  go_to_host();
}

[[noreturn]] inline void fail_here(const std::string& message) {
  fail(who(*run.current) + ": " + message);
}

// Nobody can go on: tells who waits for what, one thread of each kind.
[[noreturn]] inline void fail_deadlock() {
  std::map<std::pair<Operation, std::string>, std::pair<const Fiber*, unsigned>> groups;
  for (const Fiber& fiber : run.fibers) {
    if (fiber.returned) continue;
    auto& [first, count] = groups[{fiber.waits, what(fiber)}];
    if (count++ == 0) first = &fiber;
  }
  std::string message = "deadlock";
  const char* separator = ": ";
  for (const auto& [key, group] : groups) {
    message += separator + who(*group.first) + " waits for " + key.second;
    if (group.second > 1) message += text(" (and %u more)", group.second - 1);
    separator = "; ";
  }
  fail(message);
}

// Kept out of the hooks, as is the next, which then need to save no registers.
[[noreturn]] __attribute__((noinline)) inline void fail_misaligned(const void* address,
                                                                   std::size_t bytes, bool write) {
  fail_here(
      text("misaligned %s of %zu bytes at address %p", write ? "write" : "read", bytes, address));
}

// Tells what the address is near to.
[[noreturn]] __attribute__((noinline)) inline void fail_access(const char* address,
                                                               std::size_t bytes, bool write) {
  using Wide = unsigned long long;
  const auto at = reinterpret_cast<std::uint64_t>(address);
  const std::string access = text("%s of %zu bytes ", write ? "write" : "read", bytes);
  for (const Block& block : run.blocks) {
    const std::size_t offset = address - block.arena;
    if (offset >= run.arena_stride) continue;
    const bool is_peer = block.cluster == run.current->block->cluster;
    if (is_peer && !block.live)
      fail_here(access + text("in the shared memory of block %u, which has returned", block.index));
    if (is_peer && block.arena != run.arena)
      fail_here(access + text("at byte %zu of block %u's %zu bytes of shared memory", offset,
                              block.index, run.arena_bytes));
    if (block.arena != run.arena)
      fail_here(access + text("in the shared memory of block %u", block.index));
    fail_here(access + text("at byte %zu of the block's %zu bytes of shared memory", offset,
                            run.arena_bytes));
  }
  for (const Fiber& fiber : run.fibers)
    if (static_cast<std::size_t>(address - fiber.stack) < STACK_BYTES)
      fail_here(access + "in the local memory of " + who(fiber));

  const SimtRange* const below = run.memory.below(at);
  const SimtRange* const above = run.memory.above(at);
  const Wide past = below ? at - below->base : 0, before = above ? above->base - at : 0;
  if (below && past < below->bytes) {
    const Wide size = below->bytes;
    if (size - past >= bytes)
      fail_here(access + text("to byte %llu of the read-only buffer '%s'", past, below->name));
    fail_here(access +
              text("at byte %llu of the buffer '%s', which has %llu", past, below->name, size));
  }
  if (above && (!below || before < past - below->bytes))
    fail_here(access + text("%llu bytes before the buffer '%s' (address %p)", before, above->name,
                            static_cast<const void*>(address)));
  if (below)
    fail_here(access + text("%llu bytes after the end of the buffer '%s' of %llu bytes "
                            "(address %p)",
                            past - static_cast<Wide>(below->bytes), below->name,
                            static_cast<Wide>(below->bytes), static_cast<const void*>(address)));
  fail_here(access + text("at address %p", static_cast<const void*>(address)));
}

}  // namespace simt

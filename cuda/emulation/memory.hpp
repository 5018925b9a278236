// What memory an emulated kernel may touch: the ranges given at launch and the library's own data.
#pragma once

#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "launch.hpp"

namespace simt {

// The library that this runtime is linked into: its data, and its thread-local memory, which is
// what __shared__ became.
struct Library {
  std::uint64_t base = 0;  // its load address
  std::vector<SimtRange> data;
  std::size_t shared_bytes = 0;

  Library() { dl_iterate_phdr(&Library::visit, this); }

 private:
  static int visit(dl_phdr_info* info, std::size_t, void* self) {
    const auto here = reinterpret_cast<std::uint64_t>(&Library::visit);
    std::vector<SimtRange> data;
    std::size_t shared_bytes = 0;
    bool ours = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& segment = info->dlpi_phdr[i];
      const std::uint64_t base = info->dlpi_addr + segment.p_vaddr;
      if (segment.p_type == PT_TLS) shared_bytes = segment.p_memsz;
      if (segment.p_type != PT_LOAD) continue;
      ours |= here - base < segment.p_memsz;
      data.push_back(
          {base, segment.p_memsz, "the program's own data", (segment.p_flags & PF_W) != 0});
    }
    if (!ours) return 0;
    static_cast<Library*>(self)->base = info->dlpi_addr;
    static_cast<Library*>(self)->data = std::move(data);
    static_cast<Library*>(self)->shared_bytes = shared_bytes;
    return 1;
  }
};

// Ranges by address; neighbouring accesses mostly fall into the range found last.
class Memory {
 public:
  void reset(const SimtRange* ranges, std::size_t count, const std::vector<SimtRange>& data) {
    ranges_.assign(ranges, ranges + count);
    ranges_.insert(ranges_.end(), data.begin(), data.end());
    std::sort(ranges_.begin(), ranges_.end(),
              [](const SimtRange& a, const SimtRange& b) { return a.base < b.base; });
    last_ = ranges_.data();  // of the library there is always some
  }

  bool allows(std::uint64_t address, std::size_t bytes, bool write) {
    if (!last_) return true;  // before any launch: the library initializes its data
    if (address - last_->base >= last_->bytes) {
      const SimtRange* const before = below(address);
      if (!before) return false;
      last_ = before;
    }
    const std::uint64_t offset = address - last_->base;
    return offset < last_->bytes && last_->bytes - offset >= bytes && (!write || last_->writable);
  }

  // Whether kernels may only read there, so that nothing can race.
  bool read_only(std::uint64_t address) const {
    const SimtRange* const range = below(address);
    return range && !range->writable;
  }

  // The last range that starts at or below the address, or null.
  const SimtRange* below(std::uint64_t address) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), address,
                         [](std::uint64_t a, const SimtRange& range) { return a < range.base; });
    return after == ranges_.begin() ? nullptr : &*(after - 1);
  }
  const SimtRange* above(std::uint64_t address) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), address,
                         [](std::uint64_t a, const SimtRange& range) { return a < range.base; });
    return after == ranges_.end() ? nullptr : &*after;
  }

 private:
  std::vector<SimtRange> ranges_;
  const SimtRange* last_ = nullptr;
};

}  // namespace simt

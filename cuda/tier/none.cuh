// No tier: every level on the whole grid. Cost: a grid's barrier a level. Source: none needed.
#pragma once

#include "frontier.cuh"
#include "position.cuh"
#include "types.cuh"

namespace persistent_bfs::tier {

template <class Policy>
struct None {
  static constexpr bool exists = false;

  explicit __device__ __forceinline__ None(int) {}
};

}  // namespace persistent_bfs::tier

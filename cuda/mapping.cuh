// What every mapping says of itself.
#pragma once

#include "frontier.cuh"

namespace persistent_bfs {

// A mapping that expands every level alike.
struct FixedMapping {
  static __device__ __forceinline__ Mapping chosen(const Frontier&) { return CONFIGURED; }
};

}  // namespace persistent_bfs

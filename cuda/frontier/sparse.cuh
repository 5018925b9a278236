// Sparse frontier: a queue of its vertices, and nothing else.
//
// Cost: an append a discovery. A pulled level has no queue to look into: it sees by the distances
// who is in the frontier. Source: the queue of D. Kirk, W. Hwu, "Programming Massively Parallel
// Processors", chapter on graph traversal.
#pragma once

#include "pull/by_distances.cuh"

namespace persistent_bfs::frontier {

struct Sparse {
  static constexpr bool dense = false;

  template <class Policy>
  using Pull = pull::ByDistances<Policy>;
};

}  // namespace persistent_bfs::frontier

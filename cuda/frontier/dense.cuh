// Dense frontier: a bitmap of the vertices, beside which pushed levels keep their queue.
//
// Neighbours are looked for in n/8 bytes, which stay near the multiprocessor, instead of 4n; and a
// pulled level appends to no queue: it writes whole words of the next frontier's bitmap. Cost: an
// atomic that nobody waits for a discovery of a pushed level; the clearing and the way back to
// queues as dense.cuh says. Source: the bitmaps of S. Beamer, K. Asanovic, D. Patterson,
// "Direction-Optimizing Breadth-First Search", SC 2012.
#pragma once

#include "pull/by_bits.cuh"

namespace persistent_bfs::frontier {

struct Dense {
  static constexpr bool dense = true;

  template <class Policy>
  using Pull = pull::ByBits<Policy>;
};

}  // namespace persistent_bfs::frontier

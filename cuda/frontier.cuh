// A level's place in the queue of all frontiers.
#pragma once

#include "types.cuh"

namespace persistent_bfs {

// The frontier of one level: `size` vertices from `vertices`, all at distance `depth`.
struct Frontier {
  const vertex_t* vertices;
  int size;
  int depth;
};

// Where the next frontier grows: right behind this one. `size` counts every discovery, also those
// past `capacity`, which are not stored; the loop compares the count and stops with QUEUE_FULL.
// Only a claim that discovers twice can get there.
struct NextFrontier {
  vertex_t* vertices;
  int* size;
  int capacity;
};

template <class Parameters>
__device__ __forceinline__ Frontier frontier_at(const Parameters& parameters, int begin, int size,
                                                int depth) {
  return {parameters.queue + begin, size, depth};
}

template <class Parameters>
__device__ __forceinline__ NextFrontier next_frontier(const Parameters& parameters, int begin,
                                                      int size, int* next_size) {
  const int end = begin + size;
  return {parameters.queue + end, next_size, parameters.queue_capacity - end};
}

}  // namespace persistent_bfs

// Dependent atomics: one thread adds to one word, again and again, what the add before answered.
//
// The word holds 0, so the sums stay 0; the compiler does not know. The last answer goes to the
// second word.
//
// Cost: what it is there to measure. Source: this project's own.
#pragma once

#include "../warp_primitives.cuh"
#include "arguments.cuh"

namespace persistent_bfs {

template <class Policy>
__device__ __forceinline__ void chain_atomics(const typename Policy::Parameters&,
                                              const PrimitiveArguments& launch) {
  if (is_grid_leader()) {
    int answer = 0;
    for (int repeat = 0; repeat < launch.repeats; ++repeat) {
      answer = atomicAdd(launch.words, answer);
    }
    launch.words[1] = answer;
  }
}

}  // namespace persistent_bfs

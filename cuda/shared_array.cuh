// An array in this block's shared memory, by its address. Cost: a register; a load or a store as
// shared_words.cuh has them.
#pragma once

#include "shared_words.cuh"

namespace persistent_bfs {

template <class T>
struct SharedArray {
  shared_address begin;

  __device__ __forceinline__ shared_address at(int i) const {
    return begin + i * static_cast<int>(sizeof(T));
  }

  __device__ __forceinline__ T load_if(bool wanted, int i, T otherwise) const {
    return load_shared_if(wanted, at(i), otherwise);
  }

  __device__ __forceinline__ void store_if(bool wanted, int i, T value) const {
    store_shared_if(wanted, at(i), value);
  }
};

}  // namespace persistent_bfs

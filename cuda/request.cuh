// What a search is asked for, and how the blocks of a grid come to know it.
//
// The host puts it into its own memory, from where reads by many blocks come back one after another
// (132 of them took 7 us). So where the kernel is the whole search, one block reads it there and
// tells the others by a word of the device's memory. Cost: one read of the host's memory, a store,
// and looks at one word in L2, beside the clearing of the arrays. Source: this project's own.
#pragma once

#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// As a block knows it from its reset on.
__device__ __forceinline__ SearchRequest& request_of_block() {
  __shared__ SearchRequest request;
  return request;
}

// A request that is there before the kernel begins. As ToldRequest, by one thread a block, which
// asks early and is answered when it cannot go on without.
class GivenRequest {
 public:
  __device__ __forceinline__ explicit GivenRequest(const SearchRequest* place) : place_(place) {}

  __device__ __forceinline__ void ask() { request_ = *place_; }
  __device__ __forceinline__ SearchRequest answer() const { return request_; }

 private:
  const SearchRequest* place_;
  SearchRequest request_ = {};
};

// A request in the host's memory, told by the grid's leader in the word `told`. Every block must be
// resident.
class ToldRequest {
 public:
  __device__ __forceinline__ ToldRequest(const SearchRequest* asked, unsigned long long* told)
      : asked_(asked), told_(told) {}

  __device__ __forceinline__ void ask() {
    if (!is_grid_leader()) return;
    request_ = *asked_;
    if (gridDim.x > 1) store_relaxed(told_, as_word(request_));
  }

  __device__ __forceinline__ SearchRequest answer() const {
    if (is_grid_leader()) return request_;
    unsigned long long word;
    do {
      word = load_relaxed(told_);
    } while (word == NOTHING_TOLD);
    return {static_cast<vertex_t>(word), static_cast<int>(word >> 32)};
  }

  // By the grid's leader when all have been answered: the next search finds nothing told.
  __device__ __forceinline__ void forget() const { store_relaxed(told_, NOTHING_TOLD); }

 private:
  static constexpr unsigned long long NOTHING_TOLD = ~0ull;  // no source is negative

  static __device__ __forceinline__ unsigned long long as_word(const SearchRequest& request) {
    return static_cast<unsigned>(request.source) |
           static_cast<unsigned long long>(request.max_depth) << 32;
  }

  const SearchRequest* asked_;
  unsigned long long* told_;
  SearchRequest request_ = {};
};

}  // namespace persistent_bfs

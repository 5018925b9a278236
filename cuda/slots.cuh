// Output slots by the exclusive scan of degrees: what the appends that go by places share.
//
// Each arc of the frontier has its place among all of them: the scan of the degrees says where its
// row begins. So a slot an arc takes every discovery without a counter, and an arc that discovered
// nobody leaves NO_VERTEX there. When all slots are written they are cut into parts, a part a warp:
// in one phase each warp sums the vertices and degrees of its part, in the next it adds up the sums
// of the parts before and goes through its own in order, telling each slot what comes before it.
// That orders the next frontier and scans its degrees at once, without an atomic. Cost: two reads
// of the slots and of the discovered vertices' degrees, two device-wide barriers, and a read of up
// to SLOT_PARTS sums. Source: the prefix sum in place of atomics of D. Merrill, M. Garland, A.
// Grimshaw, "Scalable GPU Graph Traversal", PPoPP 2012, and reduce-then-scan over parts as in D.
// Merrill, A. Grimshaw, "Parallel Scan for Stream Architectures", 2009.
#pragma once

#include "frontier.cuh"
#include "types.cuh"
#include "warp_primitives.cuh"

namespace persistent_bfs {

// Enough warps to keep memory busy; few enough that the sums before a part are read in no time.
constexpr unsigned SLOT_PARTS = 2048;

// The phases of a level after its expansion.
constexpr int SUM_SLOTS = 1;
constexpr int SCAN_SLOTS = 2;

// The slots of the form that does not write them straight into the next frontier: behind the sums.
// One buffer for both, since more than 128 bytes of kernel parameters cost every kernel registers.
template <class Parameters>
__device__ __forceinline__ vertex_t* slots_behind_sums(const Parameters& parameters) {
  return reinterpret_cast<vertex_t*>(parameters.part_sums + SLOT_PARTS);
}

// This warp's part of a frontier's slots; maybe none of them.
template <class Policy>
class SlotPart {
 public:
  __device__ __forceinline__ SlotPart(const typename Policy::Parameters& parameters,
                                      const vertex_t* slots, unsigned size)
      : parameters_(parameters), slots_(slots), lane_(workers_.lane), part_(workers_.warp) {
    const unsigned warps = workers_.warps;
    const unsigned parts = warps < SLOT_PARTS ? warps : SLOT_PARTS;
    const unsigned share = size / parts + (size % parts != 0);
    const unsigned length = (share + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE;
    const unsigned long long begin = static_cast<unsigned long long>(part_) * length;
    begin_ = begin < size ? static_cast<unsigned>(begin) : size;
    end_ = size - begin_ < length ? size : begin_ + length;
    is_last_ = begin_ < end_ && end_ == size;
  }

  // Leaves the sum of the part where `scan` finds it.
  __device__ __forceinline__ void sum(const NextFrontier& next) const {
    unsigned long long found = 0;
    int largest = 0;
    each([&](unsigned, vertex_t v) {
      if (v == NO_VERTEX) return;
      const int degree = degree_of(parameters_, v);
      found += FrontierCount::pack(1, degree);
      largest = degree > largest ? degree : largest;
    });
    next.note_degrees(largest, lane_);
    found = warp_sum(found);
    if (lane_ == 0 && begin_ < end_) parameters_.part_sums[part_] = found;
  }

  // Calls place(slot, vertex, before) for every slot of the part, `before` being the vertices and
  // degrees in the slots before it; returns those in all slots, to the lanes of the last part.
  template <class Place>
  __device__ __forceinline__ FrontierCount scan(Place place) const {
    if (begin_ == end_) return {0};
    unsigned long long before = 0;
    for (unsigned earlier = lane_; earlier < part_; earlier += WARP_SIZE) {
      before += parameters_.part_sums[earlier];
    }
    before = warp_sum(before);
    each([&](unsigned slot, vertex_t v) {
      unsigned long long mine = 0;
      unsigned long long up_to_mine = 0;
      if (__any_sync(FULL_WARP, v != NO_VERTEX)) {
        if (v != NO_VERTEX) mine = FrontierCount::pack(1, degree_of(parameters_, v));
        up_to_mine = warp_inclusive_sum(mine, lane_);
      }
      if (slot < end_) place(slot, v, FrontierCount{before + up_to_mine - mine});
      before += __shfl_sync(FULL_WARP, up_to_mine, WARP_SIZE - 1);
    });
    return {before};
  }

  // Whether the calling thread speaks for the warp that has the last part.
  __device__ __forceinline__ bool speaks_for_all() const { return is_last_ && lane_ == 0; }

 private:
  static constexpr int BATCH = 8;  // slots a lane reads before it looks at the first

  // Calls work(slot, vertex) by the whole warp, 32 slots in order after another; past the part's
  // end with NO_VERTEX.
  template <class Work>
  __device__ __forceinline__ void each(Work work) const {
    for (unsigned first = 0; first < end_ - begin_; first += BATCH * WARP_SIZE) {
      vertex_t found[BATCH];
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const unsigned ahead = first + i * WARP_SIZE + lane_;
        found[i] = ahead < end_ - begin_ ? slots_[begin_ + ahead] : NO_VERTEX;
      }
#pragma unroll
      for (int i = 0; i < BATCH; ++i) work(begin_ + first + i * WARP_SIZE + lane_, found[i]);
    }
  }

  const typename Policy::Parameters& parameters_;
  const vertex_t* slots_;
  Workers workers_;
  int lane_;
  unsigned part_;
  unsigned begin_;
  unsigned end_;
  bool is_last_;
};

// What an expansion leaves in the slots: the discovered far ends of its arcs, each at its place.
template <int N>
__device__ __forceinline__ void fill_slots(vertex_t* slots, const vertex_t (&neighbours)[N],
                                           unsigned valid, unsigned discovered, Places places) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (valid >> i & 1u) slots[places[i]] = discovered >> i & 1u ? neighbours[i] : NO_VERTEX;
  }
}

}  // namespace persistent_bfs

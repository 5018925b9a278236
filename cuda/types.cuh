// The data a search works on: graph, request, state, trace, and the one kernel-parameter struct.
//
// `persistent_bfs/layout.py` mirrors these structs field by field; a test compares the sizes.
#pragma once

#include "platform.cuh"

namespace persistent_bfs {

using vertex_t = int;

constexpr vertex_t UNVISITED = -1;
constexpr vertex_t NO_PREDECESSOR = -1;
constexpr vertex_t NO_VERTEX = -1;  // in a slot whose arc discovered nobody

// What the host asks of one search. One word of 8 bytes, the source in its low half.
struct alignas(8) SearchRequest {
  vertex_t source;
  int max_depth;
};

// What it wants to know when the search is over.
struct SearchSummary {
  int depth;
  int enqueued;
  int status;
  int barriers;
};

enum SearchStatus : int { RUNNING = 0, DONE = 1, QUEUE_FULL = 2, STOPPED = 3 };

// What is known of a frontier as it grows. `count` holds its vertices and, where the policy counts
// them, its edges; `largest_degree` is kept beside the edges, and only when it is large. In a
// padded frontier `count` holds the slots, and `discovered` the vertices in them. Beside one that
// was pulled by bitmaps, `left` vertices with an arc to them are still unvisited.
struct alignas(16) FrontierTotals {
  unsigned long long count;
  int largest_degree;
  union {
    int discovered;
    int left;
  };
};

// What a level is told of those before it, beside its frontier's totals.
struct alignas(16) LevelNews {
  unsigned long long explored;  // arcs of the vertices of earlier frontiers, where counted
  int stale;                    // what is left in the bitmap of the frontier before: see dense.cuh
  int stopping;                 // whether the host wants an end, as the leader heard it
};

// What a search knows of itself, in device memory.
//
// One device-wide barrier a level suffices because nothing is read and rewritten in one level:
// three frontiers' totals rotate (this level's is read, the next one's grows, the one after is
// cleared), and what moves with the level has two copies, read from one and written to the other.
struct SearchState {
  FrontierTotals totals[3];
  LevelNews news[2];
  int pulling[2];
  int reached[2];  // vertices of earlier frontiers, where they are padded
  int frontier_begin[2];
  int level[2];
  int max_depth;
  int depth;            // deepest level with a vertex in it
  int enqueued;         // sum of the frontier sizes
  int status;           // a SearchStatus
  int barriers;         // device-wide barriers inside the kernel
  int blocks_finished;  // blocks through with the launch, where the last one has a duty
  int stop;             // set by the host, to end a search that takes too long
  int turn;             // moved on by a tier when it hands the search back to the grid
  unsigned long long tier_edges;  // of the tier's last run: arcs of the frontiers it expanded,
  int tier_found;                 // vertices it discovered,
  int tier_level;                 // the level it left,
  int tier_slots;                 // and what is left of the frontier
  int unused[3];                  // to a multiple of 16 bytes
};

// Which mapping a level was expanded with, where it is chosen level by level.
enum Mapping : short {
  CONFIGURED = 0,
  BY_THREAD = 1,
  BY_WARP = 2,
  BY_EDGE = 3,
  BY_ONE_WARP = 4,
  BY_ONE_BLOCK = 5,
  BY_ONE_CLUSTER = 6,
  BY_TOPOLOGY = 7
};

// What a record says of a frontier that was not counted: the host counts its vertices by their
// distances.
constexpr int FRONTIERS_SIZE = -1;

// One level of a trace. Times are the device's own clock. A tier says of its level all that there
// is to say in the first word: the low half is that of its multiprocessor's clock, the high half
// TIERS_LEVEL and a Mapping, which no clock's is for 292 years.
constexpr unsigned TIERS_LEVEL = 1u << 31;
struct LevelRecord {
  unsigned long long begin_nanoseconds;
  unsigned long long end_nanoseconds;
  unsigned long long edges;
  int frontier_size;
  short mapping;  // a Mapping
  short pulled;   // whether unvisited vertices looked for parents
};

// A tier's run of levels, by both clocks. Records of levels fill a trace from its front, these from
// its back. They never meet: between two runs is a level of at least two vertices, so that levels
// and runs are at most one more than the vertices, and a trace has room for two more than that.
struct RunClocks {
  unsigned long long begin_nanoseconds;
  unsigned long long begin_cycles;
  unsigned long long end_nanoseconds;
  unsigned long long end_cycles;
};

// What the host tells one launch, by value.
struct LaunchArguments {
  unsigned long long condition;  // WHILE node's handle
  SearchRequest request;         // for the kernel that resets
  int parity;                    // which copy of the state's doubled fields to read
  int level;                     // host_loop's own loop variables
  int frontier_begin;
  unsigned frontier_size;
  unsigned frontier_edges;
  int largest_degree;
  int discovered;  // vertices of a padded frontier
  int phase;       // of the level, where it has several
  int tier_slots;  // in each block of the tier, for a frontier
  int left;        // vertices to look for a parent, after a level pulled by bitmaps
  unsigned long long explored;
  unsigned long long prefetched_bytes;  // of the packed rows, where they fit L2; else 0
  // In the host's memory, for a kernel that runs the whole search:
  const SearchRequest* asked;
  SearchSummary* summary;
};

// The queue holds every frontier of the search one after another, so that it ends as the vertices
// in the order of their discovery. Each vertex enters once and each level has at least one, hence
// `queue_capacity` (the number of vertices) bounds the levels too and nothing can run forever. With
// padded frontiers it is the number of arcs and one more: each arc leaves one slot, once. Where
// frontiers are dense, those that pulled levels discover leave their places in it unwritten.
template <class Offset>
struct SearchParameters {
  using OffsetType = Offset;
  const Offset* row_offsets;
  const vertex_t* col_indices;
  const Offset* in_row_offsets;  // the transposed graph, where a direction looks backwards
  const vertex_t* in_col_indices;
  vertex_t* distances;
  vertex_t* predecessors;
  vertex_t* queue;
  unsigned* edge_begin;         // beside the queue, where frontiers' edges are counted
  const int4* packed_rows;      // where a tier fetches whole short rows: packed_rows.cuh; else
                                // likely parents, where bitmaps are pulled: likely_parents.cuh
  unsigned long long* part_sums;  // where an append goes by arcs: see slots.cuh; else dense.cuh
  const vertex_t* arc_sources;  // the near end of every arc, where a mapping goes by arcs
  LevelRecord* trace;
  SearchState* state;
  unsigned long long* request;  // the SearchRequest of a recorded search, or none: see request.cuh
  vertex_t vertices;
  int queue_capacity;
  long long arcs;
};

// The compile-time choices of one search, composed by a stub.
template <class Offset_, class Advance_, template <class> class Direction_, class Claim_,
          template <class> class Append_, class Form_, template <class> class Tier_,
          bool counts_edges_, bool predecessors_, bool trace_, int block_threads_,
          int block_queue_, int row_slots_, int phases_, bool padded_>
struct SearchPolicy {
  using Offset = Offset_;
  using Advance = Advance_;
  template <class Policy>
  using Direction = Direction_<Policy>;
  using Claim = Claim_;
  template <class Policy>
  using Append = Append_<Policy>;
  template <class Policy>
  using Tier = Tier_<Policy>;
  using Form = Form_;
  using Parameters = SearchParameters<Offset>;
  static constexpr bool dense = Form::dense;  // frontiers have bitmaps
  static constexpr bool predecessors = predecessors_;
  static constexpr bool trace = trace_;
  static constexpr int block_threads = block_threads_;
  static constexpr int block_queue = block_queue_;
  // Slots of four arcs that a vertex takes at most: 1, 2, or 3 for any more.
  static constexpr bool has_long_rows = row_slots_ > 1;
  static constexpr bool has_hubs = row_slots_ > 2;
  static constexpr bool counts_edges = counts_edges_;
  // Parts of a level with a device-wide barrier between them: the expansion, and what an append
  // that goes by the arcs' places still does to the slots it leaves.
  static constexpr int phases = phases_;
  static constexpr bool needs_places = phases_ > 1;
  static constexpr bool padded = padded_;  // frontiers have slots without a vertex
};

}  // namespace persistent_bfs

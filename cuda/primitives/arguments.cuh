// What the host tells one launch of a primitive; persistent_bfs/study/primitives.py mirrors it.
//
// A primitive also takes a search's parameters, which it ignores: so its launch hands over as many
// bytes as a search's does.
#pragma once

#include "../types.cuh"

namespace persistent_bfs {

struct PrimitiveArguments {
  unsigned long long condition;  // WHILE node's handle
  int* words;                    // two words of its own: what it counts, or where it stands
  const int* next;               // the ring of a chase: where each place leads
  const int4* from;              // what is copied
  int4* to;
  long long count;               // how much of it
  int repeats;
  int reserved;
};

}  // namespace persistent_bfs

// The study's program: what a search is made of, each thing alone in a kernel of its own.
#pragma once

#include "atomic_chain.cuh"
#include "block_sync.cuh"
#include "chase.cuh"
#include "cluster_barrier.cuh"
#include "copy.cuh"
#include "empty.cuh"
#include "grid_sync.cuh"
#include "own_barrier.cuh"
#include "turn.cuh"

"""The structs of ``cuda/types.cuh``, field by field, as ctypes lays them out.

Every kernel takes a `SearchParameters` and a `LaunchArguments` by value. A test compares these
sizes with the compiler's.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

RUNNING, DONE, QUEUE_FULL, STOPPED = 0, 1, 2, 3

MAPPINGS = (
    "",
    "thread",
    "warp",
    "edge",
    "one warp",
    "one block",
    "one cluster",
    "topology",
)  # enum Mapping; "" is the configured one

# cuda/packed_rows.cuh.
PACKED = 4  # neighbours in a packed row; a long vertex has two rows
LONG = 1 << 30  # beside the number of a long neighbour
NO_NEIGHBOUR, MORE_NEIGHBOURS = -1, -2

# cuda/tier_slots.cuh: what a block's shared memory holds beside the visited bits.
SLOT_BYTES, SLOT_COUNTER_BYTES = 40, 256

# The words of a trace that nobody has written: no mapping has such a number.
NO_RECORD = 0xCCCCCCCC

# What a trace record says of a frontier's vertices where nobody counted them.
FRONTIERS_SIZE = -1

# With a mapping, the high half of the word in which a tier says all there is to say of a level.
TIERS_LEVEL = 1 << 31

NO_DEPTH_LIMIT = 2**31 - 1

# Of cuda/dense.cuh: this frontier's, the next one's, that of the one before, the unvisited.
BITMAPS = 4


def bitmap_words(vertices: int) -> int:
    """Words from one bitmap of ``vertices`` bits to the next: whole cache lines of 128 bytes."""
    return -(-vertices // 1024) * 32


EVEN_DEGREE = 64  # of cuda/frontier.cuh: degrees up to this are alike to every mapping

SLOT_PARTS = 2048  # of cuda/slots.cuh: sums of 8 bytes, with the slots behind them


class SearchRequest(ctypes.Structure):
    """What the host asks of one search."""

    _fields_ = (("source", ctypes.c_int), ("max_depth", ctypes.c_int))


class LaunchArguments(ctypes.Structure):
    """What the host tells one launch."""

    _fields_ = (
        ("condition", ctypes.c_ulonglong),
        ("request", SearchRequest),
        ("parity", ctypes.c_int),
        ("level", ctypes.c_int),
        ("frontier_begin", ctypes.c_int),
        ("frontier_size", ctypes.c_uint),
        ("frontier_edges", ctypes.c_uint),
        ("largest_degree", ctypes.c_int),
        ("discovered", ctypes.c_int),
        ("phase", ctypes.c_int),
        ("tier_slots", ctypes.c_int),
        ("left", ctypes.c_int),
        ("explored", ctypes.c_ulonglong),
        ("prefetched_bytes", ctypes.c_ulonglong),
        ("asked", ctypes.c_void_p),
        ("summary", ctypes.c_void_p),
    )


class SearchParameters(ctypes.Structure):
    """Where a search's data is, on the device."""

    _fields_ = (
        ("row_offsets", ctypes.c_void_p),
        ("col_indices", ctypes.c_void_p),
        ("in_row_offsets", ctypes.c_void_p),
        ("in_col_indices", ctypes.c_void_p),
        ("distances", ctypes.c_void_p),
        ("predecessors", ctypes.c_void_p),
        ("queue", ctypes.c_void_p),
        ("edge_begin", ctypes.c_void_p),
        ("packed_rows", ctypes.c_void_p),
        ("part_sums", ctypes.c_void_p),
        ("arc_sources", ctypes.c_void_p),
        ("trace", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
        ("request", ctypes.c_void_p),
        ("vertices", ctypes.c_int),
        ("queue_capacity", ctypes.c_int),
        ("arcs", ctypes.c_longlong),
    )


SEARCH_REQUEST = np.dtype([("source", np.int32), ("max_depth", np.int32)])

SEARCH_SUMMARY = np.dtype(
    [("depth", np.int32), ("enqueued", np.int32), ("status", np.int32), ("barriers", np.int32)]
)

FRONTIER_TOTALS = np.dtype(
    [
        ("vertices", np.uint32),  # the low half of the count
        ("edges", np.uint32),
        ("largest_degree", np.int32),
        ("discovered", np.int32),  # or, of a frontier pulled by bitmaps, who is left
    ]
)


class FrontierTotals(NamedTuple):
    """The fields of a `FRONTIER_TOTALS`, which NumPy gives sooner all at once than by name."""

    vertices: int
    edges: int
    largest_degree: int
    discovered: int


LEVEL_NEWS = np.dtype([("explored", np.uint64), ("stale", np.int32), ("stopping", np.int32)])

SEARCH_STATE = np.dtype(
    [
        ("totals", FRONTIER_TOTALS, 3),
        ("news", LEVEL_NEWS, 2),
        ("pulling", np.int32, 2),
        ("reached", np.int32, 2),
        ("frontier_begin", np.int32, 2),
        ("level", np.int32, 2),
        ("max_depth", np.int32),
        ("depth", np.int32),
        ("enqueued", np.int32),
        ("status", np.int32),
        ("barriers", np.int32),
        ("blocks_finished", np.int32),
        ("stop", np.int32),
        ("turn", np.int32),
        ("tier_edges", np.uint64),
        ("tier_found", np.int32),
        ("tier_level", np.int32),
        ("tier_slots", np.int32),
        ("unused", np.int32, 3),
    ],
    align=True,
)

LEVEL_RECORD = np.dtype(
    [
        ("begin_nanoseconds", np.uint64),
        ("end_nanoseconds", np.uint64),
        ("edges", np.uint64),
        ("frontier_size", np.int32),
        ("mapping", np.int16),
        ("pulled", np.int16),
    ]
)

# In the same buffer, from its end.
RUN_CLOCKS = np.dtype(
    [
        ("begin_nanoseconds", np.uint64),
        ("begin_cycles", np.uint64),
        ("end_nanoseconds", np.uint64),
        ("end_cycles", np.uint64),
    ]
)

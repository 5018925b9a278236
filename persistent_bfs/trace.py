"""The level trace: records as the device leaves them, made whole on the host.

A tier says no more of its levels than when they began, in its multiprocessor's cycles, and who ran
them, and beside them when the run of levels began and ended by both clocks
(``cuda/tier_trace.cuh``). What follows from that and from the distances is filled in here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from persistent_bfs import layout
from persistent_bfs.device.base import Buffer


class Records(NamedTuple):
    """A search's records, a level each, and which of them a tier ran, both (levels,)."""

    levels: npt.NDArray[Any]
    own: npt.NDArray[np.bool_]


def read_records(trace: Buffer, levels: int) -> Records:
    """The records of a search of so many levels, with the times of those that a tier ran."""
    records = trace.to_host(levels)
    own = unpack_levels(records)
    if runs := runs_of(own):
        # The last run's clocks come first of those at the end of the buffer.
        clocks = trace.to_host(len(runs), start=trace.count - len(runs))
        set_times(records, runs, clocks.view(layout.RUN_CLOCKS)[::-1])
    return Records(records, own)


def unpack_levels(records: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which levels a tier ran, (levels,), from the records of a trace as the device left them.

    What the tier said of them in one word each is spread over their records; what it left of a
    search before is gone.
    """
    high = records["begin_nanoseconds"] >> np.uint64(32)
    own: npt.NDArray[np.bool_] = high >= layout.TIERS_LEVEL
    records["mapping"][own] = high[own] - layout.TIERS_LEVEL
    records["begin_nanoseconds"][own] &= np.uint64(0xFFFFFFFF)
    records["pulled"][own] = 0
    records["frontier_size"][own] = layout.FRONTIERS_SIZE
    return own


def runs_of(own: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First level, and the level after the last, of each run of a tier's levels.

    Two runs have a level of the grid between them, so that none is taken for two.

    Examples
    --------
    >>> runs_of(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(own.astype(np.int8), prepend=0, append=0))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def set_times(
    records: npt.NDArray[Any], runs: list[tuple[int, int]], clocks: npt.NDArray[Any]
) -> None:
    """Give the levels of ``runs`` begins and ends in nanoseconds instead of begins in cycles.

    ``clocks`` has a row of `layout.RUN_CLOCKS` for each run. A level's begin is the low half of a
    clock of 64 bits; no level of a tier takes the two seconds in which that comes round.
    """
    for (first, end), clock in zip(runs, clocks, strict=True):
        cycles = np.empty(end - first + 2, np.uint32)
        cycles[0] = clock["begin_cycles"] & 0xFFFFFFFF
        cycles[1:-1] = records["begin_nanoseconds"][first:end]
        cycles[-1] = clock["end_cycles"] & 0xFFFFFFFF
        after = np.cumsum(np.diff(cycles), dtype=np.uint64)  # differences modulo 2^32
        began, took = clock["begin_nanoseconds"], int(clock["end_nanoseconds"])
        took -= int(began)
        nanoseconds_a_cycle = took / max(int(after[-1]), 1)
        since = (after * nanoseconds_a_cycle).astype(np.uint64)
        records["begin_nanoseconds"][first:end] = began + since[:-1]
        records["end_nanoseconds"][first:end] = began + since[1:]
        if first > 0:  # the grid's last level was another thread's to see end
            before = records[first - 1 : first]["end_nanoseconds"]
            np.minimum(before, records["begin_nanoseconds"][first], out=before)


def join_levels(records: npt.NDArray[Any], own: npt.NDArray[np.bool_]) -> None:
    """Let each level of a persistent grid begin where the one before ended, at the barrier.

    Nobody wrote down when it began (``cuda/loop_persistent.cuh``), and it would have been later by
    what all threads do first: they read the counts that tell what the level is. That is the
    level's, too. ``own`` are a tier's levels.
    """
    ends = records["end_nanoseconds"]
    follows = ~own[1:] & ~own[:-1] & (ends[:-1] != 0)
    records["begin_nanoseconds"][1:][follows] = ends[:-1][follows]


def count_frontiers(
    records: npt.NDArray[Any],
    own: npt.NDArray[np.bool_],
    distances: npt.NDArray[np.int32],
    degrees: npt.NDArray[Any],
) -> None:
    """Give every frontier that the device did not count its vertices, and ``own`` levels' arcs.

    ``distances`` (n,) and ``degrees`` (n,) are by the same ids. A tier discovers each vertex once,
    so that its frontiers are the vertices at a distance; one at the depth limit has no arcs.
    """
    levels = len(records)
    reached = distances >= 0
    at = distances[reached]
    unsized = records["frontier_size"] == layout.FRONTIERS_SIZE
    records["frontier_size"][unsized] = np.bincount(at, minlength=levels)[:levels][unsized]
    edges = np.bincount(at, weights=degrees[reached], minlength=levels)[:levels]
    records["edges"][own] = edges[own].astype(np.uint64)

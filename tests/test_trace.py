"""Traces: what a tier leaves of its levels, and what is made of that on the host."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from graphs import path
from loops import LOOPS, how, narrow_mappings

from persistent_bfs import BFS, Graph, Options, layout, read_graph
from persistent_bfs.reference import bfs_reference
from persistent_bfs.trace import count_frontiers, join_levels, runs_of, set_times, unpack_levels

WITH_TIER = [loop for loop in LOOPS if narrow_mappings(loop)]

# The edges of a level that a tier ran: none are told.
OWN = -1
ONE_BLOCK = layout.MAPPINGS.index("one block")


def _records(*edges: int, begins: list[int] | None = None) -> npt.NDArray[Any]:
    """Levels as the device leaves them, those of tiers with what a search before had left."""
    records = np.zeros(len(edges), layout.LEVEL_RECORD)
    records["begin_nanoseconds"] = begins or 0
    for record, counted in zip(records, edges, strict=True):
        if counted == OWN:
            record["begin_nanoseconds"] |= np.uint64((layout.TIERS_LEVEL | ONE_BLOCK) << 32)
            record["edges"], record["frontier_size"], record["pulled"] = 4321, 321, 1
        else:
            record["edges"] = counted
    return records


def _clocks(*rows: tuple[int, int, int, int]) -> npt.NDArray[Any]:
    return np.array([*rows], layout.RUN_CLOCKS)


def test_runs_of_a_tier_are_between_levels_of_the_grid() -> None:
    records = _records(OWN, OWN, 7, OWN, 0, begins=[5, 2**32 - 1, 10**18, 0, 2**62])
    own = unpack_levels(records)
    assert own.tolist() == [True, True, False, True, False]
    assert records["begin_nanoseconds"].tolist() == [5, 2**32 - 1, 10**18, 0, 2**62]
    assert records["mapping"].tolist() == [ONE_BLOCK, ONE_BLOCK, 0, ONE_BLOCK, 0]
    assert records["frontier_size"].tolist() == [-1, -1, 0, -1, 0]
    assert records["pulled"].tolist() == [0] * 5
    assert runs_of(own) == [(0, 2), (3, 4)]
    assert runs_of(own[:2]) == [(0, 2)]
    assert runs_of(own[2:3]) == runs_of(own[:0]) == []


def test_cycles_become_nanoseconds_by_each_runs_own_clocks() -> None:
    records = _records(OWN, OWN, 7, OWN, OWN, begins=[1_100, 1_300, 5_555, 90_020, 90_060])
    records["end_nanoseconds"][2] = 6_043  # by another thread's look than the run's begin
    # Two cycles a nanosecond in the first run, a half in the second.
    clocks = _clocks((5_000, 1_000, 5_300, 1_600), (6_000, 90_000, 6_200, 90_100))
    set_times(records, runs_of(unpack_levels(records)), clocks)
    assert records["begin_nanoseconds"].tolist() == [5_050, 5_150, 5_555, 6_040, 6_120]
    assert records["end_nanoseconds"].tolist() == [5_150, 5_300, 6_040, 6_120, 6_200]


def test_the_low_half_of_a_clock_may_come_round_once_a_level() -> None:
    high = 7 << 32
    at = [high + 2**32 - 100, high + 2**32 + 50, high + 2 * 2**32 + 10, high + 3 * 2**32]
    records = _records(OWN, OWN, OWN, begins=[cycles % 2**32 for cycles in at[:3]])
    assert unpack_levels(records).all()
    set_times(records, [(0, 3)], _clocks((10**9, at[0], 10**9 + at[3] - at[0], at[3])))
    assert (records["begin_nanoseconds"] - 10**9 + at[0]).tolist() == at[:3]
    assert (records["end_nanoseconds"] - 10**9 + at[0]).tolist() == at[1:]


def test_a_run_without_time_has_none() -> None:
    records = _records(OWN, OWN, begins=[40, 40])
    assert unpack_levels(records).all()
    set_times(records, [(0, 2)], _clocks((8, 40, 8, 40)))
    assert records["begin_nanoseconds"].tolist() == records["end_nanoseconds"].tolist() == [8, 8]


def test_levels_of_a_grid_begin_where_the_one_before_ended() -> None:
    records = _records(5, 6, OWN, OWN, 7, 8, 0, begins=[10, 25, 40, 50, 65, 75, 99])
    records["end_nanoseconds"] = [20, 38, 50, 60, 72, 90, 0]
    join_levels(records, unpack_levels(records))
    # A tier's levels, and the one after them, begin by clocks of their own.
    assert records["begin_nanoseconds"].tolist() == [10, 20, 40, 50, 65, 72, 90]


def test_frontiers_nobody_counted_are_counted_by_their_distances() -> None:
    records = _records(OWN, 5, OWN, 0)
    records["frontier_size"][1::2] = [2, -1]  # the last one is at the depth limit
    distances = np.array([2, 1, 0, 1, -1, 2, 2, 3], np.int32)
    degrees = np.array([1, 2, 4, 8, 16, 32, 64, 128])
    count_frontiers(records, unpack_levels(records), distances, degrees)
    assert records["frontier_size"].tolist() == [1, 2, 3, 1]
    assert records["edges"].tolist() == [4, 5, 97, 0]


def _strip(width: int, length: int) -> Graph:
    """Of whose levels from vertex 0 nearly all have ``width`` vertices."""
    return read_graph(f"grid:{width}x{length}")


def _run_of(search: BFS, source: int) -> tuple[npt.NDArray[Any], list[tuple[int, int]]]:
    """The levels' records of a search as the device left them, and the runs of its tier's."""
    result = search.run(source)
    records = search.buffers["trace"].to_host(result.levels)
    return records, runs_of(unpack_levels(records))


def _is_in_order(search: BFS, records: npt.NDArray[Any], runs: list[tuple[int, int]]) -> bool:
    """Whether every level of a run begins after the one before, and within the run."""
    buffer = search.buffers["trace"]
    clocks = buffer.to_host(len(runs), start=buffer.count - len(runs)).view(layout.RUN_CLOCKS)
    for (first, end), clock in zip(runs, clocks[::-1], strict=True):
        begins = records["begin_nanoseconds"][first:end].astype(np.int64)
        times = [int(clock["begin_cycles"]), *begins.tolist(), int(clock["end_cycles"])]
        if any(later <= earlier for earlier, later in pairwise(times)):
            return False
    return True


# One warp for many levels; a block for many; both in turn; and levels of the grid between.
DEEP = {
    "path": (path(300), 0, 256),
    "strip": (_strip(12, 150), 0, 256),
    "maze": (read_graph("maze:30x30"), 0, 256),
    "wide in the middle": (read_graph("grid:24x24"), 0, 16),
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("block_threads", [32, 96])
@pytest.mark.parametrize("loop", WITH_TIER)
def test_every_level_of_a_tier_is_kept_when_it_begins(
    loop: str, block_threads: int, name: str
) -> None:
    graph, source, slots = DEEP[name]
    if loop.endswith("cluster"):
        slots //= 4  # of each of its blocks
    options = Options(tier_slots=slots)
    with BFS(
        graph, **how(loop), device="emulated", trace=True, block_threads=block_threads,
        options=options,
    ) as search:  # fmt: skip
        for start in (source, graph.vertices // 2, source):
            records, runs = _run_of(search, start)
            assert _is_in_order(search, records, runs)
            if name == "wide in the middle":
                assert len(runs) > 1
            else:
                assert runs == [(0, len(records))]
            result = search.run(start)
            sizes = np.bincount(bfs_reference(graph, start).distances)
            assert result.frontier_sizes == sizes.tolist()
            mappings = [row.mapping for row in result.trace or ()]
            if loop.endswith("block") and name != "wide in the middle":
                # No row is long: a slot a vertex, of which one warp takes eight.
                assert mappings == ["one warp" if size <= 8 else "one block" for size in sizes]
                assert name == "path" or {"one warp", "one block"} == set(mappings)


SEEDED = [
    ("persistent+block", "path"),
    ("persistent+block", "strip"),
    ("persistent+cluster", "path"),
]


@pytest.mark.parametrize(("loop", "name"), SEEDED)
def test_a_clock_that_stands_is_noticed(
    loop: str, name: str, seed_fault: Callable[[str, str, str], None]
) -> None:
    seed_fault("platform.cuh", "static_cast<unsigned>(simt::ticks())", "7u")
    graph, source, slots = DEEP[name]
    options = Options(tier_slots=slots)
    with BFS(graph, **how(loop), device="emulated", trace=True, options=options) as search:
        records, runs = _run_of(search, source)
        assert runs == [(0, len(records))]
        assert not _is_in_order(search, records, runs)


@pytest.mark.parametrize(("loop", "name"), SEEDED)
def test_a_level_kept_over_another_one_is_noticed(
    loop: str, name: str, seed_fault: Callable[[str, str, str], None]
) -> None:
    seed_fault("tier_trace.cuh", "trace[level].begin", "trace[level & 63].begin")
    graph, source, slots = DEEP[name]
    options = Options(tier_slots=slots)
    traced = {"device": "emulated", "trace": True, "options": options}
    # What a level's record held before is no mapping.
    with BFS(graph, **how(loop), **traced) as search, pytest.raises(IndexError):
        search.run(source)


# Levels of one vertex and of two in turn, these with three slots, which is one too many: as many
# levels and runs as a graph of its size can have.
@pytest.mark.parametrize("loop", WITH_TIER)
def test_records_and_clocks_have_room_in_one_buffer(loop: str) -> None:
    rows: list[list[int]] = []
    for v in range(0, 90, 3):
        rows += [[v + 1, v + 2], [v + 3] * 5, [v + 3]]
    rows.append([])
    graph = Graph.from_arrays(np.cumsum([0, *map(len, rows)]), np.concatenate(rows).astype(int))
    options = Options(tier_slots=2)
    with BFS(graph, **how(loop), device="emulated", trace=True, options=options) as search:
        for _ in range(2):
            result = search.run(0)
            np.testing.assert_array_equal(result.distances, bfs_reference(graph, 0).distances)
            assert result.frontier_sizes == [1, 2] * 30 + [1]
            assert [row.edges for row in result.trace or ()] == [2, 6] * 30 + [0]
            records, runs = _run_of(search, 0)
            assert _is_in_order(search, records, runs)
            assert len(records) + len(runs) == graph.vertices + 1


@pytest.mark.cuda
@pytest.mark.parametrize("loop", WITH_TIER)
@pytest.mark.parametrize("spec", ["path:3000", "grid:100x100", "maze:100x100", "kron:12"])
def test_levels_follow_each_other_on_the_devices_clock(loop: str, spec: str) -> None:
    graph = read_graph(spec)
    source = int(np.argmax(graph.degrees))
    with BFS(graph, **how(loop), device="cuda", trace=True) as search:
        for _ in range(3):
            result = search.run(source)
            assert result.trace is not None
            assert result.device_ms is not None
            begins = [row.begin_ns for row in result.trace]
            ends = [(row.begin_ns or 0) + (row.ns or 0) for row in result.trace]
            assert begins[0] == 0
            assert all(b is not None and e > b for b, e in zip(begins, ends, strict=True))
            assert all(end <= (begin or 0) for end, begin in zip(ends, begins[1:], strict=False))
            assert 0.2 * result.device_ms < ends[-1] / 1e6 < result.device_ms

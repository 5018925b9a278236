"""The scan appends: every arc's slot, the filter that compacts, and the padded form without it."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt
import pytest
from graphs import FRONTIER_MODEL, SMALL, SmallGraph, directed
from loops import how

from persistent_bfs import BFS, Graph, Options, read_graph
from persistent_bfs.compiler import source_folder
from persistent_bfs.config import ADVANCES, APPENDS, ENGINES, Config, conflict
from persistent_bfs.device.base import Device, DeviceError, RepeatedDiscovery
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem
from persistent_bfs.layout import SLOT_PARTS
from persistent_bfs.measure import find_problem
from persistent_bfs.reference import bfs_reference

SCANS = [name for name, row in APPENDS.items() if row.phases > 1]
MAPPINGS = [name for name in ADVANCES if conflict("push", name, "scan") is None]

needs_emulation = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)


def _session(
    graph: Graph, device: Device, append: str, *, engine: str = "persistent", **more: object
) -> BFS:
    fields = {
        **how(engine),
        "advance": "thread",
        "predecessors": True,
        "trace": True,
        "block_threads": 64,
        **more,
    }
    return BFS(graph, device=device, append=append, **fields)  # type: ignore[arg-type]


def _buffer(search: BFS, name: str) -> list[int]:
    return search.buffers[name].to_host().tolist()


def _frontiers(search: BFS, graph: Graph, levels: int, *, padded: bool) -> list[list[int]]:
    """The frontiers as the queue holds them."""
    queue, begin, frontiers = _buffer(search, "queue"), 0, []
    size, distances = 1, search.buffers["distances"].to_host()
    for level in range(levels):
        frontiers.append(queue[begin : begin + size])
        begin += size
        size = sum(_degrees(graph, frontiers[-1])) if padded else (distances == level + 1).sum()
    return frontiers


def _degrees(graph: Graph, frontier: list[int]) -> list[int]:
    return [0 if v < 0 else int(graph.degrees[v]) for v in frontier]


def _arcs(graph: Graph, frontier: list[int]) -> list[tuple[int, int]]:
    """The frontier's arcs, each at its place."""
    offsets, indices = graph.row_offsets, graph.col_indices
    return [
        (v, int(far))
        for v in frontier
        if v >= 0
        for far in indices[int(offsets[v]) : int(offsets[v + 1])]
    ]


def _check_slots(
    search: BFS,
    graph: Graph,
    frontiers: list[list[int]],
    predecessors: npt.NDArray[np.int32],
    *,
    padded: bool,
) -> None:
    """Every discovery must be at the place of the arc from its predecessor, in the arcs' order.

    And beside each frontier the scan of its degrees.
    """
    edge_begin = [list(accumulate(_degrees(graph, each)[:-1], initial=0)) for each in frontiers]
    scanned = [first for each in edge_begin for first in each]
    assert _buffer(search, "edge_begin")[: len(scanned)] == scanned
    for frontier, found in pairwise(frontiers):
        arcs = _arcs(graph, frontier)
        if padded:
            assert len(found) == len(arcs)
            for (source, far), slot in zip(arcs, found, strict=True):
                assert slot in (-1, far)
                assert slot == -1 or predecessors[far] == source
        else:
            places = [arcs.index((int(predecessors[v]), v)) for v in found]
            assert places == sorted(places)


# The 6-vertex graph: level 1 is {1, 2}, its arcs 1->2, 1->3, 2->3, 2->4. Whichever of the two
# claims vertex 3 has it at its own place.
LEVEL_1_SLOTS = {(-1, 3, -1, 4), (-1, -1, 3, 4)}


def _slots_of_level_1(device: Device, append: str, advance: str) -> tuple[int, ...]:
    with _session(FRONTIER_MODEL, device, append, advance=advance, block_threads=32) as search:
        result = search.run(0, max_depth=2)
        assert result.enqueued == 5
        assert result.frontier_sizes == [1, 2, 2]
        queue, edge_begin = _buffer(search, "queue"), _buffer(search, "edge_begin")
        assert queue[:3] == [0, 1, 2]
        assert edge_begin[:3] == [0, 0, 2]
        if append == "scan":
            assert queue[3:5] == [3, 4]
            assert edge_begin[3:5] == [0, 2]
            slots = _buffer(search, "part_sums")[2 * SLOT_PARTS :][:4]
        else:
            slots = queue[3:7]
            assert edge_begin[3:7] == ([0, 0, 2, 2] if slots[1] == 3 else [0, 0, 0, 2])
        assert result.predecessors[3] == (1 if slots[1] == 3 else 2)
        return tuple(slots)


@pytest.mark.parametrize("append", SCANS)
@pytest.mark.parametrize("advance", MAPPINGS)
def test_every_arc_of_level_1_has_its_slot(device: Device, append: str, advance: str) -> None:
    assert _slots_of_level_1(device, append, advance) in LEVEL_1_SLOTS


@needs_emulation
@pytest.mark.parametrize("append", SCANS)
def test_over_schedules_both_claimants_leave_the_vertex_in_their_own_slot(append: str) -> None:
    seen = set()
    for seed in range(40):
        with EmulatedDevice(schedule="adversarial", seed=seed) as device:
            seen.add(_slots_of_level_1(device, append, "warp"))
    assert seen == LEVEL_1_SLOTS


def test_the_whole_padded_queue_of_the_6_vertex_graph(device: Device) -> None:
    with _session(FRONTIER_MODEL, device, "scan_padded") as search:
        result = search.run(0)
        assert result.frontier_sizes == [1, 2, 2, 1]
        assert result.trace is not None
        assert [row.edges for row in result.trace] == [2, 4, 3, 0]
        queue = _buffer(search, "queue")
    assert queue[:3] == [0, 1, 2]
    assert tuple(queue[3:7]) in LEVEL_1_SLOTS
    # The arcs of level 2: 3->4, 3->5, 4->5.
    assert queue[7:10] in ([-1, 5, -1], [-1, -1, 5])


@pytest.mark.parametrize("append", SCANS)
@pytest.mark.parametrize("advance", MAPPINGS)
@pytest.mark.parametrize("engine", ENGINES)
def test_small_graphs_are_answered_exactly(
    device: Device, engine: str, advance: str, append: str
) -> None:
    for small in SMALL:
        with _session(small.graph, device, append, engine=engine, advance=advance) as search:
            result = search.run(small.source)
            assert find_problem(small.graph, result) is None, small
            assert result.distances.tolist() == small.distances
            levels = range(max(small.distances) + 1)
            assert result.frontier_sizes == [small.distances.count(level) for level in levels]
            assert result.trace is not None
            degrees, distances = small.graph.degrees, np.array(small.distances)
            for row in result.trace:
                assert row.edges == degrees[distances == row.level].sum(), small


def _empty_rows() -> SmallGraph:
    """A hub of 45, most of whose vertices have no arcs: 95 vertices, padded slots between."""
    rows = [(0, v) for v in range(1, 46)]
    rows += [(v, far) for v in (1, 17, 33, 45) for far in (2, 46 + v, 46 + v, v)]
    distances = [0] + [1] * 45 + [2 if v - 46 in (1, 17, 33, 45) else -1 for v in range(46, 95)]
    return SmallGraph("empty rows", directed(95, *rows), 0, distances)


@pytest.mark.parametrize("append", SCANS)
@pytest.mark.parametrize("advance", MAPPINGS)
@pytest.mark.parametrize("blocks", [1, 3])
def test_slots_are_the_arcs_places(device: Device, append: str, advance: str, blocks: int) -> None:
    padded = APPENDS[append].padded
    empty_rows = _empty_rows()
    options = Options(blocks=blocks)
    for graph, source in ((empty_rows.graph, 0), (read_graph("kron:7:8"), 1)):
        with _session(graph, device, append, advance=advance, options=options) as search:
            result = search.run(source)
            assert find_problem(graph, result) is None
            if graph is empty_rows.graph:
                assert result.distances.tolist() == empty_rows.distances
            frontiers = _frontiers(search, graph, result.levels, padded=padded)
            for level, frontier in enumerate(frontiers):
                members = np.flatnonzero(result.distances == level).tolist()
                assert sorted(v for v in frontier if v >= 0) == members
            _check_slots(search, graph, frontiers, result.predecessors, padded=padded)


@needs_emulation
@pytest.mark.parametrize("append", SCANS)
@pytest.mark.parametrize("schedule", ["roundrobin", "random", "adversarial"])
def test_slots_are_the_arcs_places_under_any_schedule(append: str, schedule: str) -> None:
    padded, graph = APPENDS[append].padded, read_graph("kron:5:6")
    source = int(np.argmax(graph.degrees))
    for seed in range(8):
        for advance in ("edge", "bucketed"):
            with (
                EmulatedDevice(schedule=schedule, seed=seed) as device,
                _session(graph, device, append, advance=advance, block_threads=32) as search,
            ):
                result = search.run(source)
                assert find_problem(graph, result) is None
                frontiers = _frontiers(search, graph, result.levels, padded=padded)
                _check_slots(search, graph, frontiers, result.predecessors, padded=padded)


@pytest.mark.parametrize("engine", ENGINES)
def test_padded_and_compacted_frontiers_have_the_same_vertices(device: Device, engine: str) -> None:
    graph, found = read_graph("random:333:999"), {}
    for append in SCANS:
        with _session(graph, device, append, engine=engine) as search:
            result = search.run(5)
            frontiers = _frontiers(search, graph, result.levels, padded=append == "scan_padded")
            found[append] = [sorted(v for v in frontier if v >= 0) for frontier in frontiers]
    assert found["scan"] == found["scan_padded"]
    distances = bfs_reference(graph, 5).distances
    levels = range(distances.max() + 1)
    assert found["scan"] == [np.flatnonzero(distances == level).tolist() for level in levels]


# A star from a leaf: one arc, then 2,999 slots of which one is empty, then 2,998 empty ones. A
# single warp goes through its part in 12 rounds; 96 warps have a part each and add up to 94 sums.
@pytest.mark.parametrize("append", SCANS)
@pytest.mark.parametrize(("blocks", "block_threads"), [(1, 32), (3, 1024)])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_star_takes_every_slot_but_one(
    device: Device, engine: str, append: str, blocks: int, block_threads: int
) -> None:
    graph, options = read_graph("star:3000"), Options(blocks=blocks)
    with _session(
        graph, device, append, engine=engine, advance="warp", block_threads=block_threads,
        options=options,
    ) as search:  # fmt: skip
        result = search.run(2999)
        assert find_problem(graph, result) is None
        assert result.frontier_sizes == [1, 1, 2998]
        queue = _buffer(search, "queue")
    if append == "scan":
        assert queue == [2999, 0, *range(1, 2999)]
    else:
        assert queue == [2999, 0, *range(1, 2999), -1, *[-1] * 2998]


def test_more_slots_than_the_largest_number_of_parts_holds_in_one_round(device: Device) -> None:
    # 65 blocks of 32 warps are more than there are parts, and 70,000 slots more than 32 a part.
    options = Options(blocks=65, levels_per_launch=2)
    graph = read_graph("star:70001")
    for append in SCANS:
        with _session(
            graph, device, append, engine="host_batched", advance="edge", block_threads=1024,
            options=options,
        ) as search:  # fmt: skip
            result = search.run(0)
            assert result.frontier_sizes == [1, 70_000]
            assert _buffer(search, "queue")[:70_001] == list(range(70_001))
            assert _buffer(search, "edge_begin")[1:70_001] == list(range(70_000))


@pytest.mark.parametrize("append", SCANS)
@pytest.mark.parametrize("advance", MAPPINGS)
def test_64_bit_offsets(device: Device, append: str, advance: str) -> None:
    graph = read_graph("random:300:900").with_offsets(64)
    with _session(graph, device, append, advance=advance) as search:
        for source in (7, 299, 7):
            assert find_problem(graph, search.run(source)) is None


@pytest.mark.parametrize("append", SCANS)
@pytest.mark.parametrize("max_depth", [0, 1, 2, 11, 12, 13])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_depth_limit_stops_where_it_says(
    device: Device, engine: str, max_depth: int, append: str
) -> None:
    graph = read_graph("grid:7x7")
    with _session(graph, device, append, engine=engine) as search:
        result = search.run(0, max_depth=max_depth)
        assert find_problem(graph, result, max_depth=max_depth) is None
        expected = bfs_reference(graph, 0, max_depth)
        assert result.distances.tolist() == expected.distances.tolist()
        assert result.frontier_sizes == expected.frontier_sizes.tolist()
        assert result.enqueued == expected.frontier_sizes.sum()


@pytest.mark.parametrize("append", SCANS)
@pytest.mark.parametrize("length", [1, 2, 33, 65])
def test_a_level_has_three_phases(device: Device, append: str, length: int) -> None:
    costs = {}
    for engine in ENGINES:
        with _session(read_graph(f"path:{length}"), device, append, engine=engine) as search:
            counters = search.run(0).counters
            costs[engine] = (counters.launches, counters.host_syncs, counters.barriers)
    looks = -(-length // 32)
    replays = -(-length // 64)
    assert costs == {
        "host_loop": (3 * length, length, 0),
        "host_batched": (1 + 3 * 32 * looks, looks, 0),
        "graph_unrolled": (1 + replays, replays, 0),
        "graph_while": (1, 1, 0),
        "persistent": (1, 1, 3 * length + 1),
    }


@needs_emulation
@pytest.mark.parametrize("append", SCANS)
def test_no_cursor_is_fought_over(append: str) -> None:
    graph = read_graph("star:200")
    atomics = {}
    for name in (append, "atomic"):
        with (
            EmulatedDevice() as device,
            _session(graph, device, name, advance="edge", trace=False) as search,
        ):
            atomics[name] = search.run(0).counters.device["atomics"]
    # A claim a leaf; then a reservation each and none, but for the one that says how many.
    assert atomics == {append: 199 + 1 + (append == "scan"), "atomic": 199 + 199}


@needs_emulation
@pytest.mark.parametrize("append", SCANS)
@pytest.mark.parametrize("advance", MAPPINGS)
@pytest.mark.parametrize("engine", ["persistent", "graph_while"])
def test_there_is_no_data_race(engine: str, advance: str, append: str) -> None:
    for graph in (FRONTIER_MODEL, read_graph("kron:6:6")):
        with (
            EmulatedDevice(check_races=True) as device,
            _session(graph, device, append, engine=engine, advance=advance) as search,
        ):
            search.run(0)
            assert [str(race) for race in device.races] == []


@needs_emulation
def test_the_naive_claim_leaves_its_vertex_in_two_slots() -> None:
    for append, frontier in (("scan", [3, 3, 4]), ("scan_padded", [-1, 3, 3, 4])):
        with (
            EmulatedDevice(schedule="adversarial", seed=0) as device,
            _session(
                FRONTIER_MODEL, device, append, claim="naive", predecessors=False, block_threads=32
            ) as search,
        ):
            result = search.run(0, max_depth=2)
            assert result.distances.tolist() == [0, 1, 1, 2, 2, -1]
            assert result.enqueued == 6
            assert _buffer(search, "queue")[3 : 3 + len(frontier)] == frontier


@needs_emulation
@pytest.mark.parametrize("append", SCANS)
@pytest.mark.parametrize("engine", ENGINES)
def test_more_duplicates_than_there_are_slots_end_in_an_error(engine: str, append: str) -> None:
    # Layers of 4, all joined to all: at the worst level 2 has 16 vertices, level 3 has 64.
    layers = [[0], *([*range(4 * i + 1, 4 * i + 5)] for i in range(4))]
    arcs = [(u, v) for a, b in pairwise(layers) for u in a for v in b]
    with (
        EmulatedDevice(schedule="adversarial", seed=0) as device,
        _session(
            directed(17, *arcs), device, append, engine=engine, claim="naive", predecessors=False,
            block_threads=32,
        ) as search,
        pytest.raises(RepeatedDiscovery, match=r"more than the queue's .* with a slot for each"),
    ):  # fmt: skip
        search.run(0)


@pytest.mark.parametrize("append", SCANS)
@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("direction", "pull", "pull goes by unvisited vertices; use direction push"),
        ("direction", "auto", "pull goes by unvisited vertices; use direction push"),
        ("advance", "topology", "topology does not go by it; use advance thread"),
        ("advance", "edge_list", "edge_list does not go by it; use advance thread"),
    ],
)
def test_what_has_no_frontier_order_is_refused(
    append: str, field: str, value: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=rf"{value}.* not combine with the {append} append.*") as e:
        Config("persistent", append=append, **{field: value})  # type: ignore[arg-type]
    assert reason in str(e.value)


@needs_emulation
def test_a_queue_that_cannot_be_counted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("persistent_bfs.engines.base.MAX_QUEUE", 360)
    with pytest.raises(DeviceError, match="a slot an arc, 360 at most, and the graph has 360 arcs"):
        BFS(read_graph("grid:10x10"), device="emulated", append="scan_padded")
    with BFS(read_graph("grid:10x10"), device="emulated", append="scan") as search:
        assert search.run(0).reached == 100


def test_the_number_of_parts_is_the_device_codes() -> None:
    text = (source_folder() / "slots.cuh").read_text()
    assert re.findall(r"SLOT_PARTS = (\d+);", text) == [str(SLOT_PARTS)]

"""The tiers: small rows and hubs, bits, slots that run out, and the grid before and after them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from graphs import directed, path, undirected
from loops import LOOPS, how, narrow_mappings

from persistent_bfs import BFS, BFSResult, Graph, Options, layout, read_graph
from persistent_bfs.device.base import Device, LaunchShape, LaunchTooLarge
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem
from persistent_bfs.measure import find_problem
from persistent_bfs.reference import bfs_reference
from persistent_bfs.tiers import slots_that_fit

WITH_TIER = [loop for loop in LOOPS if narrow_mappings(loop)]


def _session(graph: Graph, device: Device, loop: str, slots: int = 256, **more: object) -> BFS:
    fields = {
        **how(loop),
        "advance": "thread",
        "predecessors": True,
        "trace": True,
        "block_threads": 64,
        "options": Options(tier_slots=slots),
        **more,
    }
    return BFS(graph, device=device, **fields)  # type: ignore[arg-type]


def _check(
    graph: Graph,
    result: BFSResult,
    distances: npt.ArrayLike,
    *,
    max_depth: int | None = None,
) -> None:
    """Distances, a predecessor a vertex, and every number of the trace."""
    assert find_problem(graph, result, max_depth=max_depth) is None
    distances = np.asarray(distances)
    np.testing.assert_array_equal(result.distances, distances)
    assert result.trace is not None
    assert result.depth == distances.max()
    at_limit = result.depth == max_depth
    for row in result.trace:
        frontier = distances == row.level
        assert row.frontier == frontier.sum()
        if row.direction == "push":
            # The frontier at the limit is counted, not expanded.
            expanded = not at_limit or row.level < result.depth
            assert row.edges == (graph.degrees[frontier].sum() if expanded else 0)


def _mappings(result: BFSResult) -> list[str]:
    assert result.trace is not None
    return [row.mapping for row in result.trace]


@pytest.mark.parametrize("slots", [2, 8, 64, 1024])
@pytest.mark.parametrize("advance", ["thread", "auto"])
def test_the_block_tier_takes_and_leaves_by_the_frontier(
    device: Device, advance: str, slots: int
) -> None:
    for graph in (read_graph("maze:20x20"), read_graph("kron:8:8"), read_graph("star:500")):
        with _session(graph, device, "persistent+block", slots, advance=advance) as search:
            for source in (0, 17, 0):
                result = search.run(source)
                assert find_problem(graph, result) is None
                assert result.trace is not None
                needed = np.minimum(-(-graph.degrees // 4), 2).clip(1)
                alone, left = False, False
                for row in result.trace[:-1]:
                    # The tier keeps what has a slot, and takes half as many vertices as it has
                    # slots; what it leaves is the grid's for a level.
                    size = int(needed[result.distances == row.level].sum())
                    alone = size <= slots if alone else not left and row.frontier <= slots // 2
                    left = alone
                    assert (row.mapping in narrow_mappings("persistent+block")) == alone
                    left = not alone and left


@pytest.mark.parametrize("loop", WITH_TIER)
@pytest.mark.parametrize("slots", [2, 5, 64, 256])
def test_tiers_hand_over_and_back(device: Device, loop: str, slots: int) -> None:
    # Small rows, long rows, and hubs, each with a frontier that grows and shrinks again.
    for spec in ("grid:24x3", "road:16x16", "maze:24x24", "random:300:1200", "kron:8:8"):
        graph = read_graph(spec)
        with _session(graph, device, loop, slots) as search:
            for source in (0, graph.vertices // 2, 1):
                result = search.run(source)
                assert find_problem(graph, result) is None
                assert result.trace is not None
                degrees = graph.degrees
                for row in result.trace:
                    assert row.edges == degrees[result.distances == row.level].sum()
                if slots == 256 and graph.max_degree <= 4:
                    assert {row.mapping for row in result.trace} <= narrow_mappings(loop)
                    assert result.counters.barriers == 1


@pytest.mark.parametrize("loop", WITH_TIER)
def test_what_no_tier_combines_with_is_refused_or_left_to_the_grid(
    device: Device, loop: str
) -> None:
    graph = read_graph("path:9")
    for unfit in ({"claim": "naive"}, {"direction": "pull"}, {"append": "scan_padded"}):
        with pytest.raises(ValueError, match=r"does not combine with a tier.*use tiers none"):
            _session(graph, device, loop, **unfit)
        with _session(graph, device, loop, tiers="auto", **unfit) as search:
            assert search.config.tier == "none"


def test_more_vertices_than_a_block_has_bits_for_are_refused(device: Device) -> None:
    vertices = 8 * device.info.shared_bytes_per_block
    graph = read_graph(f"path:{vertices}")
    with pytest.raises(LaunchTooLarge, match=r"vertices need .* use another tier, or tiers none"):
        BFS(graph, tiers="block", device=device)
    with BFS(graph, tiers="block,cluster", device=device) as search:
        assert search.config.tier == ("cluster" if device.info.clusters > 1 else "none")


def test_what_a_kernel_keeps_itself_leaves_a_tier_fewer_slots(device: Device) -> None:
    limit = device.info.shared_bytes_per_block
    vertices = 8 * (limit - 1500 * layout.SLOT_BYTES)
    most = slots_that_fit("block", vertices, 1, device.info, 0)
    assert most < 1500  # so many slots less the counters
    assert slots_that_fit("block", vertices, 1, device.info, 10 * layout.SLOT_BYTES) == most - 10
    # All that there is, to the last slot.
    with BFS(read_graph(f"path:{vertices}"), tiers="block", device=device) as search:
        result = search.run(vertices // 2, max_depth=3)
        assert (result.depth, result.reached) == (3, 7)


# A path of 12 vertices whose sixth has leaves, so many that its degree is the one asked for.
LENGTH, MIDDLE = 12, 5


def _path_with_hub(degree: int) -> Graph:
    leaves = range(LENGTH, LENGTH + degree - 2)
    return undirected(
        LENGTH + degree - 2,
        *((v, v + 1) for v in range(LENGTH - 1)),
        *((MIDDLE, leaf) for leaf in leaves),
    )


# Rows of one slot, of two, and of two with the rest in the CSR arrays.
@pytest.mark.parametrize(("degree", "row_slots"), [(4, 1), (5, 2), (8, 2), (9, 3), (3002, 3)])
@pytest.mark.parametrize("loop", WITH_TIER)
def test_rows_of_every_length(device: Device, loop: str, degree: int, row_slots: int) -> None:
    graph = _path_with_hub(degree)
    assert graph.max_degree == degree
    leaves = degree - 2
    with _session(graph, device, loop, slots=4096) as search:
        assert search.config.row_slots == row_slots
        from_end = [*range(LENGTH), *[MIDDLE + 1] * leaves]
        _check(graph, search.run(0), from_end)
        along = [abs(v - MIDDLE) for v in range(LENGTH)]
        _check(graph, search.run(MIDDLE), [*along, *[1] * leaves])
        from_leaf = [*(1 + distance for distance in along), 0, *[2] * (leaves - 1)]
        result = search.run(LENGTH)
        _check(graph, result, from_leaf)
        assert set(_mappings(result)) <= narrow_mappings(loop)
        assert result.counters.barriers == 1


@pytest.mark.parametrize("loop", WITH_TIER)
@pytest.mark.parametrize("repeats", [1, 3, 4, 8, 40])
def test_repeated_arcs_and_self_loops_are_arcs_like_others(
    device: Device, loop: str, repeats: int
) -> None:
    # 0 -> 1 -> 2 -> ... -> 9, each arc so often, each vertex with a loop first, and one arc back.
    rows = [[v, *[v + 1] * repeats] for v in range(9)] + [[9, 0]]
    graph = Graph.from_arrays(np.cumsum([0, *map(len, rows)]), np.concatenate(rows))
    assert graph.max_degree == repeats + 1
    with _session(graph, device, loop) as search:
        result = search.run(0)
        _check(graph, result, range(10))
        assert result.enqueued == 10
        assert result.predecessors.tolist() == [-1, *range(9)]
        _check(graph, search.run(4), [6, 7, 8, 9, 0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize("loop", WITH_TIER)
@pytest.mark.parametrize("vertices", [1, 31, 32, 33, 64, 65, 1025])
def test_the_last_word_of_bits_may_be_half_full(device: Device, loop: str, vertices: int) -> None:
    graph = path(vertices)
    with _session(graph, device, loop, slots=2) as search:
        _check(graph, search.run(0), range(vertices))
        _check(graph, search.run(vertices - 1), range(vertices - 1, -1, -1))


@pytest.mark.parametrize("loop", WITH_TIER)
def test_what_one_search_visited_is_unvisited_for_the_next(device: Device, loop: str) -> None:
    # A path 0 to 39, and a cycle of 41 with a tail out of it.
    cycle = [*range(40, 81)]
    arcs = [(v, v + 1) for v in range(39)] + list(zip(cycle, cycle[1:] + cycle[:1], strict=True))
    graph = directed(83, *arcs, (60, 81))
    on_path = [*range(40), *[-1] * 43]
    on_cycle = [*[-1] * 40, *range(41), 21, -1]
    with _session(graph, device, loop, slots=4) as search:
        for source, distances in ((0, on_path), (40, on_cycle), (0, on_path)):
            _check(graph, search.run(source), distances)
        nowhere = search.run(82)
        _check(graph, nowhere, [*[-1] * 82, 0])
        assert nowhere.depth == 0


# A hub with 300 leaves, a path of 10 from the last of them, and 300 more leaves at its end.
STAR_AND_BACK = undirected(
    611,
    *((0, leaf) for leaf in range(1, 301)),
    *((v, v + 1) for v in range(300, 310)),
    *((310, leaf) for leaf in range(311, 611)),
)
FROM_HUB = [0, *[1] * 299, *range(1, 12), *[12] * 300]


@pytest.mark.parametrize("loop", WITH_TIER)
@pytest.mark.parametrize("slots", [16, 256])
def test_a_frontier_that_overflows_is_collected_by_the_grid_and_the_tier_comes_back(
    device: Device, loop: str, slots: int
) -> None:
    with _session(STAR_AND_BACK, device, loop, slots) as search:
        # 300 leaves have no room in one block, where they are discovered.
        result = search.run(0)
        _check(STAR_AND_BACK, result, FROM_HUB)
        by_grid = [row.level for row in result.trace or () if row.mapping == "thread"]
        assert by_grid == [1, 12]
        # After the reset, the wide levels, and each collection of one.
        assert result.counters.barriers == 1 + 2 + 2


@pytest.mark.parametrize("loop", WITH_TIER)
@pytest.mark.parametrize("max_depth", [0, 1, 2, 3, 6, 11, 12, 13])
def test_a_depth_limit_in_a_tiers_run_and_at_its_edges(
    device: Device, loop: str, max_depth: int
) -> None:
    expected = np.array(FROM_HUB)
    expected[expected > max_depth] = -1
    with _session(STAR_AND_BACK, device, loop, 16) as search:
        for _ in range(2):
            result = search.run(0, max_depth=max_depth)
            _check(STAR_AND_BACK, result, expected, max_depth=max_depth)
        _check(STAR_AND_BACK, search.run(0), FROM_HUB)


@pytest.mark.skipif(emulated_problem() is not None, reason="no emulated device")
@pytest.mark.parametrize("blocks", [2, 4, 8, 16])
def test_the_cluster_is_as_large_as_the_device_holds(blocks: int) -> None:
    # A tree whose levels all come from one block at first, so that some are dealt out anew.
    tree = undirected(255, *(((v - 1) // 2, v) for v in range(1, 255)))
    cases = [
        (tree, 0, [int(np.log2(v + 1)) for v in range(255)]),
        (path(1025), 1000, [abs(v - 1000) for v in range(1025)]),
        (STAR_AND_BACK, 0, FROM_HUB),
    ]
    for graph, source, distances in cases:
        with (
            EmulatedDevice(multiprocessors=blocks, blocks_per_multiprocessor=1) as device,
            _session(graph, device, "persistent+cluster", 64, block_threads=32) as search,
        ):
            assert search.shape == str(LaunchShape(blocks, 32, cluster=blocks))
            _check(graph, search.run(source), distances)


@pytest.mark.parametrize("loop", WITH_TIER)
def test_bits_are_told_again_after_levels_that_pulled(device: Device, loop: str) -> None:
    # Wide enough to pull in the middle; a path before and behind it.
    kron = read_graph("kron:10:16")
    start = int(np.argmax(kron.degrees))
    sources, targets = kron.arc_sources(), kron.col_indices
    n = kron.vertices
    ahead, behind = [*range(n, n + 20)], [*range(n + 20, n + 40)]
    last = int(np.flatnonzero(bfs_reference(kron, start).distances == 2)[0])
    chain = [(ahead[i], ahead[i + 1]) for i in range(19)] + [(ahead[-1], start), (last, behind[0])]
    chain += [(behind[i], behind[i + 1]) for i in range(19)]
    graph = undirected(
        n + 40, *((u, v) for u, v in zip(sources, targets, strict=True) if u < v), *chain
    )
    # Few threads, which need few arcs to pull.
    blocks = 16 if device.info.kind == "cuda" else None  # a cluster, no more
    options = Options(tier_slots=16, blocks=blocks)
    with _session(graph, device, loop, direction="auto", options=options) as search:
        result = search.run(ahead[0])
        _check(graph, result, bfs_reference(graph, ahead[0]).distances)
        assert result.distances[behind[-1]] == 20 + 2 + 20
        directions = [row.direction for row in result.trace or ()]
        narrow = [mapping in narrow_mappings(loop) for mapping in _mappings(result)]
        assert "pull" in directions
        assert narrow[0]
        assert narrow[-1]

"""Every engine with every mapping, on every kernel device, against answers known beforehand."""

from __future__ import annotations

import itertools
import os
import random
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from graphs import SMALL, SmallGraph
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loops import LOOPS, how, narrow_mappings

from persistent_bfs import BFS, Graph, Options, read_graph
from persistent_bfs.config import (
    ADVANCES,
    APPENDS,
    CLAIMS,
    DIRECTIONS,
    ENGINES,
    EXACT_CLAIMS,
    FRONTIERS,
    MOST_ROW_SLOTS,
    Config,
    conflict,
    tier_conflict,
)
from persistent_bfs.device.base import Device, DeviceError, RepeatedDiscovery
from persistent_bfs.measure import find_problem
from persistent_bfs.reference import bfs_reference

# A tier runs its levels without a mapping: two of them are enough beside it.
COMBINATIONS = [
    (loop, advance)
    for loop in LOOPS
    for advance in ADVANCES
    if not narrow_mappings(loop) or advance in ("thread", "auto")
]


KRONECKER = read_graph("kron:7:8")
DIRECTED_HUBS = Graph.from_edges(
    np.concatenate([np.zeros(200, int), np.arange(1, 201), np.full(150, 7), [201, 350, 350]]),
    np.concatenate([np.arange(1, 201), np.full(200, 201), np.arange(202, 352), [0, 351, 352]]),
    directed=True,
    name="directed hubs",
)


@pytest.fixture(autouse=True)
def always_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the automatic mapping count edges even where every degree is small.

    And tiers be ready for rows of any length, which is one program instead of three: test_tiers.py
    has the others.
    """
    monkeypatch.setattr("persistent_bfs.plan.EVEN_DEGREE", -1)
    monkeypatch.setattr("persistent_bfs.plan.FEWEST_ROW_SLOTS", MOST_ROW_SLOTS)


def _session(graph: Graph, device: Device, engine: str, advance: str, **more: object) -> BFS:
    # A frontier of three slots leaves a tier, one vertex comes back: both on most graphs here.
    fields = {
        **how(engine),
        "predecessors": True,
        "trace": True,
        "block_threads": 64,
        "options": Options(tier_slots=2),
        **more,
    }
    return BFS(graph, advance=advance, device=device, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("small", SMALL, ids=lambda small: small.name)
@pytest.mark.parametrize(("engine", "advance"), COMBINATIONS)
def test_small_graphs_are_answered_exactly(
    device: Device, engine: str, advance: str, small: SmallGraph
) -> None:
    with _session(small.graph, device, engine, advance) as search:
        result = search.run(small.source)
        assert find_problem(small.graph, result) is None
        np.testing.assert_array_equal(result.distances, small.distances)
        depth = max(small.distances)
        assert result.depth == depth
        assert result.levels == depth + 1
        reached = sum(distance >= 0 for distance in small.distances)
        assert result.reached == result.enqueued == reached
        assert result.frontier_sizes == [
            list(small.distances).count(level) for level in range(depth + 1)
        ]
        assert result.trace is not None
        degrees = small.graph.degrees
        for row in result.trace:
            frontier = np.flatnonzero(np.array(small.distances) == row.level)
            assert row.edges == degrees[frontier].sum()
            chosen = {"warp", "thread", "edge"} if advance == "auto" else {advance}
            assert row.mapping in chosen | narrow_mappings(engine)
            assert row.direction == "push"


@pytest.mark.parametrize(("engine", "advance"), COMBINATIONS)
def test_64_bit_offsets_give_the_same_answers(device: Device, engine: str, advance: str) -> None:
    graph = read_graph("random:300:900").with_offsets(64)
    assert graph.row_offsets.dtype == np.int64
    with _session(graph, device, engine, advance) as search:
        assert find_problem(graph, search.run(7)) is None


FIELDS = ("engine", "advance", "direction", "claim", "append", "frontier")
Combination = tuple[str, ...]


def _legal_combinations() -> list[Combination]:
    tables = (LOOPS, ADVANCES, DIRECTIONS, sorted(EXACT_CLAIMS), APPENDS, FRONTIERS)
    return [
        combination for combination in itertools.product(*tables) if _conflict(combination) is None
    ]


def _conflict(combination: Combination) -> str | None:
    named = dict(zip(FIELDS, combination, strict=True))
    fields = ("direction", "advance", "append", "frontier")
    problem = conflict(**{field: named[field] for field in fields})
    if problem is None and narrow_mappings(named["engine"]):
        problem = tier_conflict(
            named["direction"], named["claim"], named["append"], named["frontier"]
        )
    return problem


def _covering(combinations: list[Combination]) -> list[Combination]:
    """A few of them in which every two choices that combine at all occur together."""
    # In another order, so that each row brings pairs of several tables.
    shuffled = random.Random(1).sample(combinations, len(combinations))
    seen: set[tuple[int, str, int, str]] = set()
    chosen = []
    for row in shuffled:
        pairs = {(i, row[i], j, row[j]) for i, j in itertools.combinations(range(len(row)), 2)}
        if not pairs <= seen:
            seen |= pairs
            chosen.append(row)
    return chosen


# All of them take an hour to compile on two cores; two choices at a time find most faults.
EVERY = "PERSISTENT_BFS_EVERY_COMBINATION"
COVERING = _covering(_legal_combinations())
TRIED = _legal_combinations() if os.environ.get(EVERY) else COVERING

# Every combination is in one shard of the k that PERSISTENT_BFS_SHARD=i/k counts from 1/k to k/k.
SHARD = "PERSISTENT_BFS_SHARD"


def _shard(combinations: list[Combination], named: str | None) -> list[Combination]:
    """Every k-th of them, from the i-th on, where ``named`` is i/k; all of them without a name."""
    if named is None:
        return combinations
    number, _, count = named.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"{SHARD} is {named!r}; it must be i/k, 1/k to k/k")
    return combinations[int(number) - 1 :: int(count)]


IN_SHARD = _shard(TRIED, os.environ.get(SHARD))


def _config(combination: Combination) -> Config:
    """What most sessions of a combination compile: tiers also depend on the graph's longest row."""
    named = dict(zip(FIELDS, combination, strict=True))
    loop = how(named.pop("engine"))
    return Config(
        engine=loop["engine"],
        tier=loop["tiers"],
        **named,
        predecessors=True,
        trace=True,
        block_threads=64,
    )


@pytest.fixture(scope="module")
def compilations(device: Device) -> Iterator[dict[Combination, Future[Path]]]:
    """Compile this shard on all cores, ahead of the tests, unless several processes share them."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        yield {}
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {
            combination: pool.submit(device.compile, _config(combination))
            for combination in IN_SHARD
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("combination", IN_SHARD, ids="-".join)
def test_combinations_of_engine_and_policies(
    device: Device, compilations: dict[Combination, Future[Path]], combination: Combination
) -> None:
    if combination in compilations:
        compilations[combination].result()
    how = dict(zip(FIELDS, combination, strict=True))
    engine, advance = how.pop("engine"), how.pop("advance")
    cases = [(small.graph, small.source) for small in SMALL]
    cases += [(graph, int(np.argmax(graph.degrees))) for graph in (KRONECKER, DIRECTED_HUBS)]
    for graph, source in cases:
        with _session(graph, device, engine, advance, **how) as search:
            assert find_problem(graph, search.run(source)) is None, graph.name


def test_every_two_choices_that_combine_are_tried_together() -> None:
    def pairs(rows: list[Combination]) -> set[tuple[int, str, int, str]]:
        places = list(itertools.combinations(range(len(FIELDS)), 2))
        return {(i, row[i], j, row[j]) for row in rows for i, j in places}

    assert pairs(TRIED) == pairs(COVERING) == pairs(_legal_combinations())


def test_shards_are_all_of_it_and_share_nothing() -> None:
    shards = [_shard(TRIED, f"{number}/7") for number in range(1, 8)]
    assert sorted(itertools.chain(*shards)) == sorted(TRIED)
    for name in ("0/3", "4/3", "2", "a/b", "/"):
        with pytest.raises(ValueError, match="it must be i/k"):
            _shard(TRIED, name)


@pytest.mark.parametrize("small", SMALL, ids=lambda small: small.name)
@pytest.mark.parametrize(
    ("engine", "direction"),
    [
        (loop, direction)
        for loop in LOOPS
        for direction in ("pull", "auto")
        if not narrow_mappings(loop) or tier_conflict(direction, "cas", "warp") is None
    ],
)
def test_directions_on_small_graphs(
    device: Device, engine: str, direction: str, small: SmallGraph
) -> None:
    with _session(small.graph, device, engine, "thread", direction=direction) as search:
        result = search.run(small.source)
        assert find_problem(small.graph, result) is None
        np.testing.assert_array_equal(result.distances, small.distances)


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("frontier", FRONTIERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_direction_turns_where_its_cost_does(
    device: Device, engine: str, frontier: str, blocks: int
) -> None:
    options = Options(blocks=blocks)
    how = {"direction": "auto", "frontier": frontier, "options": options, "block_threads": 96}
    graph = read_graph("kron:9:16")
    turns = set()
    for source in (int(np.argmax(graph.degrees)), int(np.flatnonzero(graph.degrees == 1)[0])):
        with _session(graph, device, engine, "edge", **how) as search:
            result = search.run(source)
            assert find_problem(graph, result) is None
        assert result.trace is not None
        directions = [row.direction for row in result.trace]
        expected = _directions(graph, result.distances, 96 * blocks, dense=frontier == "dense")
        assert directions == expected
        turns.update(itertools.pairwise(directions))
    assert ("push", "pull") in turns
    assert (("pull", "push") in turns) == (frontier == "sparse")


def _directions(
    graph: Graph, distances: npt.NDArray[np.int32], threads: int, *, dense: bool
) -> list[str]:
    """What ``cuda/direction/auto.cuh`` says of each level.

    Where frontiers are dense, pulled levels do not count the arcs of what they discover, but who
    is left to look for a parent.
    """
    degrees = graph.degrees.astype(np.int64)
    unexplored, unvisited, pulling, directions = graph.arcs, graph.vertices, False, []
    for level in range(int(distances.max()) + 1):
        frontier = np.flatnonzero(distances == level)
        edges = 0 if dense and pulling else int(degrees[frontier].sum())
        unexplored -= edges
        unvisited -= len(frontier)
        if pulling:
            left = np.count_nonzero(((distances < 0) | (distances > level)) & (degrees > 0))
            pulling = len(frontier) * 18 >= graph.vertices
            pulling |= dense and left // 4 <= len(frontier)
        else:
            over = edges - 4 * threads - graph.vertices / 8
            pulling = over > 0 and over * edges > 8 * unvisited * unexplored
        directions.append("pull" if pulling else "push")
    return directions


@pytest.mark.parametrize("engine", LOOPS)
def test_a_block_queue_that_is_full_spills_and_drops_nothing(device: Device, engine: str) -> None:
    for graph in (read_graph("star:3000"), read_graph("kron:7:8")):
        for advance in ("block", "edge"):
            with _session(graph, device, engine, advance, append="block", block_queue=32) as search:
                assert find_problem(graph, search.run(0)) is None


def test_the_naive_claim_runs_with_every_mapping_and_keeps_distances_right(device: Device) -> None:
    graph = read_graph("grid:12x12")
    expected = bfs_reference(graph, 0).distances
    for advance in ADVANCES:
        with _session(graph, device, "persistent", advance, claim="naive") as search:
            problem = None
            try:
                distances = search.run(0).distances
            except RepeatedDiscovery as error:
                problem = str(error)
            if problem is None:
                np.testing.assert_array_equal(distances, expected)
                continue
        # A GPU's threads race in earnest: each vertex found twice finds others twice, until the
        # frontiers outgrow their queue. That is what must be said, then.
        assert device.info.kind == "cuda"
        told = re.match(
            r"persistent: the naive claim put (\d+) vertices into frontiers, more than the queue's "
            r"(\d+)\b.*use the cas claim$",
            problem,
        )
        assert told is not None, problem
        assert int(told[1]) > int(told[2]) >= graph.vertices


def test_no_claim_is_untested() -> None:
    assert set(CLAIMS) == EXACT_CLAIMS | {"naive"}


@pytest.mark.parametrize("block_threads", [32, 96, 1024])
@pytest.mark.parametrize("engine", LOOPS)
def test_blocks_of_any_size(device: Device, engine: str, block_threads: int) -> None:
    graph = read_graph("grid:9x7")
    with _session(graph, device, engine, "thread", block_threads=block_threads) as search:
        assert find_problem(graph, search.run(31)) is None


@pytest.mark.parametrize("max_depth", [0, 1, 2, 3, 4, 11, 12, 99])
@pytest.mark.parametrize("engine", LOOPS)
def test_a_depth_limit_stops_where_it_says(device: Device, engine: str, max_depth: int) -> None:
    graph = read_graph("grid:7x7")
    with _session(graph, device, engine, "thread") as search:
        result = search.run(0, max_depth=max_depth)
        assert find_problem(graph, result, max_depth=max_depth) is None
        assert result.depth == min(max_depth, 12)
        expected = bfs_reference(graph, 0, max_depth)
        np.testing.assert_array_equal(result.distances, expected.distances)
        assert result.frontier_sizes == expected.frontier_sizes.tolist()
        # The frontier at the limit is counted, not expanded.
        assert result.trace is not None
        assert (result.trace[-1].edges == 0) == (max_depth <= 12)


@pytest.mark.parametrize("levels_per_launch", [1, 2, 3, 8])
@pytest.mark.parametrize("engine", ["host_batched", "graph_unrolled", "graph_while"])
@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 10])
def test_any_number_of_levels_a_launch(
    device: Device, engine: str, levels_per_launch: int, length: int
) -> None:
    graph = read_graph(f"path:{length}")
    options = Options(levels_per_launch=levels_per_launch)
    with _session(graph, device, engine, "thread", options=options) as search:
        result = search.run(0)
        assert find_problem(graph, result) is None
        assert result.levels == length


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 130])
def test_what_a_search_costs_in_launches_syncs_and_barriers(device: Device, length: int) -> None:
    graph = read_graph(f"path:{length}")
    costs = {}
    for engine in LOOPS:
        with _session(graph, device, engine, "thread") as search:
            counters = search.run(0).counters
            costs[engine] = (counters.launches, counters.host_syncs, counters.barriers)
    batches = -(-length // 32)
    replays = -(-length // 64)
    assert costs == {
        "host_loop": (length, length, 0),
        "host_batched": (1 + 32 * batches, batches, 0),
        "graph_unrolled": (1 + replays, replays, 0),
        "graph_while": (1, 1, 0),
        "persistent": (1, 1, length + 1),
        "persistent+block": (1, 1, 1),
        "persistent+cluster": (1, 1, 1),
    }


@pytest.mark.parametrize(("engine", "advance"), COMBINATIONS)
def test_a_session_serves_many_searches(device: Device, engine: str, advance: str) -> None:
    graph = read_graph("random:200:350")
    with _session(graph, device, engine, advance) as search:
        for source in (0, 199, 100, 0, 57):
            result = search.run(source)
            assert find_problem(graph, result) is None
            assert result.distances[source] == 0


@pytest.mark.parametrize("engine", LOOPS)
def test_one_block_is_enough_and_too_many_are_refused(device: Device, engine: str) -> None:
    graph = read_graph("star:200")
    if engine != "persistent+cluster":
        options = Options(blocks=1, tier_slots=2)
        with _session(graph, device, engine, "warp", options=options) as search:
            assert find_problem(graph, search.run(3)) is None
    engine_name = how(engine)["engine"]
    if ENGINES[engine_name].cooperative:
        with pytest.raises(
            DeviceError, match=rf"search_{engine_name}: .*1048576 blocks of 64 threads.* \d+ "
        ):
            _session(graph, device, engine, "warp", options=Options(blocks=2**20))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, int]:
    vertices = draw(st.integers(1, 90))
    ids = st.integers(0, vertices - 1)
    arcs = draw(st.lists(st.tuples(ids, ids), max_size=250))
    rows: list[list[int]] = [[] for _ in range(vertices)]
    for source, target in arcs:
        rows[source].append(target)
    offsets = np.cumsum([0, *map(len, rows)])
    indices = np.array([target for row in rows for target in row], np.int64)
    graph = Graph.from_arrays(offsets, indices)
    return graph, draw(ids)


# Directed, with duplicates, self-loops and unreachable vertices, as they come.
@pytest.mark.parametrize(("engine", "advance"), COMBINATIONS)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=graphs())
def test_random_directed_graphs(
    device: Device, engine: str, advance: str, case: tuple[Graph, int]
) -> None:
    graph, source = case
    with _session(graph, device, engine, advance) as search:
        assert find_problem(graph, search.run(source)) is None

"""Dense frontiers: what the bitmaps hold, what a level costs, and that seeded bugs are caught."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from graphs import FRONTIER_MODEL, REPEATS, SMALL, SmallGraph, directed, path

from persistent_bfs import BFS, Graph, read_graph
from persistent_bfs.compiler import source_folder
from persistent_bfs.config import ENGINES, FRONTIERS, conflict
from persistent_bfs.device.base import Device
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem
from persistent_bfs.engines.base import likely_parents
from persistent_bfs.layout import BITMAPS, bitmap_words
from persistent_bfs.measure import find_problem
from persistent_bfs.options import Options
from persistent_bfs.race import explore
from persistent_bfs.reference import bfs_reference

needs_emulation = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)

# Direction and mapping: pulled only, pushed and pulled, pushed by the bitmap.
WAYS = [("pull", "thread"), ("auto", "edge"), ("auto", "thread"), ("push", "topology")]

KRONECKER = read_graph("kron:9:16")
HUB = int(np.argmax(KRONECKER.degrees))

# Out of a hub into 120 vertices, from each of those to the same 20, from there into a chain: pulled
# where there are many arcs, then pushed. What else there is is out of reach.
FAN = Graph.from_edges(
    [
        *[0] * 120,
        *np.repeat(range(1, 121), 20),
        *range(121, 141),
        *range(141, 170),
        *range(180, 459),
    ],
    [*range(1, 121), *[*range(121, 141)] * 120, *[141] * 20, *range(142, 171), *range(181, 460)],
    directed=True,
    name="fan",
)

# Forty rows too long for a warp, more than a block puts by. From vertex 0 a leaf is found that is
# in each, the last of the first; until then nobody there is a parent. Another leaf has more arcs.
LONG_ROWS = Graph.from_edges(
    [0, 2140, 2141, *(hub for hub in range(2100, 2140) for _ in range(1100))],
    [1100, 781, 781, *(leaf for hub in range(40) for leaf in range(1 + 20 * hub, 1101 + 20 * hub))],
    vertices=2150,
    name="long rows",
)


def _session(graph: Graph, device: Device, way: tuple[str, str], **more: object) -> BFS:
    fields = {
        "engine": "persistent",
        "predecessors": True,
        "trace": True,
        "block_threads": 64,
        "frontier": "dense",
        "options": Options(blocks=2),  # few threads need few arcs to pull
        **more,
    }
    return BFS(  # type: ignore[arg-type]
        graph, device=device, direction=way[0], advance=way[1], **fields
    )


def _bitmaps(search: BFS) -> list[npt.NDArray[np.bool_]]:
    """The bitmaps, a truth value a bit: three that rotate, and who is left unvisited."""
    words = search.buffers["bitmaps"].to_host().view(np.uint8)
    bits = np.unpackbits(words, bitorder="little").astype(bool)
    return np.split(bits, BITMAPS)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_bitmap_is_its_frontier_and_the_next_one_is_clear(
    device: Device, engine: str, way: tuple[str, str]
) -> None:
    for graph, source in ((FAN, 0), (KRONECKER, HUB), (read_graph("grid:7x10"), 3), (path(5), 2)):
        expected = bfs_reference(graph, source).distances
        with _session(graph, device, way, engine=engine) as search:
            for limit in range(int(expected.max()) + 1):
                # The frontier at the limit has been found and not expanded.
                assert search.run(source, max_depth=limit).depth == limit
                members = np.zeros(1024 * -(-graph.vertices // 1024), bool)
                members[np.flatnonzero(expected == limit)] = True
                bitmaps = _bitmaps(search)
                assert [bits.size for bits in bitmaps] == [members.size] * BITMAPS
                # They rotate by levels.
                np.testing.assert_array_equal(bitmaps[limit % 3], members)
                assert not bitmaps[(limit + 1) % 3].any()


def test_a_bitmap_takes_whole_cache_lines() -> None:
    assert [bitmap_words(n) for n in (1, 32, 1024, 1025, 2**31 - 1)] == [32, 32, 32, 64, 2**26]


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_session_finds_clear_bitmaps_at_every_search(
    device: Device, engine: str, way: tuple[str, str]
) -> None:
    for graph, starts in ((KRONECKER, (HUB, 0, 300, HUB)), (FAN, (0, 70, 99, 0))):
        with _session(graph, device, way, engine=engine) as search:
            for source in starts:
                for limit in (None, 2, None):
                    result = search.run(source, max_depth=limit)
                    assert find_problem(graph, result, max_depth=limit) is None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_level_that_pushes_after_a_pull_goes_by_the_bitmap(device: Device, engine: str) -> None:
    with _session(FAN, device, ("auto", "edge"), engine=engine) as search:
        result = search.run(0)
        assert find_problem(FAN, result) is None
        assert result.trace is not None
        turns = [(row.frontier, row.direction) for row in result.trace]
        # 18 times 20 vertices are fewer than all 460, and 309 more look for a parent.
        assert turns == [(1, "push"), (120, "pull"), (20, "push"), *[(1, "push")] * 30]
        by_bitmap = [row.level for row in result.trace if row.mapping == "topology"]
        assert by_bitmap == [2]
        # From there on the discoveries are in the queue again.
        rest = {row.mapping for row in result.trace[3:]}
        assert rest == {"edge"}
        assert [row.edges for row in result.trace[2:]] == [20] + [1] * 29 + [0]


@pytest.mark.parametrize("frontier", FRONTIERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_too_long_for_a_warp_are_gone_along_to_their_ends(
    device: Device, engine: str, frontier: str
) -> None:
    with _session(
        LONG_ROWS, device, ("pull", "thread"), engine=engine, frontier=frontier
    ) as search:
        for source, sizes in (
            (0, [1, 1, 40, 1879, 2]),
            (1300, None),
            (2149, [1]),
        ):
            result = search.run(source)
            assert find_problem(LONG_ROWS, result) is None
            assert sizes is None or [row.frontier for row in result.trace or ()] == sizes


def test_a_likely_parent_has_the_most_arcs() -> None:
    # 3 and 4 have as many arcs, and 3 comes first; nothing leads to 0, 1 and 5.
    graph = directed(6, (0, 2), (1, 2), (3, 2), (4, 2), (3, 4), (4, 3), (1, 4), (5, 3))
    assert graph.degrees.tolist() == [1, 2, 0, 2, 2, 1]
    assert likely_parents(graph).tolist() == [-1, -1, 1, 4, 1, -1]
    star = read_graph("star:40")
    assert likely_parents(star).tolist() == [1, *[0] * 39]
    assert likely_parents(Graph.from_edges([], [], vertices=3)).tolist() == [-1] * 3


def test_likely_parents_do_not_depend_on_how_many_arcs_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = likely_parents(KRONECKER)
    for v in range(0, KRONECKER.vertices, 7):
        row = KRONECKER.col_indices[KRONECKER.row_offsets[v] : KRONECKER.row_offsets[v + 1]]
        most = max((int(KRONECKER.degrees[u]) for u in row), default=0)
        assert int(whole[v]) == next((u for u in row if KRONECKER.degrees[u] == most), -1)
    for arcs in (1, 7, 1000):
        monkeypatch.setattr("persistent_bfs.engines.base.LIKELY_ARCS", arcs)
        np.testing.assert_array_equal(likely_parents(KRONECKER), whole)


@needs_emulation
def test_a_conversion_takes_no_barrier() -> None:
    for graph, source in ((KRONECKER, HUB), (FAN, 0)):
        with (
            EmulatedDevice() as device,
            _session(graph, device, ("auto", "thread")) as search,
        ):
            result = search.run(source)
            assert result.trace is not None
            assert {row.direction for row in result.trace} == {"push", "pull"}
            assert result.counters.barriers == result.levels + 1


@needs_emulation
def test_a_pulled_level_takes_two_atomics_a_block() -> None:
    graph = read_graph("star:2000")  # whoever has an arc has a lucky parent
    atomics = {}
    for frontier in ("sparse", "dense"):
        with (
            EmulatedDevice() as device,
            _session(graph, device, ("pull", "thread"), frontier=frontier, trace=False) as search,
        ):
            for source, levels in ((0, 2), (1, 3)):
                result = search.run(source)
                assert result.levels == levels
                atomics[frontier, source] = result.counters.device["atomics"]
    # From the hub: both blocks find leaves, and nobody is left.
    assert atomics["dense", 0] == 2
    # From a leaf: one finds the hub, both have others left; both find those.
    assert atomics["dense", 1] == 1 + 2 + 2
    assert atomics["sparse", 0] > 10
    assert atomics["sparse", 1] > 10


@needs_emulation
@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("engine", ENGINES)
def test_there_is_no_data_race(engine: str, way: tuple[str, str]) -> None:
    for graph, source in ((FRONTIER_MODEL, 0), (REPEATS, 0), (FAN, 0), (read_graph("kron:6:6"), 1)):
        with (
            EmulatedDevice(check_races=True) as device,
            _session(graph, device, way, engine=engine) as search,
        ):
            assert find_problem(graph, search.run(source)) is None
            assert find_problem(graph, search.run(source)) is None
            assert [str(race) for race in device.races] == []


@needs_emulation
@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("engine", ENGINES)
def test_no_schedule_loses_a_bit(engine: str, way: tuple[str, str]) -> None:
    for seed in range(3):
        with EmulatedDevice(schedule="adversarial", seed=seed) as device:
            for graph, source in ((FRONTIER_MODEL, 0), (FAN, 0), (read_graph("kron:6:6"), 1)):
                with _session(graph, device, way, engine=engine, block_threads=32) as search:
                    assert find_problem(graph, search.run(source)) is None


@pytest.mark.parametrize("small", SMALL, ids=lambda small: small.name)
@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_small_graphs(device: Device, way: tuple[str, str], small: SmallGraph) -> None:
    graph = small.graph
    for engine in ("host_loop", "persistent"):
        with _session(graph, device, way, engine=engine) as search:
            result = search.run(small.source)
            assert find_problem(graph, result) is None
            np.testing.assert_array_equal(result.distances, small.distances)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("engine", ENGINES)
def test_64_bit_offsets(device: Device, engine: str, way: tuple[str, str]) -> None:
    graph = read_graph("random:300:2400").with_offsets(64)
    with _session(graph, device, way, engine=engine) as search:
        assert find_problem(graph, search.run(7)) is None


# Vertices beyond the last whole word, isolated ones, arcs that lead nowhere new.
@pytest.mark.parametrize("vertices", [1, 31, 32, 33, 1023, 1024, 1025])
def test_any_number_of_vertices(device: Device, vertices: int) -> None:
    last = vertices - 1
    graph = directed(vertices, (0, last), (last, last), (last, 0), (0, last // 2))
    for way in WAYS:
        with _session(graph, device, way) as search:
            for source in (0, last):
                assert find_problem(graph, search.run(source)) is None


BUGS = [
    # What pulled levels discover is lost.
    ("pull/by_bits.cuh", "grows()[mine] = discovered;", ";"),
    # What pushed levels discover is not in the bitmap.
    ("visit.cuh", "if constexpr (Policy::dense) set_bit(", "if constexpr (false) set_bit("),
    # Bits of the frontier before stay.
    ("step.cuh", "clear_stale<Policy>(parameters, frontier,", "(void)sizeof(", ),
    # Each search finds the bits of the last one.
    ("reset.cuh", "rotating_words(parameters), 0);", "0, 0);"),
    # Nor has the first frontier its only one.
    ("reset.cuh", "bitmap(parameters, 0)[word_of(source)] = bit_of(source);", ""),
    # Two bits of one word, and one is lost.
    (
        "dense.cuh",
        "atomicOr(bits + word_of(v), bit_of(v));",
        "bits[word_of(v)] = bits[word_of(v)] | bit_of(v);",
    ),
    # The warp counts its discoveries, and the block forgets all but the first warp's.
    ("pull/by_bits.cuh", "lane_ < WARPS ? shared_->found", "lane_ < 1 ? shared_->found"),
    # Who has been discovered is still left.
    ("pull/by_bits.cuh", "after &= ~found;", ""),
    # The row of a vertex whose likely parent is elsewhere is not gone along.
    ("pull/by_bits.cuh", "after = looked & ~entered;", "after = 0;"),
    # Nobody says of unreached vertices that they have no predecessor: nor does a search that pulls.
    ("loop_persistent.cuh", "if (!news().has_pulled) fill_unreached(parameters_);", ""),
    ("pull/by_bits.cuh", "by_distances ? unvisited >> i & 1u : parents", "parents"),
    # Long rows are put by and forgotten.
    ("pull/by_bits.cuh", "{ level.enter_late(v, parent); }", "{}"),
]  # fmt: skip


def _caught() -> bool:
    """Whether any of this module's checks sees something wrong."""
    for way in (("auto", "thread"), ("pull", "thread"), ("push", "topology")):
        with EmulatedDevice(check_races=True) as device, _session(KRONECKER, device, way) as search:
            for source in (HUB, 300, HUB):
                result = search.run(source)
                if find_problem(KRONECKER, result) is not None or device.races:
                    return True
            limited = search.run(HUB, max_depth=2)
            bitmaps = _bitmaps(search)
            members = np.zeros(bitmaps[0].size, bool)
            members[np.flatnonzero(limited.distances == 2)] = True
            if (bitmaps[2] != members).any() or bitmaps[0].any():
                return True
    with EmulatedDevice() as device, _session(LONG_ROWS, device, ("pull", "thread")) as search:
        if find_problem(LONG_ROWS, search.run(0)) is not None:
            return True
    return False


@needs_emulation
@pytest.mark.parametrize(("file", "right", "wrong"), BUGS)
def test_seeded_bugs_are_caught(sources: Path, file: str, right: str, wrong: str) -> None:
    text = (sources / file).read_text()
    assert text.count(right) == 1, f"{file} no longer has {right!r} once"
    (sources / file).write_text(text.replace(right, wrong))
    assert _caught()


@needs_emulation
def test_without_a_bug_nothing_is_caught() -> None:
    assert not _caught()


@needs_emulation
def test_a_queue_with_pulled_levels_left_out_is_refused_where_discoveries_are_looked_for() -> None:
    with pytest.raises(ValueError, match="a dense frontier leaves what pulled levels discover out"):
        explore(FRONTIER_MODEL, 0, direction="auto", frontier="dense", schedules=1)
    found = explore(
        FRONTIER_MODEL, 0, advance="topology", frontier="dense", schedules=3, check=False
    )
    assert found.duplicating


def test_every_direction_has_its_way() -> None:
    assert all(conflict(*way, frontier="dense") is None for way in WAYS)


def test_the_direction_of_a_level_is_decided_in_one_place() -> None:
    """What decides compares floats: two compiled copies of it need not round alike."""
    calls = [
        (path.name, line.strip())
        for path in sorted(source_folder().rglob("*.cuh"))
        for line in path.read_text().splitlines()
        if "pulls(" in line and "bool pulls(" not in line
    ]
    assert calls == [
        (
            "step.cuh",
            "frontier.pulls = Policy::template Direction<Policy>::pulls(parameters, frontier);",
        )
    ]

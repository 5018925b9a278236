"""The isolated level walk: every mapping, against accumulators and slots known beforehand."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from graphs import FRONTIER_MODEL, SMALL, SmallGraph, undirected

from persistent_bfs import Graph, compiler, read_graph
from persistent_bfs.config import ADVANCES, ENGINES, WALK, Config
from persistent_bfs.device import open_device
from persistent_bfs.device.base import Device, DeviceError, DeviceUnavailable
from persistent_bfs.device.emulated import EmulatedDevice
from persistent_bfs.expand import (
    LevelWalk,
    WalkArguments,
    check_sums,
    checksum,
    edge_offsets,
    expand,
    makespan,
    pick_levels,
    predicted_sums,
)
from persistent_bfs.reference import (
    LevelRow,
    WrongAnswer,
    bfs_reference,
    lane_slots,
    level_table,
)

HUBS = [1255, 1012, 43, 43, 43, 12, 11, 11, 11, 11]
"""Ten vertices of 2,452 edges: 1,255, 1,012 and eight of at most 43."""


def made_frontier(degrees: list[int]) -> Graph:
    """Vertex 0 leads to vertices of these out-degrees, whose arcs all lead to others."""
    size = len(degrees)
    targets = size + 1 + np.concatenate([np.arange(degree) for degree in degrees])
    rows = [size, *degrees, *[0] * max(degrees)]
    return Graph.from_arrays(
        np.cumsum([0, *rows]), np.concatenate([np.arange(1, size + 1), targets]), directed=True
    )


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, f"{file.name} no longer has {old!r} once"
    file.write_text(text.replace(old, new))


def _sums(device: Device, graph: Graph, source: int, level: int, repeat: int) -> dict[str, object]:
    """The accumulators of a level's frontier, by mapping."""
    distances = bfs_reference(graph, source).distances
    with (
        LevelWalk(device, graph, distances, tuple(ADVANCES), block_threads=64) as walk,
        walk.level(level) as frontier,
    ):
        return {name: walk.sums(name, repeat)[frontier].tolist() for name in ADVANCES}


@pytest.mark.parametrize("repeat", [1, 2, 3, 7, 8, 64, 100])
def test_predictions_are_sums_of_neighbours_xored_with_the_walk(repeat: int) -> None:
    graph = read_graph("random:70:300")
    frontier = np.array([0, 3, 69], np.int32)
    expected = [0] * 70
    for u in frontier.tolist():
        for v in graph.col_indices[graph.row_offsets[u] : graph.row_offsets[u + 1]].tolist():
            expected[u] += sum(v ^ r for r in range(repeat))
    assert predicted_sums(graph, frontier, repeat).tolist() == expected


def test_predictions_wrap_at_32_bits() -> None:
    graph = undirected(100_001, *((0, v) for v in range(1, 100_001)))
    exact = sum(v ^ r for v in range(1, 100_001) for r in range(2))
    assert exact == 10_000_100_000
    assert predicted_sums(graph, np.array([0], np.int32), 2)[0] == exact % 2**32


@pytest.mark.parametrize("small", SMALL, ids=lambda small: small.name)
def test_every_level_of_small_graphs_under_every_mapping(device: Device, small: SmallGraph) -> None:
    distances = np.array(small.distances, np.int32)
    with LevelWalk(device, small.graph, distances, tuple(ADVANCES), block_threads=64) as walk:
        for level in range(min(max(small.distances), 3) + 1):
            with walk.level(level) as frontier:
                assert frontier.tolist() == np.flatnonzero(distances == level).tolist()
                for repeat in (1, 3):
                    expected = predicted_sums(small.graph, frontier, repeat)
                    for name in ADVANCES:
                        check_sums(small.graph, walk.sums(name, repeat), expected)
                        assert walk.walk(name, repeat)[0] == checksum(expected)


@pytest.mark.parametrize("bits", [32, 64])
def test_the_report_has_every_level_and_mapping(device: Device, bits: int) -> None:
    graph = read_graph("kron:9:8").with_offsets(bits)
    source = int(np.argmax(graph.degrees))
    report = expand(graph, source, repeat=4, samples=2, device=device)
    assert report.verified
    table = level_table(graph, source)
    by_edges = sorted(range(len(table)), key=lambda level: -table[level].edges)
    assert report.levels == sorted(by_edges[:3])
    assert [(row.level, row.advance) for row in report.rows] == [
        (level, name) for level in report.levels for name in ADVANCES
    ]
    assert list(report.searches) == list(ADVANCES)
    timed = device.info.kind == "cuda"
    for row in report.rows:
        expected = table[row.level]
        assert (row.frontier, row.edges, row.max_degree) == (
            expected.frontier,
            expected.edges,
            expected.max_degree,
        )
        assert (row.timing is not None) == (row.edges_per_second is not None) == timed
        assert (row.lane_slots is None) == (row.atomics is None) == timed
        if row.timing is not None:
            assert len(row.timing.samples) == 2
            assert row.edges_per_second == pytest.approx(1e3 * row.edges / row.timing.median)
    for search in report.searches.values():
        assert (search.timing is not None) == timed
    summary = report.summary()
    assert summary["verified"] is True
    assert [row["advance"] for row in summary["rows"]] == [*ADVANCES] * 3


def test_worked_lane_slots_of_a_frontier_with_two_hubs() -> None:
    graph = made_frontier(HUBS)
    report = expand(graph, 0, levels=[1], repeat=2, device="emulated")
    assert report.verified
    rows = {row.advance: row for row in report.rows}
    assert {(row.frontier, row.edges, row.max_degree) for row in report.rows} == {(10, 2452, 1255)}
    assert rows["thread"].lane_slots == 40_160
    assert rows["warp"].lane_slots == 2_656
    assert rows["edge"].lane_slots == 2_464  # 2,452 rounded up to whole warps
    # No atomics but for the checksum: one a warp that had a vertex, after the last walk.
    assert rows["thread"].atomics == 1
    assert rows["warp"].atomics == 10


# On one block of 64 threads, where a row of 128 is a hub. By hand: what the block's two warps fill.
BUCKETED = [
    ([100], 128),  # two strides of the block
    ([10] * 4, 2 * 32),  # 16 lanes a vertex: one stride of each warp's two
    ([1, 1, 5, 64], 4 * 32),  # likewise; the row of 64 by its warp, two strides, beside the others
    ([3] * 40, 2 * 3 * 32),  # a lane each
    # A warp puts 8 hubs by, three strides of the block each, and takes the others itself.
    ([130] * 20 + [3] * 20, 8 * 3 * 64 + 12 * 5 * 32 + 2 * 3 * 32),
]


@pytest.mark.parametrize(("degrees", "slots"), BUCKETED)
def test_worked_lane_slots_of_the_bucketed_mapping(degrees: list[int], slots: int) -> None:
    graph = made_frontier(degrees)
    distances = bfs_reference(graph, 0).distances
    with (
        EmulatedDevice(multiprocessors=1, blocks_per_multiprocessor=1, check_races=True) as device,
        LevelWalk(device, graph, distances, ["bucketed"], block_threads=64) as walk,
        walk.level(1) as frontier,
    ):
        assert frontier.size == len(degrees)
        check_sums(graph, walk.sums("bucketed", 3), predicted_sums(graph, frontier, 3))
        assert walk.walk("bucketed", 3)[2]["lane_slots"] == 3 * slots
        assert [str(race) for race in device.races] == []


@pytest.mark.parametrize("advance", ["bucketed", "edge"])
def test_frontiers_of_all_shapes_and_grids(advance: str) -> None:
    random = np.random.default_rng(5)
    for degrees in (
        random.integers(0, 4, 300),
        np.where(random.random(200) < 0.2, 300, 1),
        np.array([*[0] * 70, 200, *[0] * 70, 1]),
        np.array([700, 1, 700]),
        np.full(33, 32),
    ):
        graph = made_frontier(degrees.tolist())
        distances = bfs_reference(graph, 0).distances
        for multiprocessors in (1, 3, 16):
            with (
                EmulatedDevice(
                    multiprocessors=multiprocessors, blocks_per_multiprocessor=1
                ) as device,
                LevelWalk(device, graph, distances, [advance], block_threads=64) as walk,
                walk.level(1) as frontier,
            ):
                check_sums(graph, walk.sums(advance, 2), predicted_sums(graph, frontier, 2))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("advance/bucketed.cuh", "is_hub && slot < KEPT", "is_hub"),
        (
            "advance/bucketed.cuh",
            "if (kept > KEPT) kept = KEPT;",
            "if (kept > KEPT) kept = KEPT - 1;",
        ),
        ("rows.cuh", "(row.degree >= long_row) row", "(row.degree > long_row) row"),
    ],
    ids=["more-hubs-than-kept", "one-hub-forgotten", "a-long-row-twice"],
)
def test_a_bug_of_the_bucketed_mapping_is_wrong(
    sources: Path, file: str, old: str, new: str
) -> None:
    _replace(sources / file, old, new)
    graph = made_frontier([130] * 20 + [32] * 20)
    distances = bfs_reference(graph, 0).distances
    with (
        EmulatedDevice(multiprocessors=1, blocks_per_multiprocessor=1) as device,
        LevelWalk(device, graph, distances, ["bucketed"], block_threads=64) as walk,
        walk.level(1) as frontier,
        pytest.raises((WrongAnswer, DeviceError)),
    ):
        check_sums(graph, walk.sums("bucketed", 1), predicted_sums(graph, frontier, 1))


def test_edge_offsets_and_the_arcs_they_lead_to(device: Device) -> None:
    frontier = np.array([3, 4], np.int32)
    assert edge_offsets(FRONTIER_MODEL, frontier).tolist() == [0, 2, 3]
    assert edge_offsets(FRONTIER_MODEL, frontier[:0]).tolist() == [0]
    # Arcs (3,4) (3,5) (4,5), in two walks: 4 and 5 swap places under XOR 1.
    assert predicted_sums(FRONTIER_MODEL, frontier, 1).tolist() == [0, 0, 0, 9, 5, 0]
    for repeat, sums in ((1, [4 + 5, 5]), (2, [4 + 5 + 5 + 4, 5 + 4])):
        walked = _sums(device, FRONTIER_MODEL, 0, 2, repeat)
        assert walked == dict.fromkeys(ADVANCES, sums)


def test_makespan_of_a_thread_a_vertex_against_equal_edges() -> None:
    degrees = np.full(100_000, 15)
    degrees[0] = 6_565
    rest = 1_600_000 - int(degrees.sum())
    degrees[1 : 1 + rest] += 1
    assert degrees.sum() == 1_600_000
    steps = makespan(degrees)
    assert steps == (6_565, 16)
    assert round(steps.ratio) == 410
    assert makespan([3, 3, 3]) == (3, 3)
    assert makespan([0, 0]) == makespan([]) == (0, 0)
    assert makespan([]).ratio == 1.0


@pytest.mark.parametrize("advance", ADVANCES)
def test_every_walk_reads_anew(advance: str) -> None:
    graph = made_frontier([40, 3, 5])
    with open_device("emulated").device as device:  # type: ignore[union-attr]
        distances = bfs_reference(graph, 0).distances
        with LevelWalk(device, graph, distances, [advance], block_threads=64) as walk:
            loads, slots = [], []
            with walk.level(1):
                for repeat in (1, 2, 65):
                    counts = walk.walk(advance, repeat)[2]
                    loads.append(counts["plain_loads"] + counts["relaxed_loads"])
                    slots.append(counts["lane_slots"])
    each = loads[1] - loads[0]
    assert each >= 48
    assert loads[2] - loads[1] == 63 * each
    assert slots == [slots[0], 2 * slots[0], 65 * slots[0]]


def test_an_arc_left_out_is_found_and_named(sources: Path) -> None:
    _replace(sources / "stride.cuh", "if (mine < left)", "if (mine < left && neighbours[i] != 2)")
    labels = ["ann", "bob", "eve", "joe"]
    graph = Graph.from_edges([0, 0, 1, 2], [1, 2, 2, 3], labels=labels)
    report = expand(graph, 2, levels=[0, 1], advances=["thread", "warp"], device="emulated")
    assert not report.verified
    assert report.row(0, "thread").verified
    assert report.row(1, "thread").verified
    wrong = report.row(0, "warp")
    right = sum(v ^ r for v in (0, 1, 3) for r in range(64))
    assert wrong.problem == (
        f"vertex 2 ('eve'): accumulator 0, predicted {right} (1 of 4 vertices differ)"
    )
    assert wrong.timing is None
    assert wrong.edges_per_second is None
    # The mapping is the search's own, so that the search beside is wrong as well.
    assert report.searches["thread"].verified
    assert not report.searches["warp"].verified


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("walk.cuh", "repeat < launch.repeats", "repeat + 1 < launch.repeats"),
        ("advance/edge.cuh", "edge >= reached && edge < end", "edge > reached && edge < end"),
    ],
    ids=["a-walk-too-few", "first-edge-of-each-chunk"],
)
def test_a_shortened_walk_is_wrong(sources: Path, file: str, old: str, new: str) -> None:
    _replace(sources / file, old, new)
    graph = made_frontier([70, 40, 3, 3])
    report = expand(graph, 0, levels=[1], advances=["edge"], device="emulated", repeat=8)
    (row,) = report.rows
    assert not row.verified
    assert row.problem is not None
    assert "vertex 1: accumulator" in row.problem
    assert row.timing is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (valid >> i & 1u) sum +=", "if ((valid >> i & 1u) && (repeat != 5 || i)) sum +="),
        ("WeightedSum visit;", "WeightedSum visit; if (launch.repeats == 8) visit.sum = 1;"),
    ],
    ids=["first-arcs-of-one-walk", "one-more"],
)
def test_a_timed_walk_that_is_shortened_is_wrong(sources: Path, old: str, new: str) -> None:
    _replace(sources / "walk.cuh", old, new)
    graph = made_frontier([70, 40, 3, 3])
    report = expand(graph, 0, levels=[1], advances=["warp"], device="emulated", repeat=8)
    (row,) = report.rows
    assert not report.verified
    assert row.problem is not None
    right = checksum(predicted_sums(graph, np.arange(1, 5, dtype=np.int32), 8))
    assert f", predicted {right}: arcs were left out" in row.problem
    assert row.timing is None


def test_the_checksum_weighs_each_accumulator_by_an_odd_number() -> None:
    sums = np.array([5, 0, 2**32 - 1], np.uint32)
    assert checksum(sums) == (1 * 5 + 3 * 0 + 5 * (2**32 - 1)) % 2**32


def test_accumulators_of_vertices_outside_the_frontier_are_checked() -> None:
    graph = read_graph("star:4")
    expected = predicted_sums(graph, np.array([0], np.int32), 1)
    assert expected.tolist() == [6, 0, 0, 0]
    stray = expected.copy()
    stray[3] = 1
    with pytest.raises(WrongAnswer, match=r"vertex 3: accumulator 1, predicted 0 \(1 of 4"):
        check_sums(graph, stray, expected)


def test_levels_are_picked_by_edges_not_by_size() -> None:
    sizes, edges = [1, 50, 2, 3, 40], [5, 50, 900, 7, 60]
    table = [
        LevelRow(level, size, arcs, 0, 0, 0, lane_slots([]))
        for level, (size, arcs) in enumerate(zip(sizes, edges, strict=True))
    ]
    assert [row.level for row in pick_levels(table)] == [1, 2, 4]
    assert [row.level for row in pick_levels(table[:2])] == [0, 1]
    assert [row.level for row in pick_levels(table, [2, 0, 2])] == [2, 0]
    for level in (5, -1):
        with pytest.raises(ValueError, match=rf"no level {level}: the search has 0 to 4"):
            pick_levels(table, [level])
    with pytest.raises(ValueError, match="no level to walk"):
        pick_levels(table, [])


def test_words_are_walked_at_their_three_busiest_levels() -> None:
    graph = read_graph("words-kjv")
    report = expand(
        graph,
        graph.vertex_of("faithless"),
        advances=["warp", "edge"],
        repeat=1,
        device="emulated",
    )
    assert report.verified
    assert [(row.level, row.frontier, row.edges, row.max_degree) for row in report.rows] == [
        row
        for row in ((2, 98, 10_584, 896), (3, 1_986, 51_413, 3_218), (4, 3_394, 8_817, 30))
        for _ in range(2)
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"advances": ["wrap"]}, "unknown advance 'wrap'; choose one of thread"),
        ({"advances": []}, "no mapping to walk by"),
        ({"repeat": 0}, "repeat is 0; it must be 1 to 65,536"),
        ({"repeat": 65_537}, "repeat is 65537; it must be 1 to 65,536"),
        ({"samples": 0}, "samples is 0; it must be at least 1"),
        ({"levels": [2]}, "there is no level 2: the search has 0 to 1"),
    ],
)
def test_what_is_not_there_is_refused_before_any_device(
    fields: dict[str, object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("persistent_bfs.expand.open_device", lambda _: pytest.fail("opened"))
    with pytest.raises(ValueError, match=words):
        expand(read_graph("star:4"), 0, **fields)  # type: ignore[arg-type]


def test_the_reference_has_no_kernels_to_walk_with() -> None:
    with pytest.raises(DeviceUnavailable, match="on cuda or emulated; the reference has none"):
        expand(read_graph("star:4"), 0, device="reference")


def test_nothing_stays_on_the_device() -> None:
    with open_device("emulated").device as device:  # type: ignore[union-attr]
        free = device.free_bytes()
        expand(read_graph("star:4"), 0, advances=["thread"], repeat=1, device=device)
        assert device.free_bytes() == free


def test_the_walk_is_no_engine() -> None:
    assert WALK.name not in ENGINES
    config = Config(WALK.name, advance="warp")
    assert config.kernels == ("walk_level", "walk_level_by_vertex")
    assert "WalkArguments launch" in compiler.render_stub(config)


def test_the_arguments_are_laid_out_as_the_compiler_does() -> None:
    text = (
        '#include "walk.cuh"\n'
        'extern "C" __attribute__((visibility("default"))) int size = '
        "sizeof(persistent_bfs::WalkArguments);\n"
    )
    library = ctypes.CDLL(str(compiler.compile_emulated(text, "walk-size")))
    assert ctypes.c_int.in_dll(library, "size").value == ctypes.sizeof(WalkArguments)


@pytest.mark.parametrize("advance", ADVANCES)
def test_a_compiler_for_gpus_takes_the_walk_of_every_mapping(advance: str) -> None:
    if missing := compiler.cuda_compiler_problem():
        pytest.skip(missing)
    binary = compiler.cubin(Config(WALK.name, advance=advance), "sm_90").read_bytes()
    assert binary[:4] == b"\x7fELF"
    assert b"walk_level" in binary

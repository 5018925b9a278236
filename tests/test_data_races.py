"""The check for data races: it sees what nothing orders, in any schedule, and nothing else."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import FRONTIER_MODEL, REPEATS, SMALL, directed, hub, path, undirected
from loops import LOOPS, how, narrow_mappings, open_beside_waiting_blocks

from persistent_bfs import BFS, Graph, Options, read_graph
from persistent_bfs.compiler import compile_emulated
from persistent_bfs.config import (
    ADVANCES,
    APPENDS,
    DIRECTIONS,
    EXACT_CLAIMS,
    FRONTIERS,
    conflict,
    tier_conflict,
)
from persistent_bfs.device.accesses import DataRace
from persistent_bfs.device.base import DeviceError, KernelArguments, LaunchShape
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem
from persistent_bfs.measure import find_problem

pytestmark = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)

KERNELS = Path(__file__).parent / "kernels"
SOURCE = (KERNELS / "races.cuh").read_text()
SCHEDULES = [("roundrobin", 0), ("random", 1), ("adversarial", 0), ("adversarial", 3)]


class Arguments(ctypes.Structure):
    _fields_ = (
        ("in", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("n", ctypes.c_int),
        ("handle", ctypes.c_ulonglong),
    )


def names_in(source: str) -> list[str]:
    return re.findall(r"^KERNEL\((\w+)\)", source, re.MULTILINE)


Run = Callable[..., tuple[list[DataRace], np.ndarray]]


@pytest.fixture(scope="module")
def library() -> Path:
    return compile_emulated(SOURCE, "races")


@pytest.fixture
def run(library: Path) -> Run:
    """Launch a kernel on zeros, and return the races and what it left."""

    def launch(
        name: str,
        *,
        blocks: int = 2,
        threads: int = 64,
        n: int = 3,
        path: Path = library,
        schedule: str = "roundrobin",
        seed: int = 0,
        **options: Any,
    ) -> tuple[list[DataRace], np.ndarray]:
        device = EmulatedDevice(schedule=schedule, seed=seed, check_races=True, **options)
        with device:
            stream, kernel = device.stream(), device.load_library(path, [name])[name]
            out = device.allocate(4096, np.int32, "out")
            given = device.upload(np.arange(4096, dtype=np.int32), "in")
            stream.fill(out, 0)
            arguments = KernelArguments(Arguments(given.address, out.address, n, 0))
            wants_grid = "grid" in name
            (stream.launch_cooperative if wants_grid else stream.launch)(
                kernel, LaunchShape(blocks, threads, 4 * threads), arguments
            )
            stream.synchronize()
            return device.races, out.to_host()

    return launch


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize("name", [name for name in names_in(SOURCE) if name.startswith("ordered")])
def test_what_is_ordered_is_not_reported(run: Run, name: str, schedule: str, seed: int) -> None:
    assert [str(race) for race in run(name, schedule=schedule, seed=seed)[0]] == []


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize("name", [name for name in names_in(SOURCE) if name.startswith("racy")])
def test_what_nothing_orders_is_reported_by_any_schedule(
    run: Run, name: str, schedule: str, seed: int
) -> None:
    races, _ = run(name, schedule=schedule, seed=seed)
    assert races
    for race in races:
        assert race.first.kernel == race.second.kernel == name
        assert race.first.writes or race.second.writes
        assert "write" in (race.first.kind, race.second.kind) or "read" in (
            race.first.kind,
            race.second.kind,
        )
        one, other = race.first, race.second
        assert (one.block, one.thread) != (other.block, other.thread)


def test_the_ordered_kernels_compute_what_they_should(run: Run) -> None:
    assert run("ordered_reduction")[1][:2].tolist() == [64, 64]
    assert run("ordered_counter")[1][0] == 128
    assert run("ordered_ticket")[1][:2].tolist() == [2, 128]
    assert run("ordered_chain", blocks=5)[1][:2].tolist() == [5, 5]
    assert run("ordered_spin_barrier")[1][:3].tolist() == [3 * 128, 3, 0]
    assert run("ordered_grid", n=4)[1][:4].tolist() == [3, 3, 4, 4]


def test_a_report_names_both_accesses(run: Run) -> None:
    (race,) = (race for race in run("racy_bytes", blocks=1)[0])
    line = next(i for i, text in enumerate(SOURCE.splitlines(), 1) if "out[0] = 1;" in text)
    assert (race.first.block, race.first.thread, race.first.kind) == (0, 0, "write")
    assert (race.second.block, race.second.thread, race.second.kind) == (0, 1, "write")
    assert (race.first.place, race.second.place) == ("out[0]", "out[0]")
    assert (race.first.source.line, race.second.source.line) == (line, line + 1)
    assert str(race) == (
        f"data race in kernel racy_bytes on out[0]: write by block 0, thread 0 at races.cpp:{line}"
        f", then write by block 0, thread 1 at races.cpp:{line + 1}, in no order (once)"
    )


def test_a_race_on_shared_memory_names_the_byte(run: Run) -> None:
    races, _ = run("racy_shared", blocks=1, threads=32)
    assert {race.second.buffer for race in races} == {"shared memory"}
    assert all(race.first.index % 4 == 0 for race in races)
    # Every lane's word is written by itself and read by its neighbour.
    assert sum(race.count for race in races) == 32


def test_many_pairs_of_the_same_lines_are_one_race(run: Run) -> None:
    races, _ = run("racy_counter", blocks=1, threads=4)
    assert len(races) <= 3
    assert {(race.first.kind, race.second.kind) for race in races} <= {
        ("write", "read"),
        ("write", "write"),
        ("read", "write"),
    }
    assert sum(race.count for race in races) >= 3


def test_blocks_of_different_waves_are_not_ordered(run: Run) -> None:
    options = {"multiprocessors": 1, "blocks_per_multiprocessor": 1}
    assert run("racy_counter", blocks=3, threads=1, **options)[0]
    assert not run("racy_counter", blocks=1, threads=1, **options)[0]
    assert not run("ordered_shared", blocks=3, **options)[0]
    assert not run("ordered_ticket", blocks=3, **options)[0]
    assert run("racy_ticket", blocks=3, **options)[0]


def test_launches_are_ordered(library: Path) -> None:
    with EmulatedDevice(check_races=True) as device:
        kernel = device.load_library(library, ["racy_counter"])["racy_counter"]
        stream, out = device.stream(), device.allocate(1, np.int32, "out")
        stream.fill(out, 0)
        for _ in range(3):
            stream.launch(
                kernel, LaunchShape(1, 1), KernelArguments(Arguments(None, out.address, 0, 0))
            )
        assert out.to_host() == [3]
        assert device.races == []


# Of the kernels that the emulation's other tests run: those that number threads within a warp or
# a block only, and those that need more than is given here.
SHAPES: dict[str, dict[str, int]] = {
    "warp_words": {"blocks": 1, "threads": 32},
    "votes": {"blocks": 1},
    "vectors": {"blocks": 1},
    "unwritten_shared": {"blocks": 1},
}
NOT_ALONE = {"lost_shuffle", "counted", "count_down"}


def test_the_words_of_cuda_are_race_free_and_the_seeded_races_are_not(run: Run) -> None:
    words = (KERNELS / "words.cuh").read_text()
    path = compile_emulated(words, "words")
    for name in names_in(words):
        if name not in NOT_ALONE:
            races, _ = run(name, path=path, **SHAPES.get(name, {}))
            assert [str(race) for race in races] == [], name
    path = compile_emulated((KERNELS / "bugs.cuh").read_text(), "bugs")
    assert run("missing_barrier", path=path, blocks=1)[0]
    assert run("check_then_write", path=path)[0]


def test_checking_changes_neither_schedule_nor_counts(library: Path) -> None:
    def outcome(check: bool) -> tuple[list[int], dict[str, int]]:
        options = {"schedule": "adversarial", "seed": 7, "check_races": check}
        with (
            EmulatedDevice(**options) as device,
            BFS(  # type: ignore[arg-type]
                FRONTIER_MODEL,
                engine="persistent",
                claim="naive",
                device=device,
                advance="thread",
                block_threads=32,
            ) as search,
        ):
            result = search.run(0)
            queue = device.buffer("queue").to_host(result.enqueued).tolist()
            return queue, result.counters.device

    assert outcome(True) == outcome(False)


def test_a_launch_of_very_many_threads_is_refused(library: Path) -> None:
    with EmulatedDevice(check_races=True) as device:
        kernel = device.load_library(library, ["ordered_bytes"])["ordered_bytes"]
        out = device.allocate(1 << 20, np.int32, "out")
        with pytest.raises(DeviceError, match=r"66560 threads; data races .* up to 65536"):
            device.stream().launch(
                kernel, LaunchShape(65, 1024), KernelArguments(Arguments(None, out.address, 0, 0))
            )


# The search's own kernels.

COMBINATIONS = [
    (loop, advance, direction, append, frontier)
    for loop in LOOPS
    for advance in ADVANCES
    for direction in DIRECTIONS
    for append in APPENDS
    for frontier in FRONTIERS
    if conflict(direction, advance, append, frontier) is None
    and (not narrow_mappings(loop) or tier_conflict(direction, "cas", append, frontier) is None)
]
# Few enough to compile in seconds; every row of every table is in it.
SAMPLE = COMBINATIONS[::27]

# Two threads race for vertex 3; so much is unexplored elsewhere that no automatic direction pulls.
FAR = directed(206, (0, 1), (0, 2), (1, 3), (2, 3), (3, 4), *((v, v + 1) for v in range(5, 205)))

GRAPHS = [
    (FRONTIER_MODEL, 0),
    (FAR, 0),
    (REPEATS, 0),
    (path(9), 4),
    (hub(70), 69),
    (next(small.graph for small in SMALL if small.name == "directed-diamond"), 0),
    (read_graph("kron:6:6"), 1),
]


def races_of(claim: str, *row: str) -> list[DataRace]:
    loop, advance, direction, append, frontier = row
    found: list[DataRace] = []
    for graph, source in GRAPHS:
        with (
            EmulatedDevice(check_races=True) as device,
            BFS(
                graph,
                device=device,
                **how(loop),
                advance=advance,
                direction=direction,
                claim=claim,
                append=append,
                frontier=frontier,
                predecessors=True,
                trace=True,
                block_threads=64,
                block_queue=32,
                options=Options(tier_slots=2),
            ) as search,
        ):
            search.run(source)
            found += device.races
    return found


def test_the_sample_meets_every_row() -> None:
    columns = [set(column) for column in zip(*SAMPLE, strict=True)]
    tables = (LOOPS, ADVANCES, DIRECTIONS, APPENDS, FRONTIERS)
    assert columns == [set(table) for table in tables]


@pytest.fixture
def always_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the automatic mapping choose on the device even where every degree is small."""
    monkeypatch.setattr("persistent_bfs.plan.EVEN_DEGREE", -1)


@pytest.mark.usefixtures("always_choose")
@pytest.mark.parametrize("row", SAMPLE, ids="-".join)
def test_only_the_naive_claim_races(row: tuple[str, ...]) -> None:
    exact = sorted(EXACT_CLAIMS)[SAMPLE.index(row) % len(EXACT_CLAIMS)]
    assert [str(race) for race in races_of(exact, *row)] == []
    if narrow_mappings(row[0]):
        return  # no tier with the naive claim
    racing = {race.second.buffer for race in races_of("naive", *row)}
    assert racing <= {"distances", "predecessors"}
    # Pull claims nothing: an unvisited vertex has one thread.
    assert ("distances" in racing) == (row[2] != "pull")


def test_the_naive_claim_is_caught_at_its_lines_without_a_duplicate() -> None:
    with (
        EmulatedDevice(check_races=True) as device,
        BFS(
            FRONTIER_MODEL,
            engine="persistent",
            claim="naive",
            device=device,
            advance="thread",
            block_threads=32,
        ) as search,
    ):
        result = search.run(0)
        assert result.enqueued == 6
    (race,) = device.races
    assert (race.first.kind, race.second.kind) == ("write", "read")
    assert race.first.place == race.second.place == "distances[3]"
    assert race.first.thread != race.second.thread
    assert race.first.source.text == "distances[v] = distance;"
    assert race.second.source.text == "return distances[v] == UNVISITED;"
    assert race.second.source.file == "claim/naive.cuh"


# The tiers: rows of one slot, of two, and hubs; a tree whose levels fill one block of a cluster and
# are dealt out anew; frontiers that leave the tier and come back.
TREE = undirected(255, *(((v - 1) // 2, v) for v in range(1, 255)))
HUB_IN_PATH = undirected(120, *((v, v + 1) for v in range(29)), *((15, v) for v in range(30, 120)))
IN_TIERS = [
    (TREE, 0, 64),
    (TREE, 254, 8),
    (HUB_IN_PATH, 0, 5),
    (HUB_IN_PATH, 119, 64),
    (read_graph("grid:12x5"), 0, 2),
    (read_graph("random:100:200"), 0, 7),
]
WITH_TIER = [loop for loop in LOOPS if narrow_mappings(loop)]


def tier_search(
    loop: str, case: tuple[Graph, int, int], schedule: str, seed: int, **more: Any
) -> tuple[list[DataRace], str | None]:
    """The races of a search that other blocks wait for, and what is wrong with its answer."""
    graph, source, slots = case
    how_run = {"schedule": schedule, "seed": seed, "races": True}
    with open_beside_waiting_blocks(loop, graph, slots, **how_run, **more) as search:
        # No search has more levels than vertices, but one that is wrong might never end.
        problem = find_problem(graph, search.run(source, max_depth=graph.vertices))
        return search.device.races, problem


@pytest.mark.parametrize(("schedule", "seed"), [*SCHEDULES, ("adversarial", 11)])
@pytest.mark.parametrize("loop", WITH_TIER)
def test_tiers_do_not_race(loop: str, schedule: str, seed: int) -> None:
    for case in IN_TIERS:
        races, problem = tier_search(loop, case, schedule, seed)
        assert [str(race) for race in races] == []
        assert problem is None


SEEDED = {
    "no barrier after the slots of the first frontier": (
        "tier/block.cuh",
        "CountedReserve{spent}, lane);\n    __syncthreads();",
        "CountedReserve{spent}, lane);",
        (read_graph("grid:12x5"), 0, 2),
        "shared memory",
    ),
    "no barrier between the levels of one warp": (
        "tier/block.cuh",
        "    __syncwarp();\n",
        "",
        (TREE, 0, 64),
        "shared memory",
    ),
    "no full barrier before a level is dealt out": (
        "tier/cluster.cuh",
        "if (deal || was_dealt) {",
        "if (was_dealt) {",
        (TREE, 0, 64),
        "shared memory",
    ),
    "no full barrier after a level that was dealt out": (
        "tier/cluster.cuh",
        "if (deal || was_dealt) {",
        "if (deal) {",
        (TREE, 0, 64),
        "shared memory",
    ),
    "no fence before the block's turn ends": (
        "position.cuh",
        "    __threadfence();\n    store_relaxed(&state.turn",
        "    store_relaxed(&state.turn",
        (HUB_IN_PATH, 0, 5),
        "state",
    ),
}


@pytest.mark.parametrize("fault", SEEDED)
def test_a_race_seeded_in_a_tier_is_caught(
    fault: str, seed_fault: Callable[[str, str, str], None]
) -> None:
    file, right, wrong, case, where = SEEDED[fault]
    loop = "persistent+cluster" if "cluster" in file else "persistent+block"
    seed_fault(file, right, wrong)
    races, _ = tier_search(loop, case, "roundrobin", 0)
    assert any(where in race.second.buffer for race in races)


def test_one_word_to_leave_by_instead_of_two_gives_wrong_answers(
    seed_fault: Callable[[str, str, str], None],
) -> None:
    seed_fault("tier/cluster.cuh", "leave.at(1 - now.level % 2)", "leave.at(now.level % 2)")
    _, problem = tier_search("persistent+cluster", (HUB_IN_PATH, 0, 64), "roundrobin", 0)
    assert problem is not None


@pytest.mark.parametrize(
    ("file", "right", "wrong", "words"),
    [
        (
            "tier/block.cuh",
            "growing, thread, lane, work);\n        __syncthreads();",
            "growing, thread, lane, work);",
            r"divergent barrier: .*block\.cuh",
        ),
        (
            "position.cuh",
            "    while (load_relaxed(&parameters.state->turn) == turn) __nanosleep(200);\n",
            "",
            "deadlock: it waits for grid sync",
        ),
    ],
    ids=["a level of the block without its barrier", "the others do not wait for the tier"],
)
def test_blocks_that_do_not_wait_are_caught(
    file: str,
    right: str,
    wrong: str,
    words: str,
    seed_fault: Callable[[str, str, str], None],
) -> None:
    seed_fault(file, right, wrong)
    with pytest.raises(DeviceError, match=words):
        tier_search("persistent+block", (TREE, 0, 64), "roundrobin", 0)

"""Thread block clusters: the words' meaning on both devices, and what the emulation catches."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import KERNEL_DEVICES

from persistent_bfs import compiler
from persistent_bfs.compiler import compile_cubin, compile_emulated
from persistent_bfs.device import open_device
from persistent_bfs.device.accesses import DataRace
from persistent_bfs.device.base import (
    Device,
    DeviceError,
    Kernel,
    KernelArguments,
    LaunchShape,
    LaunchTooLarge,
    Stream,
)
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem

SOURCE = (Path(__file__).parent / "kernels" / "clusters.cuh").read_text()

needs_emulation = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)

SCHEDULES = [("roundrobin", 0), ("random", 1), *(("adversarial", seed) for seed in range(6))]
SIZES = [1, 2, 4, 8, 16]
PAIR = LaunchShape(2, 64, cluster=2)


class Arguments(ctypes.Structure):
    _fields_ = (
        ("in", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("n", ctypes.c_int),
        ("handle", ctypes.c_ulonglong),
    )


def load(device: Device, name: str) -> Kernel:
    if isinstance(device, EmulatedDevice):
        return device.load_library(compile_emulated(SOURCE, "clusters"), [name])[name]
    architecture = device.info.architecture
    path = compile_cubin(SOURCE, f"clusters-{architecture}", architecture)
    return device.load_library(path, [name])[name]  # type: ignore[attr-defined, no-any-return]


class Bench:
    """A device, and a short way to run one of the kernels on it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.stream: Stream = device.stream()

    def run(
        self, name: str, words: int = 1, *, shape: LaunchShape, n: int = 0, grid: bool = False
    ) -> np.ndarray:
        """The words of out, zeros before the launch."""
        out = self.device.allocate(words, np.int32, "out")
        self.stream.fill(out, 0)
        arguments = KernelArguments(Arguments(None, out.address, n, 0))
        launch = self.stream.launch_cooperative if grid else self.stream.launch
        launch(load(self.device, name), shape, arguments)
        self.stream.synchronize()
        found = out.to_host()
        out.free()
        return found

    def error(self, name: str, words: int = 1, **options: Any) -> str:
        with pytest.raises(DeviceError) as caught:
            self.run(name, words, **options)
        return str(caught.value)


@pytest.fixture(scope="module", params=KERNEL_DEVICES)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    if request.param == "emulated":
        if (problem := emulated_problem()) is not None:
            pytest.skip(problem)
        opened: Device = EmulatedDevice(multiprocessors=16)
    else:
        choice = open_device(request.param)
        assert choice.device is not None
        opened = choice.device
    with opened as device, device.current():
        if device.info.clusters == 1:
            pytest.skip(f"{device.info.name} has no thread block clusters")
        yield Bench(device)


@pytest.fixture(params=SCHEDULES, ids=lambda choice: f"{choice[0]}-{choice[1]}")
def scheduled(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The emulated device under each schedule, looking for data races."""
    if (problem := emulated_problem()) is not None:
        pytest.skip(problem)
    schedule, seed = request.param
    with EmulatedDevice(schedule=schedule, seed=seed, check_races=True) as device:
        yield Bench(device)


def races_in(bench: Bench) -> list[DataRace]:
    assert isinstance(bench.device, EmulatedDevice)
    return bench.device.races


# What the words mean.


def peer_of(blocks: int, size: int, distance: int = 1) -> np.ndarray:
    """The block so far on in each block's cluster."""
    rank = np.arange(blocks) % size
    return np.arange(blocks) - rank + (rank + distance) % size


def check_identity(bench: Bench, size: int) -> None:
    shape = LaunchShape(3 * size, 64, cluster=size)
    words = bench.run("identity", 2 * 3 * size * 64, shape=shape).reshape(3 * size, 64, 2)
    assert np.array_equal(words[:, :, 0], np.repeat(np.arange(3 * size) % size, 64).reshape(-1, 64))
    assert (words[:, :, 1] == size).all()


def check_exchange(bench: Bench, size: int, kernel: str = "exchange") -> None:
    blocks, threads = 2 * size, 64
    for distance in {0, 1, size - 1}:
        shape = LaunchShape(blocks, threads, cluster=size)
        words = bench.run(kernel, blocks * threads, shape=shape, n=distance)
        places = np.arange(blocks * threads).reshape(blocks, threads)
        assert np.array_equal(
            words.reshape(blocks, threads), places[peer_of(blocks, size, distance)]
        )


def check_push(bench: Bench, size: int) -> None:
    blocks, threads = 2 * size, 64
    shape = LaunchShape(blocks, threads, 20 * threads, size)
    words = bench.run("push", 5 * blocks * threads, shape=shape).reshape(blocks, threads, 5)
    places = np.arange(blocks * threads).reshape(blocks, threads)
    before = peer_of(blocks, size, size - 1)
    assert np.array_equal(words, places[before][:, :, None] + np.arange(5))


def check_atomics(bench: Bench, size: int) -> None:
    blocks, threads = 2 * size, 64
    shape = LaunchShape(blocks, threads, cluster=size)
    words = bench.run("remote_atomics", 3 * blocks, shape=shape).reshape(blocks, 3)
    total = threads * 1000 * size * (size - 1) // 2 + size * threads * (threads - 1) // 2
    assert (words == [total, -1, size * threads]).all()


def check_ring(bench: Bench, size: int, rounds: int = 5) -> None:
    shape = LaunchShape(2 * size, 32, cluster=size)
    words = bench.run("ring", 2 * size, shape=shape, n=rounds)
    ranks = np.arange(2 * size) % size
    assert np.array_equal(words, (ranks - rounds) % size + rounds)


def check_levels(bench: Bench, size: int) -> None:
    shape = LaunchShape(2 * size, 32, cluster=size)
    words = bench.run("levels", 5, shape=shape, n=4, grid=True)
    assert words.tolist() == [2 * size * (level + 1) for level in range(4)] + [0]


def check_work_between(bench: Bench, size: int) -> None:
    shape = LaunchShape(2 * size, 64, cluster=size)
    words = bench.run("work_between", 2 * size * 64, shape=shape).reshape(-1, 64)
    places = np.arange(2 * size * 64).reshape(-1, 64)
    assert np.array_equal(words, places[peer_of(2 * size, size)] + 3 * places)


def check_through_global(bench: Bench, size: int) -> None:
    shape = LaunchShape(2 * size, 64, cluster=size)
    assert (bench.run("through_global", 2 * size * 64, shape=shape) == 2).all()


def check_fence_then_count(bench: Bench, size: int) -> None:
    shape = LaunchShape(2 * size, 32, cluster=size)
    words = bench.run("fence_then_count", 2 * size * 32 + 2, shape=shape)
    assert words[-2:].tolist() == [2, 2 * size * 32]


def check_grid_between(bench: Bench, size: int) -> None:
    shape = LaunchShape(2 * size, 64, cluster=size)
    words = bench.run("grid_between", 2 * size * 64, shape=shape, grid=True).reshape(-1, 64)
    places = np.arange(2 * size * 64).reshape(-1, 64)
    assert np.array_equal(words, places[peer_of(2 * size, size)])


def check_some_return(bench: Bench, size: int) -> None:
    shape = LaunchShape(2 * size, 64, cluster=size)
    words = bench.run("some_return", 2 * size, shape=shape)
    assert words.tolist() == ([32 * size] + [0] * (size - 1)) * 2


CHECKS = [
    check_identity,
    check_exchange,
    check_push,
    check_atomics,
    check_ring,
    check_levels,
    check_work_between,
    check_through_global,
    check_grid_between,
    check_fence_then_count,
    check_some_return,
]
every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])


@every_check
@pytest.mark.parametrize("size", SIZES)
def test_clusters(bench: Bench, check: Any, size: int) -> None:
    check(bench, size)


@every_check
def test_clusters_under_every_schedule_without_a_race(scheduled: Bench, check: Any) -> None:
    check(scheduled, 4)
    assert [str(race) for race in races_in(scheduled)] == []


def test_the_barrier_in_halves(bench: Bench) -> None:
    check_exchange(bench, 4, "exchange_in_halves")


def test_clusters_in_a_recorded_graph(bench: Bench) -> None:
    bench.stream.counters.reset()
    out = bench.device.allocate(5, np.int32, "out")
    arguments = KernelArguments(Arguments(None, out.address, 4, 0))
    kernel = load(bench.device, "levels")
    with bench.stream.capture() as recorded:
        bench.stream.fill(out, 0)
        bench.stream.launch_cooperative(kernel, LaunchShape(8, 64, cluster=4), arguments)
    graph = recorded()
    for _ in range(3):
        bench.stream.launch_graph(graph)
        bench.stream.synchronize()
        assert out.to_host().tolist() == [8, 16, 24, 32, 0]
    assert bench.stream.counters.launches == 3
    graph.free()
    out.free()


# Limits.


def test_a_shape_tells_of_its_clusters() -> None:
    assert str(LaunchShape(16, 64, cluster=8)) == "16 blocks of 64 threads in clusters of 8"
    assert str(LaunchShape(16, 64)) == "16 blocks of 64 threads"


def test_blocks_must_be_whole_clusters(bench: Bench) -> None:
    for grid in (False, True):
        message = bench.error("identity", shape=LaunchShape(6, 32, cluster=4), grid=grid)
        assert message == "kernel identity: 6 blocks are not whole clusters of 4"


def test_clusters_have_a_largest_size(bench: Bench) -> None:
    for size in (17, 0, -1):
        message = bench.error("identity", shape=LaunchShape(34, 32, cluster=size))
        assert f"clusters of {size} blocks asked for; " in message
        assert message.endswith("has clusters of 1 to 16")
    with pytest.raises(LaunchTooLarge, match="clusters of 17 blocks"):
        bench.device.max_resident_blocks(load(bench.device, "identity"), 32, 0, 17)


def test_a_cooperative_grid_of_too_many_clusters_names_the_limit(bench: Bench) -> None:
    kernel = load(bench.device, "levels")
    limit = bench.device.max_resident_blocks(kernel, 256, cluster=8)
    assert limit > 0
    assert limit % 8 == 0
    assert limit <= bench.device.max_resident_blocks(kernel, 256)
    shape = LaunchShape(limit + 8, 256, cluster=8)
    message = bench.error("levels", 5, shape=shape, n=4, grid=True)
    assert message.startswith("kernel levels: ")
    assert f"{limit + 8} blocks of 256 threads in clusters of 8" in message
    assert str(limit) in message
    words = bench.run("levels", 5, shape=LaunchShape(limit, 256, cluster=8), n=4, grid=True)
    assert words.tolist() == [limit, 2 * limit, 3 * limit, 4 * limit, 0]


@needs_emulation
def test_a_wave_holds_whole_clusters() -> None:
    with EmulatedDevice(multiprocessors=5, blocks_per_multiprocessor=1) as device:
        kernel = load(device, "exchange")
        assert device.max_resident_blocks(kernel, 64, cluster=2) == 4
        assert device.max_resident_blocks(kernel, 64, cluster=4) == 4
        check_exchange(Bench(device), 2)
        check_exchange(Bench(device), 4)
        message = Bench(device).error("exchange", 512, shape=LaunchShape(8, 64, cluster=8))
        assert "8 blocks of 64 threads in clusters of 8, of which not one cluster is" in message


@needs_emulation
@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_a_replay_is_the_same_run(schedule: str, seed: int) -> None:
    # Whether a word was there when it was read is the schedule's choice.
    with EmulatedDevice(schedule=schedule, seed=seed, record=True) as original:
        shape = LaunchShape(4, 32, cluster=2)
        seen = Bench(original).run("racy_exchange", 128, shape=shape, n=1)
        with EmulatedDevice() as again:
            again.replay(original.recorded)
            replayed = Bench(again).run("racy_exchange", 128, shape=shape, n=1)
            assert np.array_equal(seen, replayed)
            assert again.counters == original.counters


@needs_emulation
def test_cluster_barriers_are_counted_once_a_cluster() -> None:
    with EmulatedDevice() as device:
        Bench(device).run("exchange", 4 * 64, shape=LaunchShape(4, 64, cluster=2))
        assert device.counters.cluster_barriers == 4
        assert device.counters.block_barriers == 0
        assert device.counters.shared_accesses == 2 * 4 * 64
        assert device.take_counts()["cluster_barriers"] == 4


@pytest.mark.parametrize("by", ["nvrtc", "nvcc"])
def test_the_words_compile_for_every_architecture(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiler.COMPILER_VARIABLE, by)
    if missing := compiler.cuda_compiler_problem():
        pytest.skip(missing)
    for architecture in (*compiler.ARCHITECTURES, "sm_100"):
        assert compile_cubin(SOURCE, f"clusters-{architecture}", architecture).stat().st_size


# What nothing orders.


def find_races(bench: Bench, name: str, shape: LaunchShape, words: int) -> list[DataRace]:
    bench.run(name, words, shape=shape, n=1)
    return races_in(bench)


def test_a_missing_cluster_barrier_is_a_race(scheduled: Bench) -> None:
    races = find_races(scheduled, "racy_exchange", LaunchShape(2, 32, cluster=2), 64)
    assert {race.second.buffer for race in races} == {"shared memory"}
    # Each of the 64 words is written by its own thread and read by one of the other block.
    assert sum(race.count for race in races) == 64
    for race in races:
        assert {race.first.kind, race.second.kind} == {"write", "read"}
        assert f" on shared memory of block {race.first.owner}[" in str(race)
        assert race.first.owner == race.second.owner
        assert race.first.block != race.second.block
        reader = race.first if race.first.kind == "read" else race.second
        assert reader.place == f"shared memory of block {reader.owner}[{reader.index}]"
        assert reader.owner == 1 - reader.block
        writer = race.second if race.first.kind == "read" else race.first
        assert writer.place == f"shared memory[{writer.index}]"


@pytest.mark.parametrize("name", ["racy_push", "racy_work_between", "racy_through_global"])
def test_races_between_blocks_of_a_cluster(scheduled: Bench, name: str) -> None:
    shape = LaunchShape(4, 32, 32 * 20, cluster=2)
    races = find_races(scheduled, name, shape, 5 * 4 * 32)
    assert races
    assert all(race.first.block // 2 == race.second.block // 2 for race in races)
    assert all(race.first.block != race.second.block for race in races)
    owners = {race.first.owner is None for race in races}
    assert owners == {name == "racy_through_global"}


def test_a_cluster_barrier_without_fences_passes_on_nothing_to_other_clusters(
    scheduled: Bench,
) -> None:
    races = find_races(scheduled, "racy_count", LaunchShape(4, 32, cluster=2), 4 * 32 + 2)
    assert {(race.first.kind, race.second.kind) for race in races} == {("write", "read")}
    assert {(race.first.block // 2, race.second.block) for race in races} == {(1, 0)}


def test_a_block_that_returns_before_its_reader_is_a_race_or_an_error(scheduled: Bench) -> None:
    message = None
    try:
        races = find_races(scheduled, "bug_no_barrier_before_exit", PAIR, 2)
    except DeviceError as error:
        races, message = races_in(scheduled), str(error)
    assert races or (message is not None and message.endswith("which has returned"))
    for race in races:
        assert (race.first.kind, race.second.kind) == ("read", "exit")
        assert race.first.owner == race.second.owner == race.second.block == 1 - race.first.block
        assert str(race.second).endswith("at the kernel's end")


# What CUDA leaves undefined.


@pytest.fixture
def emulated() -> Iterator[Bench]:
    if (problem := emulated_problem()) is not None:
        pytest.skip(problem)
    with EmulatedDevice() as device:
        yield Bench(device)


def test_a_read_of_a_block_that_has_returned(scheduled: Bench) -> None:
    message = scheduled.error("bug_exit_before_read", 3, shape=PAIR, n=500)
    assert (
        "block 0, thread 0 (warp 0, lane 0): read of 4 bytes in the shared memory of block 1, "
        in (message)
    )
    assert message.endswith("which has returned")


def test_a_rank_that_the_cluster_has_not(emulated: Bench) -> None:
    for rank in (2, -1):
        message = emulated.error("bug_rank", 128, shape=PAIR, n=rank)
        assert f": there is no block of rank {rank} in a cluster of 2" in message
        assert "thread 0 (warp 0, lane 0): shared_of at clusters.cpp:" in message
    assert "rank 1 in a cluster of 1" in emulated.error(
        "bug_rank", 64, shape=LaunchShape(1, 64), n=1
    )


@pytest.mark.parametrize("name", ["bug_not_shared", "bug_twice_mapped"])
def test_only_the_blocks_own_shared_memory_is_mapped(emulated: Bench, name: str) -> None:
    message = emulated.error(name, shape=PAIR)
    assert "shared_of at clusters.cpp:" in message
    assert message.endswith("is not in the block's shared memory")


def test_past_the_end_of_another_blocks_shared_memory(emulated: Bench) -> None:
    emulated.run("bug_past_end", shape=LaunchShape(2, 1, 256, 2), n=63)
    for n in (64, 70):
        message = emulated.error("bug_past_end", shape=LaunchShape(2, 1, 256, 2), n=n)
        assert "block 1, thread 0 (warp 0, lane 0): write of 4 bytes at byte" in message
        assert "of block 0's" in message
        assert message.endswith("bytes of shared memory")


def test_misused_halves(scheduled: Bench) -> None:
    message = scheduled.error("bug_arrives_twice", shape=PAIR)
    assert "arrives at cluster barrier at clusters.cpp:" in message
    assert "without having waited since it arrived at cluster barrier at clusters.cpp:" in message
    message = scheduled.error("bug_waits_only", shape=PAIR)
    assert "waits for cluster barrier at clusters.cpp:" in message
    assert message.endswith("without having arrived")


def test_divergent_cluster_barrier(scheduled: Bench) -> None:
    message = scheduled.error("bug_divergent", shape=PAIR)
    assert "divergent barrier" in message
    assert message.count("cluster barrier at clusters.cpp:") == 2
    assert message.count("thread ") == 2


def test_a_missing_arrival_is_a_deadlock(scheduled: Bench) -> None:
    message = scheduled.error("bug_missing_arrival", shape=PAIR, grid=True)
    assert message.startswith("kernel bug_missing_arrival: deadlock: ")
    assert "block 0, thread 0 (warp 0, lane 0) waits for grid sync at" in message
    assert "block 1, thread 0 (warp 0, lane 0) waits for cluster barrier at" in message
    assert message.count("(and 63 more)") == 2
    message = scheduled.error("bug_against_block_barrier", shape=PAIR)
    assert "block 0, thread 0 (warp 0, lane 0) waits for __syncthreads at" in message
    assert "block 0, thread 32 (warp 1, lane 0) waits for cluster barrier at" in message

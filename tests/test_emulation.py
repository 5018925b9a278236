"""The emulated device: CUDA's words have their meaning, and each seeded bug is caught."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from persistent_bfs.compiler import compile_emulated
from persistent_bfs.device.base import (
    DeviceError,
    DeviceMemoryError,
    KernelArguments,
    LaunchShape,
)
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem

pytestmark = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)

KERNELS = Path(__file__).parent / "kernels"
POISON = np.int32(np.uint32(0xCCCCCCCC).view(np.int32))
EVERY_SCHEDULE = [
    ("roundrobin", 0),
    ("random", 1),
    ("random", 2),
    ("adversarial", 0),
    *(("adversarial", seed) for seed in range(1, 9)),
]


class Arguments(ctypes.Structure):
    _fields_ = (
        ("in", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("n", ctypes.c_int),
        ("handle", ctypes.c_ulonglong),
    )


class Bench:
    """A device, the kernels of both files, and short ways to run one."""

    def __init__(self, libraries, **options):
        self.device = EmulatedDevice(**options)
        self.stream = self.device.stream()
        self.libraries = libraries

    def kernel(self, name):
        for path, source in self.libraries:
            if f"KERNEL({name})" in source:
                return self.device.load_library(path, [name])[name]
        raise KeyError(name)

    def out(self, values, name="out"):
        values = np.asarray(values, np.int32)
        buffer = self.device.allocate(values.size, np.int32, name)
        if values.size:
            host = self.device.pinned(values.size, np.int32)
            host[:] = values
            self.stream.copy_to_device(buffer, host)
        return buffer

    def launch(
        self, name, out, *, array=None, n=0, blocks=1, threads=32, shared=0, grid=False, early=False
    ):
        source = None if array is None else self.device.upload(np.asarray(array, np.int32), "in")
        arguments = Arguments(source.address if source else None, out.address, n, 0)
        launch = self.stream.launch_cooperative if grid else self.stream.launch
        launch = self.stream.launch_dependent if early else launch
        shape = LaunchShape(blocks, threads, shared)
        launch(self.kernel(name), shape, KernelArguments(arguments))

    def run(self, name, out, **options):
        """The words of out after the launch."""
        buffer = self.out(out)
        self.launch(name, buffer, **options)
        self.stream.synchronize()
        return buffer.to_host()

    def error(self, name, out=(0,), **options):
        """The message of the error that the launch must end in."""
        with pytest.raises(DeviceError) as caught:
            self.run(name, out, **options)
        return str(caught.value)


@pytest.fixture(scope="module")
def libraries():
    sources = {name: (KERNELS / f"{name}.cuh").read_text() for name in ("words", "bugs")}
    return [(compile_emulated(source, name), source) for name, source in sources.items()]


@pytest.fixture
def make_bench(libraries):
    benches = []

    def make(**options):
        benches.append(Bench(libraries, **options))
        return benches[-1]

    yield make
    for bench in benches:
        bench.device.close()


@pytest.fixture
def bench(make_bench):
    return make_bench()


@pytest.fixture(params=EVERY_SCHEDULE, ids=lambda choice: f"{choice[0]}-{choice[1]}")
def any_bench(make_bench, request):
    schedule, seed = request.param
    return make_bench(schedule=schedule, seed=seed)


# What CUDA's words mean, whatever the schedule.


def test_identity(bench):
    rows = bench.run("identity", np.zeros(8 * 3 * 40), blocks=3, threads=40).reshape(-1, 8)
    rank = np.arange(120)
    expected = [rank % 40, rank // 40, 40, 3, 110, 32, rank % 40 + 40, 3 + 120]
    for column, values in zip(rows.T, expected, strict=True):
        assert np.array_equal(column, np.broadcast_to(values, 120))


def test_block_sum(any_bench):
    values = np.arange(1000)
    assert any_bench.run("block_sum", [0], array=values, n=1000, blocks=4, threads=256) == [499500]


def test_shared_histogram_of_two_instantiations(any_bench):
    values = np.random.default_rng(3).integers(0, 1000, 500)
    counts = any_bench.run("histogram", np.zeros(17), array=values, n=500, blocks=3, threads=64)
    assert np.array_equal(counts[:10], np.bincount(values % 10, minlength=10))
    assert np.array_equal(counts[10:], np.bincount(values % 7, minlength=7))


def test_dynamic_shared_memory(any_bench):
    values = np.arange(128)
    reversed_rows = any_bench.run(
        "dynamic_reverse", np.zeros(128), array=values, blocks=2, threads=64, shared=256
    )
    assert np.array_equal(reversed_rows, values.reshape(2, 64)[:, ::-1].ravel())


def test_atomics(any_bench):
    start = [0, 0, 99, -99, -1, 0, 0, 0, 0, 0, 0, 0] + [0] * 4
    words = any_bench.run("atomics", start, threads=64)
    assert list(words[:9]) == [2016, -128, 5 - 63, 63 - 40, 0, 2**20 - 1, 0, 1, 1]
    assert 1 <= words[9] <= 64
    assert list(words[10:12]) == [1, 64 % 10]
    assert list(words[12:].view(np.uint64)) == [64 << 33, 1 << 63]


def test_grid_sync(any_bench):
    counts = any_bench.run("grid_levels", np.zeros(6), n=5, blocks=4, threads=32, grid=True)
    assert list(counts) == [4] * 5 + [0]
    assert any_bench.device.counters.grid_barriers == 5


def test_warp_words(any_bench):
    words = any_bench.run("warp_words", np.zeros(23 * 32)).reshape(23, 32).view(np.uint32)
    lane = np.arange(32)
    segment = lane // 16 * 16
    groups = [sum(1 << other for other in lane if other // 5 == own // 5) for own in lane]
    assert np.array_equal(words[0], np.full(32, sum(1 << i for i in range(0, 32, 3))))
    assert np.array_equal(words[1], np.full(32, 1 + 2))
    assert np.array_equal(words[2], np.full(32, 25))
    assert np.array_equal(words[3], lane // 8 * 8 + 2)
    assert np.array_equal(words[4], np.where(lane - segment >= 3, lane - 3, lane))
    assert np.array_equal(words[5], np.where(lane - segment < 13, lane + 3, lane))
    assert np.array_equal(words[6], lane ^ 5)
    assert np.array_equal(words[7], 1 << (lane.astype(np.uint32) ^ 1))
    assert np.array_equal(words[8], 2 * (lane ^ 1) + 1)
    assert np.array_equal(words[9], groups)
    assert np.array_equal(words[10:12], np.ones((2, 32)))
    assert np.array_equal(words[12:14].view(np.int32), np.full((2, 32), -16))
    assert np.array_equal(words[14], np.full(32, 0xFFFFFFF0))
    assert np.array_equal(words[15], np.full(32, 0xFFFF))
    assert np.array_equal(words[16], np.full(32, 8 + 6400 + 40000))
    assert np.array_equal(words[17], np.full(32, 31 + 3200 + 630000))
    assert np.array_equal(words[18:20], np.ones((2, 32)))
    assert np.array_equal(words[20], np.full(32, -1 + 7 + 1 + 1))
    assert np.array_equal(words[21], np.where(lane < 16, 0xAAAA, 0xAAAA0000))
    assert np.array_equal(words[22], np.ones(32))


def test_shuffle_from_outside_the_mask_gives_poison(bench):
    values = bench.run("lost_shuffle", np.zeros(16))
    assert list(values) == [1, 1, 1, 1, POISON, POISON, POISON, POISON] * 2


def test_votes_of_a_block(any_bench):
    values = any_bench.run("votes", np.zeros(96), threads=96)
    assert np.array_equal(values, np.full(96, 1 + 4 + 100 * 48))


def test_vector_types(bench):
    pairs = bench.run("vectors", np.zeros(64), array=np.arange(128))
    assert np.array_equal(pairs, np.arange(128).reshape(-1, 2).sum(1))


def test_unwritten_shared_memory_is_poison_in_every_block(bench):
    for _ in range(2):
        values = bench.run("unwritten_shared", np.zeros(64), blocks=5, threads=64)
        assert np.array_equal(values, np.full(64, POISON))


def test_returned_threads_do_not_hold_a_block_barrier(any_bench):
    assert any_bench.run("some_return", [0], threads=64) == [32]


def test_a_spinning_barrier_ends(any_bench):
    words = any_bench.run("spin_barrier", np.zeros(4), n=3, blocks=2, threads=16, grid=True)
    assert list(words) == [96, 96, 3, 0]


def test_blocks_run_in_waves(make_bench):
    bench = make_bench(multiprocessors=1, blocks_per_multiprocessor=2)
    rows = bench.run("identity", np.zeros(8 * 7 * 32), blocks=7).reshape(-1, 8)
    assert np.array_equal(rows[:, 1], np.arange(7 * 32) // 32)
    assert set(rows[:, 3]) == {7}


def test_counters_are_exact(any_bench):
    any_bench.run("counted", np.zeros(400), array=-np.ones(128), blocks=2, threads=64, grid=True)
    counters = any_bench.device.counters
    assert counters.plain_loads == 128
    assert counters.plain_stores == 128
    assert counters.shared_accesses == 256
    assert counters.relaxed_loads == 128
    assert counters.relaxed_stores == 128
    assert counters.atomics == 4
    assert counters.warp_collectives == 4
    assert counters.block_barriers == 2
    assert counters.grid_barriers == 2
    assert counters.lane_slots == 128
    counters.reset()
    assert counters == type(counters)()


# Seeded bugs: each ends in an error that says who and what, or in a wrong result.


def test_missing_barrier_shows(make_bench):
    right = np.arange(64)[::-1]
    parked = make_bench(schedule="adversarial", seed=0).run(
        "missing_barrier", np.zeros(64), threads=64
    )
    assert not np.array_equal(parked, right)
    bench = make_bench(schedule="adversarial", seed=1)
    results = [bench.run("missing_barrier", np.zeros(64), threads=64) for _ in range(20)]
    assert any(POISON in result for result in results)


def claims(make_bench, kernel, schedule, seeds):
    bench = make_bench(schedule=schedule)
    counts = []
    for seed in seeds:
        bench.device.reseed(seed)
        counts.append(int(bench.run(kernel, [0, 0], blocks=2)[1]))
    return counts


def test_check_then_write_is_split_by_parking_alone(make_bench):
    assert claims(make_bench, "check_then_write", "adversarial", [0]) == [64]
    found = [
        count > 1 for count in claims(make_bench, "check_then_write", "adversarial", range(1, 60))
    ]
    assert any(found)
    assert claims(make_bench, "check_then_write", "roundrobin", [0]) == [1]
    assert set(claims(make_bench, "check_then_write", "random", range(60))) == {1}


def test_compare_and_swap_claims_once(make_bench):
    assert set(claims(make_bench, "claim_cas", "adversarial", range(200))) == {1}


def test_the_same_seed_gives_the_same_run(make_bench):
    seeds = range(1, 30)
    first = claims(make_bench, "check_then_write", "adversarial", seeds)
    assert claims(make_bench, "check_then_write", "adversarial", seeds) == first
    assert len(set(first)) > 1


def test_early_return_before_grid_sync(any_bench):
    message = any_bench.error("early_return", blocks=2, grid=True)
    assert message.startswith("kernel early_return: ")
    assert "block 1, thread 5 (warp 0, lane 5)" in message
    assert "grid sync at words.cpp" in message or "grid sync at bugs.cpp" in message
    assert "return" in message


def test_return_while_the_grid_waits(bench):
    message = bench.error("late_return", blocks=2, grid=True)
    assert "block 0, thread 5 (warp 0, lane 5): returned, but" in message


def test_grid_sync_needs_a_cooperative_launch(any_bench):
    message = any_bench.error("not_cooperative", blocks=2)
    assert "grid sync" in message
    assert "not cooperative" in message


def test_a_dependent_launch_waits_for_the_grid_in_front(any_bench):
    for early in (True, False):
        out = any_bench.run("wait_and_count", [0], blocks=3, threads=40, early=early)
        assert out == [120]


def test_memory_before_the_wait_for_the_grid_in_front(any_bench):
    message = any_bench.error("count_before_waiting", blocks=2, threads=64, early=True)
    assert "thread 7 (warp 0, lane 7): touches global memory before it waits" in message
    message = any_bench.error("read_before_waiting", array=np.ones(32), early=True)
    assert "touches global memory before it waits for the grid in front" in message
    # In other launches there is nothing to wait for.
    assert any_bench.run("count_before_waiting", [0], blocks=2, threads=64) == [128]
    assert any_bench.run("read_before_waiting", [0], array=np.ones(32)) == [32]


def test_threads_that_never_wait_for_the_grid_in_front(any_bench):
    message = any_bench.error("some_never_wait", threads=64, early=True)
    assert "(warp 1, lane " in message
    assert "returned, and did not wait for the grid in front" in message
    assert any_bench.run("some_never_wait", [0], threads=40, early=True) == [40]


@pytest.mark.parametrize("kernel", ["divergent_barrier", "divergent_votes"])
def test_divergent_block_barrier(any_bench, kernel):
    message = any_bench.error(kernel, threads=64)
    assert "divergent barrier" in message
    assert message.count("__syncthreads") == 2
    assert message.count("thread ") == 2


def test_deadlock_of_block_and_grid_barrier(any_bench):
    message = any_bench.error("barrier_against_grid", threads=64, grid=True)
    assert message.startswith("kernel barrier_against_grid: deadlock: ")
    assert "block 0, thread 0 (warp 0, lane 0) waits for __syncthreads at" in message
    assert "block 0, thread 32 (warp 1, lane 0) waits for grid sync at" in message
    assert message.count("(and 31 more)") == 2


def test_deadlock_of_block_barrier_and_collective(any_bench):
    message = any_bench.error("barrier_against_warp", threads=64)
    assert "deadlock" in message
    assert "block 0, thread 3 (warp 0, lane 3) waits for __syncthreads at" in message
    assert "waits for __syncwarp at" in message


def test_mismatched_collective(any_bench):
    message = any_bench.error("mismatched_operation")
    assert "mismatched collective" in message
    assert "__ballot_sync" in message
    assert "__any_sync" in message


def test_mismatched_mask(any_bench):
    message = any_bench.error("mismatched_mask")
    assert "mask 00000fff" in message
    assert "mask ffffffff" in message


def test_mask_without_its_own_lane(bench):
    assert "thread 16 (warp 0, lane 16): __ballot_sync" in bench.error("own_lane_left_out")


def test_return_of_a_lane_that_a_mask_names(any_bench):
    message = any_bench.error("named_lane_returns")
    assert "lane 31" in message
    assert "__ballot_sync" in message


def test_mask_that_names_a_lane_the_block_has_not(bench):
    assert "names lane 20, which" in bench.error("block_sum", n=0, threads=20)


def test_reads_out_of_bounds(bench):
    message = bench.error("read_past_end", np.zeros(32), array=np.zeros(40), n=20)
    assert "block 0, thread 20 (warp 0, lane 20)" in message
    assert "read of 4 bytes 0 bytes after the end of the buffer 'in' of 160 bytes" in message
    message = bench.error("read_past_end", np.zeros(32), array=np.zeros(40), n=-3)
    assert "thread 0 (warp 0, lane 0): read of 4 bytes 12 bytes before the buffer 'in'" in message


def test_writes_out_of_bounds(bench):
    message = bench.error("write_past_end", np.zeros(32), n=1)
    assert "thread 31 (warp 0, lane 31): write of 4 bytes 0 bytes after" in message
    assert "the end of the buffer 'out' of 128 bytes" in message
    assert "after the end of the buffer 'out'" in bench.error("atomic_past_end", [0], n=5)


def test_an_upload_is_read_only(bench):
    for kernel in ("write_read_only", "atomic_read_only"):
        message = bench.error(kernel, array=np.zeros(9), n=2)
        assert "write of 4 bytes to byte 8 of the read-only buffer 'in'" in message


def test_a_freed_buffer_is_out_of_bounds(bench):
    buffer = bench.out([0])
    buffer.free()
    buffer.free()
    with pytest.raises(DeviceError, match="read of 4 bytes"):
        bench.launch("add", buffer, n=1)
    with pytest.raises(DeviceError, match="'out' has been freed"):
        buffer.to_host()


def test_misaligned_access(bench):
    assert "misaligned read of 8 bytes" in bench.error("misaligned", array=np.zeros(4))


def test_shared_memory_out_of_bounds(bench):
    message = bench.error("shared_past_end", n=64, threads=1, shared=256)
    assert "write of 4 bytes at byte" in message
    assert "of shared memory" in message


def test_local_memory_of_another_thread(bench):
    message = bench.error("foreign_local", np.zeros(32), n=1)
    assert "read of 4 bytes in the local memory of block 0, thread 0" in message


def test_stack_overflow(bench):
    assert bench.run("deep_stack", [0], n=20, threads=1) == [210]
    message = bench.error("deep_stack", n=10000, threads=1)
    assert "local memory" in message


@pytest.mark.parametrize("schedule", ["roundrobin", "random", "adversarial"])
@pytest.mark.parametrize("kernel", ["spins_for_ever", "plain_spins_for_ever", "barriers_for_ever"])
def test_livelock(make_bench, kernel, schedule):
    bench = make_bench(schedule=schedule, point_limit=200_000)
    message = bench.error(kernel)
    assert "livelock: still running after 200000 scheduling points" in message


# Recorded schedules.


@pytest.mark.parametrize(("schedule", "seed"), EVERY_SCHEDULE)
def test_a_replay_is_the_same_run(make_bench, schedule, seed):
    original = make_bench(schedule=schedule, seed=seed, record=True)
    expected = [
        original.run("check_then_write", [0, 0], blocks=2),
        original.run("spin_barrier", np.zeros(4), n=2, threads=16),
        original.run("missing_barrier", np.zeros(64), blocks=10, threads=64),
    ]
    again = make_bench()
    again.device.replay(original.device.recorded)
    outcome = [
        again.run("check_then_write", [0, 0], blocks=2),
        again.run("spin_barrier", np.zeros(4), n=2, threads=16),
        again.run("missing_barrier", np.zeros(64), blocks=10, threads=64),
    ]
    for one, other in zip(outcome, expected, strict=True):
        assert np.array_equal(one, other)
    assert again.device.counters == original.device.counters


def test_a_replay_reproduces_an_error(make_bench):
    original = make_bench(schedule="adversarial", seed=5, record=True)
    message = original.error("mismatched_operation", blocks=2)
    again = make_bench()
    again.device.replay(original.device.recorded)
    assert again.error("mismatched_operation", blocks=2) == message


def test_a_replay_of_another_launch_is_refused(make_bench):
    original = make_bench(record=True)
    original.run("add", [0], n=1, threads=4)
    again = make_bench()
    again.device.replay(original.device.recorded)
    assert "the recorded schedule" in again.error("spin_barrier", np.zeros(4), n=2)


# Streams, graphs and limits.


def test_uploads_take_any_array(bench):
    array = np.arange(24, dtype=np.int64).reshape(4, 6)[::2, ::-1]
    array.flags.writeable = False
    buffer = bench.device.upload(array, "strided")
    assert np.array_equal(buffer.to_host(), array.ravel())
    assert np.array_equal(buffer.to_host(2), [5, 4])
    assert np.array_equal(buffer.to_host(start=1), array.ravel()[1:])
    assert np.array_equal(buffer.to_host(1, start=1), [4])
    assert bench.device.upload(np.empty(0, np.int32), "empty").to_host().size == 0


def test_fresh_memory_is_poisoned_and_filled(bench):
    buffer = bench.device.allocate(4, np.int32, "words")
    assert list(buffer.to_host()) == [POISON] * 4
    bench.stream.fill(buffer, -1, start=1, count=2)
    assert list(buffer.to_host()) == [POISON, -1, -1, POISON]
    bench.stream.fill(buffer, 7)
    assert list(buffer.to_host()) == [7] * 4
    with pytest.raises(
        DeviceError, match=r"fill: bytes 4 to 20 of the buffer 'words', which has 16"
    ):
        bench.stream.fill(buffer, 0, start=1, count=4)


def test_a_copy_to_the_host_arrives_at_the_wait(bench):
    buffer = bench.device.allocate(2, np.int32, "words")
    host = bench.device.pinned(1, np.int32)
    bench.stream.fill(buffer, 3)
    bench.stream.copy_to_host(host, buffer, start=4)
    bench.stream.fill(buffer, 4)
    assert host == [0]
    bench.stream.synchronize()
    assert host == [3]
    assert bench.stream.counters.host_syncs == 1
    assert bench.stream.counters.launches == 0
    with pytest.raises(DeviceError, match=r"Device\.pinned"):
        bench.stream.copy_to_host(np.zeros(1, np.int32), buffer)


def test_kernels_read_pinned_memory(bench):
    host = bench.device.pinned(1, np.int32)
    arguments = KernelArguments(Arguments(None, host.ctypes.data, 5, 0))
    bench.stream.launch(bench.kernel("add"), LaunchShape(2, 32), arguments)
    bench.stream.synchronize()
    assert host == [5]


def test_pinned_memory_is_there_as_long_as_its_array_or_a_view(bench):
    host = bench.device.pinned(4, np.int32)
    view = host[1:2]
    arguments = KernelArguments(Arguments(None, view.ctypes.data, 5, 0))
    launch = partial(bench.stream.launch, bench.kernel("add"), LaunchShape(1, 32), arguments)
    del host
    launch()
    assert view == [5]
    del view
    with pytest.raises(DeviceError, match="add"):
        launch()
    assert bench.device._pinned_arrays() == []


def test_a_graph_keeps_arguments_and_reads_pinned_memory_anew(bench):
    buffer, host = bench.out([0]), bench.device.pinned(1, np.int32)
    structure = Arguments(None, buffer.address, 10, 0)
    kernel = bench.kernel("add")
    arguments = KernelArguments(structure)
    with bench.stream.capture() as recorded:
        bench.stream.copy_to_device(buffer, host)
        bench.stream.launch(kernel, LaunchShape(1, 32), arguments)
        structure.n = 100
        bench.stream.launch(kernel, LaunchShape(1, 32), arguments)
    structure.n = 1000
    assert list(buffer.to_host()) == [0]
    graph = recorded()
    for start in (1, 2):
        host[0] = start
        bench.stream.launch_graph(graph)
        assert list(buffer.to_host()) == [start + 110]
    assert bench.stream.counters.launches == 2
    graph.free()
    with pytest.raises(DeviceError, match="freed"):
        bench.stream.launch_graph(graph)


def test_while_graph(bench):
    kernel = bench.kernel("count_down")
    buffer, host = bench.out([0, 0]), bench.device.pinned(2, np.int32)

    def body(stream, handle):
        arguments = Arguments(None, buffer.address, 3, handle)
        stream.launch(kernel, LaunchShape(1, 32), KernelArguments(arguments))

    graph = bench.device.while_graph(
        bench.stream,
        lambda stream: stream.copy_to_device(buffer, host),
        body,
        lambda stream: stream.copy_to_host(host, buffer),
    )
    for turns in (4, 1, 9):
        host[:] = turns, 0
        bench.stream.launch_graph(graph)
        bench.stream.synchronize()
        assert list(host) == [0, 3 * turns]
    assert (bench.stream.counters.launches, bench.stream.counters.host_syncs) == (3, 3)


def test_nothing_is_allocated_while_capturing(bench):
    for forbidden in (
        lambda: bench.device.allocate(1, np.int32, "late"),
        lambda: bench.device.pinned(1, np.int32),
        lambda: bench.kernel("add"),
        bench.stream.synchronize,
    ):
        with (
            pytest.raises(DeviceError, match="not allowed while a stream is being captured"),
            bench.stream.capture(),
        ):
            forbidden()
    assert bench.run("add", [1], n=1) == [2]


def test_oversized_launches_name_limit_and_number(make_bench):
    bench = make_bench(multiprocessors=2, blocks_per_multiprocessor=4)
    kernel = bench.kernel("grid_levels")
    assert bench.device.max_resident_blocks(kernel, 256) == 8
    assert bench.device.max_resident_blocks(kernel, 1024) == 4
    assert bench.device.max_resident_blocks(kernel, 32, 100 * 1024) == 4
    assert bench.error("grid_levels", np.zeros(2), n=1, blocks=9, grid=True) == (
        "kernel grid_levels: a cooperative launch of 9 blocks of 32 threads, of which 8 blocks "
        "are resident at once on the emulated device (2 multiprocessors)"
    )
    assert "1025 threads a block; a block has 1 to 1024" in bench.error("add", threads=1025)
    assert "a launch of 0 blocks" in bench.error("add", blocks=0)
    assert "300000 bytes of shared memory" in bench.error("add", shared=300_000)


def test_memory_is_limited(make_bench):
    device = make_bench(memory_bytes=1000).device
    buffer = device.allocate(200, np.int32, "most")
    assert device.free_bytes() == 200
    with pytest.raises(DeviceMemoryError, match="'more' needs 400 bytes and 200 are free"):
        device.allocate(100, np.int32, "more")
    buffer.free()
    assert device.free_bytes() == 1000


def test_what_the_device_says_of_itself(bench):
    info = bench.device.info
    assert (info.kind, info.name) == ("emulated", "emulated device (4 multiprocessors)")
    assert (info.architecture, info.warp_size) == ("x86-64", 32)
    event = bench.stream.record()
    assert bench.stream.elapsed_ms(event, bench.stream.record()) is None


def test_unknown_schedule():
    with pytest.raises(ValueError, match="unknown schedule 'fair'; choose one of roundrobin"):
        EmulatedDevice(schedule="fair")

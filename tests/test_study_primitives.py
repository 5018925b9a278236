from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from persistent_bfs import compiler
from persistent_bfs.config import PRIMITIVES as PROGRAM
from persistent_bfs.device import emulated_problem, open_device
from persistent_bfs.device.base import Device, DeviceError, LaunchShape
from persistent_bfs.device.emulated import EmulatedDevice
from persistent_bfs.study import primitives
from persistent_bfs.study.primitives import LINE, PRIMITIVES, Bench, Effort, ring

pytestmark = pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))

Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    opened = open_device("emulated").device
    assert opened is not None
    with opened:
        yield opened


@pytest.fixture(scope="module")
def rows(device: Device) -> Rows:
    with Bench(device, Effort.of("emulated", quick=False)) as bench:
        found = {name: primitives.measure_primitive(bench, PRIMITIVES[name]) for name in PRIMITIVES}
    return {name: row["points"] for name, row in found.items()}


def counts(point: dict[str, Any], name: str) -> int:
    return int(point["counts"][name])


def test_every_file_is_in_the_program_and_every_kernel_in_a_file() -> None:
    folder = compiler.source_folder() / "primitives"
    program = (compiler.source_folder() / PROGRAM.loop).read_text()
    files = {path.name for path in folder.glob("*.cuh")} - {"primitives.cuh", "arguments.cuh"}
    assert set(re.findall(r'#include "(\w+\.cuh)"', program)) == files
    sources = "".join((folder / name).read_text() for name in files)
    for kernel in PROGRAM.kernels:
        assert re.search(rf"\b{kernel}\(", sources), kernel


def test_the_layout_is_the_compilers() -> None:
    text = (
        '#include "primitives/arguments.cuh"\n'
        'extern "C" __attribute__((visibility("default"))) int size = '
        "sizeof(persistent_bfs::PrimitiveArguments);\n"
    )
    library = ctypes.CDLL(str(compiler.compile_emulated(text, "arguments")))
    size = ctypes.c_int.in_dll(library, "size").value
    assert size == ctypes.sizeof(primitives.PrimitiveArguments)


def test_no_time_is_told_where_there_is_none(rows: Rows) -> None:
    assert all(point["samples"] is None for points in rows.values() for point in points)


def test_an_empty_launch_is_one_launch_and_touches_nothing(rows: Rows) -> None:
    names = ("launch_issue", "launch_completion", "cooperative_issue", "cooperative_completion")
    for name in names:
        for point in rows[name]:
            assert (point["launches"], point["host_syncs"]) == (1, 0)
            touched = {what: n for what, n in point["counts"].items() if n}
            assert set(touched) == {"fiber_switches"}


def test_queued_launches_are_as_many_as_said(rows: Rows) -> None:
    for point in rows["launch_queued"]:
        assert point["launches"] == point["repeats"] == 3


def test_the_round_trip_waits_once(rows: Rows) -> None:
    (point,) = rows["round_trip"]
    assert (point["launches"], point["host_syncs"]) == (1, 1)


def test_a_graph_is_one_launch_whatever_its_nodes(rows: Rows) -> None:
    for name in ("graph_issue", "graph_completion", "graph_device", "graph_dependent"):
        assert [point["point"]["nodes"] for point in rows[name]] == [1, 3, 10, 30]
        assert all(point["launches"] == 1 for point in rows[name])
        # A warp a node, each of whose threads ends once: so the nodes did run.
        assert [counts(p, "fiber_switches") for p in rows[name]] == [32, 96, 320, 960]


def test_a_while_node_turns_as_often_as_it_is_told(rows: Rows) -> None:
    assert [point["point"] for point in rows["while_turn"]] == [{"nodes": 1}, {"nodes": 2}]
    for point in rows["while_turn"]:
        assert point["launches"] == 1
        assert counts(point, "plain_loads") == counts(point, "plain_stores") == 4
        assert point["repeats"] == 4
        # A warp a node and turn, each of whose threads ends once: so the other nodes did run.
        assert counts(point, "fiber_switches") == 32 * 4 * point["point"]["nodes"]


def test_barriers_are_waited_for_as_often_as_said(rows: Rows) -> None:
    assert len(rows["grid_sync"]) == len(rows["own_barrier"]) == 6
    for point in rows["grid_sync"]:
        assert counts(point, "grid_barriers") == point["repeats"] == 4
        assert counts(point, "atomics") == 0
    for point in rows["own_barrier"]:
        arrivals = point["repeats"] * point["point"]["blocks"]
        assert counts(point, "atomics") == arrivals
        assert counts(point, "grid_barriers") == 0
        assert counts(point, "block_barriers") == 2 * arrivals
    for point in rows["cluster_barrier"]:
        # Blocks of a launch are one cluster here, and each cluster's barrier counts once.
        assert counts(point, "cluster_barriers") == point["repeats"] == 16
    for point in rows["block_sync"]:
        assert counts(point, "block_barriers") == point["repeats"] == 16


def test_loads_atomics_and_copies_are_as_many_as_said(rows: Rows) -> None:
    assert [point["point"]["memory"] for point in rows["dependent_load"]] == ["L1", "L2", "DRAM"]
    for point in rows["dependent_load"]:
        assert counts(point, "plain_loads") == point["repeats"] + 1  # and where it stood
    (atomics,) = rows["dependent_atomic"]
    assert counts(atomics, "atomics") == atomics["repeats"]
    (copy,) = rows["copy_rate"]
    words = copy["point"]["bytes"] // 16
    assert counts(copy, "plain_loads") == counts(copy, "plain_stores") == words


@pytest.mark.parametrize("places", [1, 2, 3, 64])
def test_a_ring_goes_through_every_line_once(places: int) -> None:
    following = ring(places)
    place, seen = 0, []
    for _ in range(places):
        seen.append(place)
        place = int(following[place])
    assert place == 0
    assert sorted(seen) == [LINE * line for line in range(places)]


def test_a_barrier_that_is_left_out_is_not_timed(device: Device) -> None:
    with Bench(device, Effort.of("emulated", quick=True)) as bench:
        # The kernel waits 3 times; who times 4 of them must not get a time.
        bench.each("sync_grid", primitives.SMALL, 3, cooperative=True, leaves=3)
        with pytest.raises(DeviceError, match="sync_grid, 1 block of 32 threads: 3 instead of 4"):
            bench.each("sync_grid", primitives.SMALL, 3, cooperative=True, leaves=4)


def test_a_ring_that_is_cut_short_is_seen(device: Device) -> None:
    whole = ring(32)
    short = whole.copy()
    short[short[0]] = 0
    with (
        Bench(device, Effort.of("emulated", quick=True)) as bench,
        bench.buffer(short, "ring") as places,
    ):
        bench.arguments.next = places.address
        with pytest.raises(DeviceError, match="a chase of 9 loads ends: "):
            primitives._chase(bench, whole, 9)


def test_what_the_device_cannot_do_is_skipped_with_the_reason(device: Device) -> None:
    class Without:
        class info:
            cooperative_launch = False
            while_nodes = False
            driver = "CUDA 12.3"
            clusters = 1
            dependent_nodes = False

    missing: Any = Without
    for name, words in {
        "grid_sync": "no cooperative launch",
        "own_barrier": "no cooperative launch",
        "cooperative_issue": "no cooperative launch",
        "while_turn": "this one is CUDA 12.3",
        "cluster_barrier": "no thread block clusters",
        "graph_dependent": "need a GPU of sm_90 and a driver of CUDA 12.3",
    }.items():
        reason = PRIMITIVES[name].missing(missing)
        assert reason is not None
        assert words in reason


def test_the_counting_barrier_has_no_data_race() -> None:
    for schedule in ("roundrobin", "random"):
        with EmulatedDevice(schedule=schedule, seed=3, check_races=True) as opened:
            with Bench(opened, Effort.of("emulated", quick=True)) as bench:
                shape = LaunchShape(4, 64)
                bench.each("sync_grid_own", shape, 5, cooperative=True, leaves=5 * 4)
            assert opened.races == []


@pytest.mark.parametrize("architecture", ["sm_75", "sm_120"])
def test_a_compiler_for_gpus_takes_the_primitives(architecture: str) -> None:
    if missing := compiler.cuda_compiler_problem():
        pytest.skip(missing)
    used = compiler.resources(primitives.CONFIG, architecture)
    assert set(used) == set(PROGRAM.kernels)
    for kernel, resources in used.items():
        assert resources.local_bytes == 0, kernel
        assert resources.registers * PROGRAM.block_threads <= 65536, kernel


@pytest.mark.cuda
@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_gpu_times_every_primitive(name: str) -> None:
    opened = open_device("cuda").device
    assert opened is not None
    with opened, Bench(opened, Effort.of("cuda", quick=True)) as bench:
        row = primitives.measure_primitive(bench, PRIMITIVES[name])
    if row["skipped"]:
        pytest.skip(row["skipped"])
    for point in row["points"]:
        assert len(point["samples"]) >= 7
        assert np.median(point["samples"]) > 0, point

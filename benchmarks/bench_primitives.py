"""The study's primitives, a call and a wait a round; the table's own figures in ``extra_info``.

``medians`` there are those of `persistent_bfs.study.primitives` by the clock the table names, point
by point; what pytest-benchmark shows is one launch and wait of the same kernels from Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from searches import ROUNDS

from persistent_bfs.measure import WARM_UPS, Timing
from persistent_bfs.study.blocks import told_point
from persistent_bfs.study.primitives import (
    PRIMITIVES,
    SMALL,
    Bench,
    Effort,
    Primitive,
    measure_primitive,
)


@pytest.fixture
def bench(device: Any) -> Iterator[Bench]:
    """The primitives' program on the device."""
    with Bench(device, Effort.of(device.info.kind, quick=True)) as opened:
        yield opened


def run_call(benchmark: Any, bench: Bench, call: Callable[[], Any]) -> None:
    kind = bench.device.info.kind

    def waited() -> None:
        call()
        bench.stream.synchronize()

    bench.stream.counters.reset()
    benchmark.pedantic(
        waited, rounds=5 * ROUNDS[kind], warmup_rounds=0 if kind == "emulated" else WARM_UPS
    )
    benchmark.extra_info |= {
        "device": kind,
        "device_name": bench.device.info.name,
        "driver": bench.device.info.driver,
    }


def test_launch(benchmark: Any, bench: Bench) -> None:
    benchmark.group = "primitives"
    run_call(benchmark, bench, lambda: bench.launch("empty_kernel", SMALL))


def test_cooperative_launch(benchmark: Any, bench: Bench) -> None:
    benchmark.group = "primitives"
    if reason := PRIMITIVES["cooperative_issue"].missing(bench.device):
        pytest.skip(reason)
    run_call(benchmark, bench, lambda: bench.launch("empty_kernel", SMALL, cooperative=True))


def test_launch_and_copy(benchmark: Any, bench: Bench) -> None:
    benchmark.group = "primitives"

    def call() -> None:
        bench.launch("empty_kernel", SMALL)
        bench.stream.copy_to_host(bench.window, bench.words)

    bench.clear()
    run_call(benchmark, bench, call)


@pytest.mark.parametrize("nodes", [1, 10, 100])
def test_graph_launch(benchmark: Any, bench: Bench, nodes: int) -> None:
    benchmark.group = "primitives"
    with bench.graph(nodes) as graph:
        run_call(benchmark, bench, lambda: bench.stream.launch_graph(graph))


@pytest.mark.parametrize("primitive", PRIMITIVES.values(), ids=list(PRIMITIVES))
def test_primitive(benchmark: Any, bench: Bench, primitive: Primitive) -> None:
    """One row of the table, once: its figures are in ``extra_info``, not in the round's time."""
    benchmark.group = "rows of the table of primitives"
    if reason := primitive.missing(bench.device):
        pytest.skip(reason)
    row = benchmark.pedantic(measure_primitive, args=(bench, primitive), rounds=1)
    benchmark.extra_info |= {
        "device": bench.device.info.kind,
        "device_name": bench.device.info.name,
        "driver": bench.device.info.driver,
        "unit": row["unit"],
        "medians": {
            told_point(point["point"]): Timing(tuple(point["samples"])).median
            for point in row["points"]
            if point["samples"]
        },
        "counts": {told_point(point["point"]): point["counts"] for point in row["points"]},
    }

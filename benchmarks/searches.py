"""What the benchmarks of searches share: one synchronised search a round, each answer checked.

Compilation, upload and warm-up are outside the rounds, and so are the check of each answer and,
with ``--l2 cold``, the eviction of L2 before each. What pytest-benchmark times is the call, by the
host's clock; ``device_ms`` in ``extra_info`` is the median by the device's own.
"""

from __future__ import annotations

from typing import Any

import pytest

from persistent_bfs import BFS, BFSResult, read_graph
from persistent_bfs.device.base import Device
from persistent_bfs.measure import (
    WARM_UPS,
    Timing,
    find_problem,
    l2_state,
    traversed_edges_per_second,
)
from persistent_bfs.reference import bfs_reference
from persistent_bfs.study.suite import Case, Prepared, prepare

ROUNDS = {"cuda": 20, "emulated": 1}


def prepared(case: Case, device: Device) -> Prepared:
    """A case of the suite; skipped where it is too large to be emulated."""
    if device.info.kind == "emulated" and not case.small:
        pytest.skip("too large to emulate")
    return prepare(case)


def generated(spec: str) -> Prepared:
    """A generated graph, searched from vertex 0."""
    graph = read_graph(spec)
    return Prepared(graph, 0, bfs_reference(graph, 0), stands_in=False)


def run_search(benchmark: Any, device: Device, searched: Prepared, l2: str, **how: Any) -> None:
    """Benchmark one search of one graph by a session made as ``how`` says."""
    graph, source, expected, stands_in = searched
    emulated = device.info.kind == "emulated"
    answers: list[BFSResult] = []

    def search() -> None:
        answers.append(session.run(source))

    def check() -> None:
        problem = find_problem(graph, answers[-1], expected=expected.distances)
        assert problem is None, problem

    with (
        BFS(graph, device=device, **how) as session,
        l2_state(device, session.stream, "warm" if emulated else l2) as make_ready,
    ):
        benchmark.pedantic(
            search,
            setup=make_ready,
            teardown=check,
            rounds=ROUNDS[device.info.kind],
            warmup_rounds=0 if emulated else WARM_UPS,
        )
        check()  # once more: with --benchmark-disable there is no teardown
        timed = [answer for answer in answers[-ROUNDS["cuda"] :] if answer.device_ms]
        device_ms = Timing(tuple(answer.device_ms for answer in timed)) if timed else None
        wall_ms = Timing(tuple(answer.wall_ms for answer in timed)) if timed else None
        distances = answers[-1].distances
    last = answers[-1]
    assert last.levels == len(expected.frontier_sizes)
    names = ("engine", "advance", "tier", "levels", "reached", "launches", "host_syncs", "barriers")
    benchmark.extra_info |= {name: last.summary()[name] for name in (*names, "device")} | {
        "graph": graph.name,
        "stands_in": stands_in,
        "vertices": graph.vertices,
        "arcs": graph.arcs,
        "source": source,
        "l2": l2,
        "device_name": device.info.name,
        "driver": device.info.driver,
        "device_ms": device_ms and device_ms.median,
        "wall_ms": wall_ms and wall_ms.median,
        "wall_over_device": wall_ms.median / device_ms.median if wall_ms and device_ms else None,
        "teps": traversed_edges_per_second(graph, distances, device_ms),
        "counts": last.counters.device or None,
    }

"""What a call from Python costs over the device's own time, on graphs that take next to none.

``wall_over_device`` in ``extra_info`` is the host's clock around the synchronised call over the
device's between events; the one-call form also opens, allocates and uploads.
"""

from __future__ import annotations

from typing import Any

import pytest
from searches import ROUNDS, prepared, run_search

from persistent_bfs import bfs
from persistent_bfs.measure import WARM_UPS, find_problem
from persistent_bfs.study.suite import SMALL, Case


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_session_run(benchmark: Any, device: Any, l2: str, case: Case) -> None:
    benchmark.group = str(case)
    run_search(benchmark, device, prepared(case, device), l2)


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_one_call(benchmark: Any, device: Any, case: Case) -> None:
    graph, source, expected, _ = prepared(case, device)
    benchmark.group = str(case)
    emulated = device.info.kind == "emulated"
    result = benchmark.pedantic(
        lambda: bfs(graph, source, device=device),
        rounds=ROUNDS[device.info.kind],
        warmup_rounds=0 if emulated else WARM_UPS,
    )
    problem = find_problem(graph, result, expected=expected.distances)
    assert problem is None, problem
    benchmark.extra_info |= {
        "graph": graph.name,
        "engine": result.engine,
        "device": result.device,
        "device_name": device.info.name,
        "driver": device.info.driver,
        "levels": result.levels,
        "reached": result.reached,
        "device_ms": result.device_ms,
        "wall_ms": result.wall_ms,
    }

"""The timed half of the study, on a device whose clock is its counters."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from clocked import LAUNCH_NS, NANOSECONDS, ClockedDevice

from persistent_bfs.device import emulated_problem
from persistent_bfs.study import primitives, run
from persistent_bfs.study.model import analyse
from persistent_bfs.study.plan import VARIANTS, Plan, depth_specs, width_specs
from persistent_bfs.study.primitives import PRIMITIVES, Bench, Effort
from persistent_bfs.study.report import render
from persistent_bfs.study.sweeps import add_pass, tasks

pytestmark = pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None

EFFORT = Effort(3, 5, 20, 50, (1, 4, 16), 10, (1, 3), (32, 64), (32,), 1 << 12, 1 << 14)


@pytest.fixture(scope="module")
def device() -> Iterator[ClockedDevice]:
    with ClockedDevice() as opened:
        yield opened


@pytest.fixture(scope="module")
def study(device: ClockedDevice) -> dict[str, Any]:
    plan = Plan(
        "cuda",
        True,
        "cold",
        3,
        2,
        tuple(VARIANTS),
        depth_specs(5),
        width_specs(4, 16),
        ("grid-32x32",),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Effort, "of", lambda *_: EFFORT)
        told: list[tuple[str, int, int]] = []
        found = run.take(device, plan, progress=lambda *what: told.append(what))
    # The six paths twice, in two passes.
    assert told[-1][1] == told[-1][2] == len(PRIMITIVES) + len(VARIANTS) * (6 + 3 + 1 + 6)
    return found


def medians(device: ClockedDevice, name: str) -> list[float]:
    with Bench(device, EFFORT) as bench:
        row = primitives.measure_primitive(bench, PRIMITIVES[name])
    return [float(np.median(point["samples"])) for point in row["points"]]


def test_what_is_repeated_costs_exactly_what_one_of_it_costs(device: ClockedDevice) -> None:
    assert medians(device, "grid_sync") == pytest.approx([1.0] * 3)
    assert medians(device, "block_sync") == pytest.approx([15.0] * 2)
    assert medians(device, "dependent_load") == pytest.approx([250.0] * 3)
    assert medians(device, "dependent_atomic") == pytest.approx([300.0])
    assert medians(device, "launch_queued") == pytest.approx([LAUNCH_NS / 1e3] * 2)
    # A turn is a launch, a load and a store.
    turn = LAUNCH_NS + NANOSECONDS["plain_loads"] + NANOSECONDS["plain_stores"]
    expected = [turn / 1e3, (turn + 2 * LAUNCH_NS) / 1e3]
    assert medians(device, "while_turn") == pytest.approx(expected)
    for kind in ("graph_device", "graph_dependent"):
        assert medians(device, kind) == pytest.approx([4.0, 16.0, 64.0])


def test_a_barrier_by_a_counter_costs_an_atomic_a_block(device: ClockedDevice) -> None:
    one, some, more = medians(device, "own_barrier")
    blocks = 1, device.info.multiprocessors, 2 * device.info.multiprocessors
    atomics = [0.3 * count for count in blocks]
    assert all(cost > atomic for cost, atomic in zip((one, some, more), atomics, strict=True))
    assert one < some < more


def test_a_rate_is_of_what_is_read_and_written(device: ClockedDevice) -> None:
    words = EFFORT.copy_bytes // 16
    cost = words * (NANOSECONDS["plain_loads"] + NANOSECONDS["plain_stores"]) + LAUNCH_NS
    assert medians(device, "copy_rate") == pytest.approx([2 * EFFORT.copy_bytes / cost])


def test_hosts_clocks_are_kept_beside(device: ClockedDevice) -> None:
    for name in ("launch_issue", "launch_completion", "round_trip", "graph_completion"):
        assert all(median > 0 for median in medians(device, name)), name


def test_every_search_has_its_samples_by_both_clocks(study: dict[str, Any]) -> None:
    for row in study["searches"]:
        assert len(row["device_ms"]) == len(row["wall_ms"]) == 3
        assert len(set(row["device_ms"])) == 1  # what is counted is the same every time
    assert json.loads(run.dump(study)) == study


def test_the_models_are_those_of_the_counters(study: dict[str, Any]) -> None:
    analysis = analyse(study)
    assert analysis is not None
    assert set(analysis.simple) == set(VARIANTS)
    times = {(row["name"], row["engine"]): row["device_ms"][0] for row in study["searches"]}
    for name, split in analysis.splits.items():
        more = times["path:32", name] - times["path:16", name]
        # The last level finds nobody, which shows in the slope to each path but a little.
        assert split.level == pytest.approx(1e3 * more / 16, rel=1e-3)
    # The naive loop pays a launch a level, by this clock, and the level's own accesses.
    assert analysis.splits["host_loop"].level > LAUNCH_NS / 1e3
    figures = study["primitives"]
    assert [row["primitive"] for row in figures] == list(PRIMITIVES)


@pytest.mark.skipif(not HAS_MATPLOTLIB, reason="Matplotlib is not installed")
def test_its_report_is_written_and_the_same_again(study: dict[str, Any]) -> None:
    texts = render(study)
    assert texts == render(json.loads(texts["study.json"]))
    assert "L2 is cold when a search begins" in texts["report.md"]
    assert "clocked device" in texts["report.html"]
    assert texts["report.html"].count("<svg") == 6


def test_passes_share_the_searches_of_a_row_and_are_spread() -> None:
    plan = Plan.of("cuda", quick=False)
    found = tasks(plan)
    paths = [(place, repeat) for place, (task, repeat) in enumerate(found) if task.sweep == "depth"]
    for name in plan.depths:
        shares = [repeat for task, repeat in found if task.name == name]
        assert (len(shares), sum(shares)) == (5, plan.repeat)
    assert all(repeat == plan.repeat for task, repeat in found if task.sweep != "depth")
    # Between two passes is about a quarter of the rest.
    rest = len(plan.widths) + len(plan.graphs)
    gaps = [after - before - 1 for (before, _), (after, _) in pairwise(paths)]
    assert sum(gaps) == rest
    assert sorted(gaps)[-4:] == sorted([rest // 4] * (4 - rest % 4) + [rest // 4 + 1] * (rest % 4))


def test_a_later_pass_that_goes_wrong_takes_the_rows_time() -> None:
    row = {"refused": None, "device_ms": [1.0], "wall_ms": [2.0]}
    add_pass(row, {"refused": None, "device_ms": [3.0], "wall_ms": [4.0]})
    assert row == {"refused": None, "device_ms": [1.0, 3.0], "wall_ms": [2.0, 4.0]}
    add_pass(row, {"refused": "wrong answer: vertex 3 differs"})
    assert row == {"refused": "wrong answer: vertex 3 differs"}
    add_pass(row, {"refused": None, "device_ms": [3.0], "wall_ms": [4.0]})
    assert "device_ms" not in row

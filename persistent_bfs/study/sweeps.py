"""Searches of the study: the two sweeps and the suite's graphs, by every engine.

A row a graph and engine, every sample in it; a second, traced search says which mapping the device
chose for how many levels and edges, and on the suite's graphs when each level began and ended.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from persistent_bfs.compiler import CompileError
from persistent_bfs.config import Config
from persistent_bfs.device.base import (
    Device,
    DeviceError,
    DeviceInfo,
    DeviceMemoryError,
    LaunchTooLarge,
)
from persistent_bfs.graph import Graph
from persistent_bfs.io import read_graph
from persistent_bfs.measure import Measurement, find_problem, measure
from persistent_bfs.plan import configure, with_tier
from persistent_bfs.reference import ReferenceSearch, WrongAnswer, bfs_reference
from persistent_bfs.result import LevelTrace
from persistent_bfs.session import BFS
from persistent_bfs.study.plan import ADVANCE, VARIANTS, Plan
from persistent_bfs.study.suite import case_of, prepare
from persistent_bfs.tiers import AUTO

Row = dict[str, Any]

DEPTH, WIDTH, GRAPHS = "depth", "width", "graphs"

# How the reason begins why a row has no time: its answer was wrong, or the search failed.
WRONG_ANSWER, FAILED = "wrong answer", "failed"


@dataclass(frozen=True)
class Task:
    """One graph of a sweep, to be loaded when its turn has come."""

    sweep: str
    name: str

    def load(self) -> tuple[Graph, int, ReferenceSearch, bool]:
        """The graph, its source, what the reference answers, and whether it stands in."""
        if self.sweep == GRAPHS:
            return prepare(case_of(self.name))
        graph = read_graph(self.name)
        return graph, 0, bfs_reference(graph, 0), False


def tasks(plan: Plan) -> list[tuple[Task, int]]:
    """What a plan searches, in order, and with how many timed searches a row.

    The passes of the depth sweep are spread: between two of them is a part of all the rest.

    Examples
    --------
    >>> rest = ("grid:1x2", "grid:2x1"), ("maze",)
    >>> plan = Plan("cuda", True, "warm", 5, 2, (), ("path:1",), *rest)
    >>> [(task.name, repeat) for task, repeat in tasks(plan)]
    [('path:1', 3), ('grid:1x2', 5), ('grid:2x1', 5), ('maze', 5), ('path:1', 2)]
    """
    rest = [(Task(WIDTH, name), plan.repeat) for name in plan.widths]
    rest += [(Task(GRAPHS, name), plan.repeat) for name in plan.graphs]
    found: list[tuple[Task, int]] = []
    for number in range(plan.passes):
        share = (plan.repeat - number - 1) // plan.passes + 1
        found += [(Task(DEPTH, name), share) for name in plan.depths]
        parts = max(plan.passes - 1, 1)
        found += rest[len(rest) * number // parts : len(rest) * (number + 1) // parts]
    return found


def configs(plan: Plan, graph: Graph, info: DeviceInfo) -> set[Config]:
    """All that a plan's searches of ``graph`` are compiled as, to be compiled side by side."""
    found = set()
    for name in plan.engines:
        how: dict[str, Any] = dict(VARIANTS[name])
        tiers = how.pop("tiers", AUTO)
        for trace in (False, True):
            usual = configure(graph, advance=ADVANCE, trace=trace, **how)
            found.add(with_tier(usual, graph, tiers, info)[0])
    return found


def search_rows(device: Device, plan: Plan, task: Task, repeat: int) -> Iterator[Row]:
    """Search one graph by every engine of the plan; a row as soon as it is measured."""
    graph, source, expected, stands_in = task.load()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(partial(_compile, device), configs(plan, graph, device.info)):
            pass
    common = {
        "sweep": task.sweep,
        "name": task.name,
        "graph": graph.name,
        "stands_in": stands_in,
        "vertices": graph.vertices,
        "arcs": graph.arcs,
        "source": source,
    }
    for engine in plan.engines:
        try:
            how = {"repeat": repeat, "l2": plan.l2}
            yield common | _row(device, engine, graph, source, expected, task.sweep, **how)
            continue
        except (LaunchTooLarge, DeviceMemoryError) as why:
            reason = str(why)
        except WrongAnswer as why:
            reason = f"{WRONG_ANSWER}: {why}"
        except (DeviceError, CompileError) as why:
            reason = f"{FAILED}: {why}"
            _require_alive(device, why)
        yield common | {"engine": engine, "refused": " ".join(reason.split())}


def _require_alive(device: Device, why: Exception) -> None:
    """Go on after an engine's failure, which says nothing of the others, if the device does."""
    try:
        with device.current():
            device.stream().synchronize()
    except DeviceError:
        raise why from None


def _compile(device: Device, config: Config) -> None:
    """Compile ahead; a program that does not compile fails where its engine's turn has come."""
    with suppress(CompileError):
        device.compile(config)


def _row(
    device: Device,
    engine: str,
    graph: Graph,
    source: int,
    expected: ReferenceSearch,
    sweep: str,
    **timing: Any,
) -> Row:
    how: dict[str, Any] = {**VARIANTS[engine], "advance": ADVANCE, "device": device}
    with BFS(graph, **how) as session:
        measured = measure(session, source, expected=expected.distances, **timing)
        shape, config, batch = session.shape, session.config, session.levels_per_launch
    with BFS(graph, trace=True, **how) as session:
        traced = session.run(source)
        problem = measured.problem or find_problem(graph, traced, expected=expected.distances)
        trace = traced.trace or []
    result = measured.result
    if problem is not None:
        raise WrongAnswer(problem)
    return {
        "engine": engine,
        "refused": None,
        "ran": result.engine,
        "shape": shape,
        "tier": config.tier,
        "block_threads": config.block_threads,
        "levels": result.levels,
        "reached": result.reached,
        "edges": sum(row.edges for row in trace),
        "launches": result.counters.launches,
        "host_syncs": result.counters.host_syncs,
        "barriers": result.counters.barriers,
        "batch": batch,
        "counts": result.counters.device or None,
        **_samples(measured),
        "regimes": regimes(trace),
        "trace": _trace(trace) if sweep == GRAPHS else None,
    }


def add_pass(row: Row, more: Row) -> None:
    """Add the samples of a later pass to a row; one that has none now has none at all."""
    if row["refused"]:
        return
    if more["refused"]:
        row.clear()
        row.update(more)
        return
    for clock in ("device_ms", "wall_ms"):
        row[clock] = row[clock] and row[clock] + more[clock]


def _samples(measured: Measurement) -> Row:
    return {
        "device_ms": None if measured.device is None else list(measured.device.samples),
        "wall_ms": None if measured.wall is None else list(measured.wall.samples),
    }


def regimes(trace: Iterable[LevelTrace]) -> Row:
    """Levels and edges by the mapping that the device chose for them.

    Examples
    --------
    >>> narrow = LevelTrace(0, 1, 2, "warp", "push", None, None)
    >>> wide = LevelTrace(1, 2, 500, "thread", "push", None, None)
    >>> regimes([narrow, wide])
    {'warp': {'levels': 1, 'edges': 2}, 'thread': {'levels': 1, 'edges': 500}}
    """
    found: dict[str, Row] = {}
    for level in trace:
        regime = found.setdefault(level.mapping, {"levels": 0, "edges": 0})
        regime["levels"] += 1
        regime["edges"] += level.edges
    return found


def _trace(trace: list[LevelTrace]) -> Row:
    """A trace by columns, which take less room."""
    timed = bool(trace) and trace[0].begin_ns is not None
    return {
        "frontier": [level.frontier for level in trace],
        "edges": [level.edges for level in trace],
        "begin_ns": [level.begin_ns for level in trace] if timed else None,
        "ns": [level.ns for level in trace] if timed else None,
    }

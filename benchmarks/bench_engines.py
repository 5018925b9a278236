"""Every engine on every graph: one synchronised search a round, each answer checked.

``pytest benchmarks`` runs on a GPU if one can be used, else small graphs on the emulated device.
Compilation, upload and warm-up are outside the rounds, and so is the check of each answer. What
pytest-benchmark times is the call, by the host's clock; ``device_ms`` in ``extra_info`` is the
median by the device's own.
"""

from __future__ import annotations

import os
import statistics
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from persistent_bfs import BFS, ENGINES, BFSResult, Graph, read_graph
from persistent_bfs.measure import WARM_UPS, find_problem
from persistent_bfs.reference import ReferenceSearch, bfs_reference

GRAPHS_VARIABLE = "PERSISTENT_BFS_GRAPHS"
REPOSITORY = Path(__file__).resolve().parent.parent
ROUNDS = {"cuda": 20, "emulated": 1}


class Case(NamedTuple):
    """A graph to search, where from, and whether it is small enough to be emulated."""

    name: str
    graph: str
    source: str = "0"
    small: bool = False

    def __str__(self) -> str:
        return self.name


CASES = (
    Case("path-100", "path:100", small=True),
    Case("grid-32x32", "grid:32x32", small=True),
    Case("words-kjv", "words-kjv", "faithless", small=True),
    Case("kron-10", "kron:10", small=True),
    Case("path-10000", "path:10000"),
    Case("grid-512x512", "grid:512x512"),
    Case("kron-20", "kron:20"),
    Case("maze", "maze512-1-0.txt.gz"),
    Case("luxembourg", "road-luxembourg-osm.mtx.gz"),
    Case("new-york", "road-USA-NY.gr.xz"),
    Case("florida", "road-USA-FLA.gr.xz"),
)


# The cases of one graph follow each other, so one graph at a time is enough.
@lru_cache(maxsize=1)
def prepare(case: Case) -> tuple[Graph, int, ReferenceSearch]:
    graph = case.graph
    if ".gz" in graph or ".xz" in graph:
        folder = Path(os.environ.get(GRAPHS_VARIABLE, REPOSITORY / ".." / "shared" / "graphs"))
        if not (folder / graph).is_file():
            pytest.skip(f"no {graph} in {folder} ({GRAPHS_VARIABLE})")
        graph = str(folder / graph)
    loaded = read_graph(graph)
    source = loaded.vertex_of(case.source)
    return loaded, source, bfs_reference(loaded, source)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_search(benchmark: Any, device: Any, case: Case, engine: str) -> None:
    emulated = device.info.kind == "emulated"
    if emulated and not case.small:
        pytest.skip("too large to emulate")
    graph, source, expected = prepare(case)
    benchmark.group = str(case)
    answers: list[BFSResult] = []

    def search() -> None:
        answers.append(session.run(source))

    def check() -> None:
        problem = find_problem(graph, answers[-1], expected=expected.distances)
        assert problem is None, problem

    with BFS(graph, engine=engine, device=device) as session:
        benchmark.pedantic(
            search,
            teardown=check,
            rounds=ROUNDS[device.info.kind],
            warmup_rounds=0 if emulated else WARM_UPS,
        )
        check()  # once more: with --benchmark-disable there is no teardown
    last = answers[-1]
    times = [answer.device_ms for answer in answers[-ROUNDS["cuda"] :] if answer.device_ms]
    assert last.levels == len(expected.frontier_sizes)
    names = ("engine", "advance", "levels", "reached", "launches", "host_syncs", "barriers")
    benchmark.extra_info |= {name: last.summary()[name] for name in (*names, "device")} | {
        "graph": graph.name,
        "vertices": graph.vertices,
        "arcs": graph.arcs,
        "source": source,
        "device_name": device.info.name,
        "device_ms": statistics.median(times) if times else None,
        "counts": last.counters.device or None,
    }

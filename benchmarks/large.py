"""Search a graph of more than 2^32 arcs as `BFS` does by default, and prove the answer twice.

    python benchmarks/large.py benchmarks/results/h200/large.json

A circulant graph's distances follow a formula; beside it the answer is proved arc by arc, as
every answer is.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from persistent_bfs import BFS
from persistent_bfs.cli.output import print_json, published
from persistent_bfs.io import read_graph
from persistent_bfs.measure import describe_environment, find_problem


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--vertices", default=150_000_000, show_default=True)
@click.option("--next", "reach", default=16, show_default=True, help="Neighbours to either side.")
@click.option("--device", default="cuda")
def main(file: Path, vertices: int, reach: int, device: str) -> None:
    """Write the record to FILE."""
    began = time.perf_counter()
    graph = read_graph(f"circulant:{vertices}:{reach}")
    generated = time.perf_counter() - began
    source = vertices // 3
    ids = np.arange(vertices, dtype=np.int64)
    around = np.abs(ids - source)
    right = -(-np.minimum(around, vertices - around) // reach)
    began = time.perf_counter()
    with BFS(graph, device=device) as search:
        opened = time.perf_counter() - began
        result = search.run(source)
        exact = bool(np.array_equal(result.distances, right))
        began = time.perf_counter()
        problem = find_problem(graph, result)
        proved = time.perf_counter() - began
        verified = exact and problem is None
        report: dict[str, Any] = {
            "environment": describe_environment(search.device.info) if search.device else None,
            "graph": graph.name,
            "vertices": graph.vertices,
            "arcs": graph.arcs,
            "config": str(search.config),
            "reason": search.reason,
            "device_bytes": {name: each.nbytes for name, each in search.buffers.items()},
            "levels": result.levels,
            "reached": result.reached,
            "equals_the_formula": exact,
            "problem": problem,
            "generate_seconds": generated,
            "open_seconds": opened,
            "prove_seconds": proved,
            "device_ms": result.device_ms if verified else None,
        }
    with published(file) as out:
        print_json(report, "large graph", out)
    print_json({name: report[name] for name in report if name != "environment"}, "large graph")
    if not verified:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

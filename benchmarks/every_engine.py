"""Search small graphs by every engine, tier, direction and append: what a checker runs.

    compute-sanitizer --tool memcheck --error-exitcode 9 python benchmarks/every_engine.py

See ``sanitize.sh``. Every answer is checked; a search that is wrong ends it.
"""

from __future__ import annotations

from typing import Any

import click

from persistent_bfs import BFS, read_graph
from persistent_bfs.config import ENGINES
from persistent_bfs.measure import find_problem

TIERED: dict[str, Any] = {"engine": "persistent"}
DENSE: dict[str, Any] = {"direction": "auto", "frontier": "dense"}

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    **{engine: {"engine": engine, "tiers": "none"} for engine in ENGINES},
    **{f"{engine}, dense": {"engine": engine, "tiers": "none", **DENSE} for engine in ENGINES},
    "block tier": {**TIERED, "tiers": "block"},
    "cluster tier": {**TIERED, "tiers": "cluster"},
    "block append": {**TIERED, "tiers": "none", "append": "block"},
    "scan append": {"engine": "graph_unrolled", "append": "scan"},
    "edge mapping": {**TIERED, "tiers": "none", "advance": "edge"},
    "pull": {**TIERED, "tiers": "none", "direction": "pull"},
}

GRAPHS = ("grid:13x9", "kron:8:8", "star:300")


@click.command()
@click.option("--device", default="cuda")
@click.option("--only", help="The configurations whose names begin so.")
@click.option("--but", help="Not those whose names begin so.")
@click.option("--levels-per-launch", type=int)
def main(device: str, only: str | None, but: str | None, levels_per_launch: int | None) -> None:
    """Search by each; print what ran."""
    for name, fields in CONFIGURATIONS.items():
        if (only and not name.startswith(only)) or (but and name.startswith(but)):
            continue
        how = {**fields, "predecessors": True, "trace": True}
        how["levels_per_launch"] = levels_per_launch
        for spec in GRAPHS:
            graph = read_graph(spec)
            source = int(graph.degrees.argmax())
            with BFS(graph, device=device, **how) as search:
                kept = [search.run(each) for each in (source, 1, source)]
                for result in kept:
                    if problem := find_problem(graph, result):
                        raise SystemExit(f"{name}, {spec}: {problem}")
        print(f"{name}: right", flush=True)


if __name__ == "__main__":
    main()

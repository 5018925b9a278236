"""``persistent-bfs run``: one search, checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from persistent_bfs.cli.options import (
    OutputFile,
    advance_option,
    engine_option,
    json_option,
    l2_option,
    max_depth_option,
    no_verify_option,
    policy_options,
    search_options,
    takes_graph,
)
from persistent_bfs.cli.output import Report, deliver, published
from persistent_bfs.cli.searches import describe_search, note_ignored, session, warn_of_unused_gpu
from persistent_bfs.config import TIERS

if TYPE_CHECKING:
    from persistent_bfs.graph import Graph
    from persistent_bfs.measure import Measurement


@click.command("run")
@takes_graph
@engine_option
@advance_option
@click.option(
    "--tiers",
    default="auto",
    show_default=True,
    metavar="none|auto|NAME,...",
    help=f"Who may run the narrow levels of the persistent engine: {', '.join(TIERS)}.",
)
@policy_options(suited=True)
@search_options
@l2_option
@max_depth_option
@click.option("--predecessors", is_flag=True, help="Find a parent of every vertex, too.")
@click.option("--trace", is_flag=True, help="Show every level.")
@no_verify_option
@click.option(
    "--output", type=OutputFile(".npz", ".tsv"), help="Write the distances (and predecessors)."
)
@json_option
def command(
    graph: Graph,
    source: int,
    device: str,
    schedule: str,
    seed: int,
    l2: str,
    max_depth: int | None,
    no_verify: bool,
    output: Path | None,
    as_json: bool,
    **how: Any,
) -> int:
    """Search GRAPH from one vertex and prove the answer from the graph."""
    from persistent_bfs.measure import measure, traversed_edges_per_second

    with session(graph, device, schedule=schedule, seed=seed, **how) as search:
        warn_of_unused_gpu(device, search.device.info.kind if search.device else "reference")
        measured = measure(
            search, source, repeat=1, max_depth=max_depth, l2=l2, verify=not no_verify
        )
        result = measured.result
        report = describe_search(graph, search, measured)
    note_ignored(result.device, schedule, seed)
    emulated = result.device == "emulated"
    whole = max_depth is None and not graph.directed
    report |= {
        "max_depth": max_depth,
        "l2": l2,
        "schedule": schedule if emulated else None,
        "seed": seed if emulated else None,
        "teps": traversed_edges_per_second(graph, result.distances, measured.device)
        if whole
        else None,
        "frontier_sizes": result.frontier_sizes,
        "trace": describe_trace(measured),
    }
    parents = result.predecessors if how["predecessors"] else None
    right = measured.problem is None
    return deliver(
        report,
        "search",
        as_json=as_json,
        files=[(output, lambda path: write_answer(path, graph, source, result.distances, parents))]
        if output and right
        else (),
        wrong=() if measured.problem is None else [("wrong answer", measured.problem)],
    )


def describe_trace(measured: Measurement) -> list[Report] | None:
    """The levels, if they were traced; without their times, unless the answer is verified."""
    trace = measured.result.trace
    if trace is None:
        return None
    untimed = {} if measured.verified else {"begin_ns": None, "ns": None}
    return [vars(row) | untimed for row in trace]


def write_answer(path: Path, graph: Graph, source: int, distances: Any, parents: Any) -> None:
    """Write distances and, if there are any, predecessors to an .npz or .tsv file."""
    import numpy as np

    columns = {"distances": distances} | ({} if parents is None else {"predecessors": parents})
    if path.suffix == ".npz":
        with published(path, "wb") as file:
            np.savez_compressed(file, source=np.int32(source), **columns)
        return
    vertices = range(graph.vertices) if graph.labels is None else graph.labels.tolist()
    with published(path) as file:
        print("# vertex", *(name[:-1] for name in columns), sep="\t", file=file)
        rows = zip(vertices, *(column.tolist() for column in columns.values()), strict=True)
        file.writelines("\t".join(map(str, row)) + "\n" for row in rows)

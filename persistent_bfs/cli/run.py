"""``persistent-bfs run``: one search, checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from persistent_bfs.cli.options import (
    AT_LEAST_0,
    OutputFile,
    choice,
    json_option,
    l2_option,
    policy_options,
    search_options,
    takes_graph,
)
from persistent_bfs.cli.output import present, published
from persistent_bfs.cli.program import WRONG, say
from persistent_bfs.cli.searches import describe_search, note_ignored, session
from persistent_bfs.config import ADVANCES, ENGINES, TIERS

if TYPE_CHECKING:
    from persistent_bfs.graph import Graph
    from persistent_bfs.reference import ReferenceSearch


@click.command("run")
@takes_graph
@choice("--engine", ENGINES, "auto", "Who runs the level loop.")
@choice("--advance", ADVANCES, "auto", "How a frontier's edges are given to threads.")
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
@click.option("--max-depth", type=AT_LEAST_0, help="The largest distance to look for.")
@click.option("--predecessors", is_flag=True, help="Find a parent of every vertex, too.")
@click.option("--trace", is_flag=True, help="Show every level.")
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
    output: Path | None,
    as_json: bool,
    **how: Any,
) -> int:
    """Search GRAPH from one vertex and check the answer against the reference."""
    from persistent_bfs.measure import measure, traversed_edges_per_second
    from persistent_bfs.reference import bfs_reference

    expected = bfs_reference(graph, source, max_depth)
    with session(graph, device, schedule=schedule, seed=seed, **how) as search:
        measured = measure(
            search, source, repeat=1, max_depth=max_depth, expected=expected.distances, l2=l2
        )
        result = measured.result
        if result.device == "reference" and measured.verified:
            # Compared with itself it would always be right: its tree proves it instead.
            measured = replace(measured, problem=find_unproven(graph, source, expected, max_depth))
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
        "trace": None if result.trace is None else [vars(row) for row in result.trace],
    }
    if output and measured.verified:
        parents = result.predecessors if how["predecessors"] else None
        write_answer(output, graph, source, result.distances, parents)
    present(report, as_json, "search")
    if measured.verified:
        return 0
    say("wrong answer", measured.problem)
    return WRONG


def find_unproven(
    graph: Graph, source: int, found: ReferenceSearch, max_depth: int | None
) -> str | None:
    """Return where the reference's own tree fails to prove its distances; None if it proves all."""
    from persistent_bfs.reference import WrongAnswer, check_predecessors

    try:
        check_predecessors(graph, source, found.distances, found.predecessors, max_depth)
    except WrongAnswer as wrong:
        return str(wrong)
    return None


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

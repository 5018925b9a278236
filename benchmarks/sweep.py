"""Measure one choice against the others over the suite's graphs, and keep the figures.

    python benchmarks/sweep.py mappings benchmarks/results/h200/sweep-mappings.json

A row a graph and choice: median, minimum and maximum device milliseconds of verified searches, in
one run. The choices are measured in turn, several times over; each time their sessions are opened
anew, and another one is first. For sessions of one configuration differ, by where in memory they
lie, as long as they live: a choice that comes twice, by two names, would differ from itself. The
record behind docs/performance.md; where ``auto`` is among the rows, its distance from the best of
them is shown. The file is written anew after each graph.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from wide import opened

from persistent_bfs import (
    ADVANCES,
    APPENDS,
    BFS,
    DIRECTIONS,
    FRONTIERS,
    ORDERS,
    Graph,
    Options,
    read_graph,
)
from persistent_bfs.cli.output import published
from persistent_bfs.device.base import Device
from persistent_bfs.measure import Measurement, Timing, measure
from persistent_bfs.reference import bfs_reference
from persistent_bfs.reorder import reorder

DEEP = (
    "path:10000",
    "grid:512x512",
    "road-USA-NY.gr.xz",
    "road-luxembourg-osm.mtx.gz",
    "maze512-1-0.txt.gz",
    "road-USA-FLA.gr.xz",
    "matrix-jagmesh7-pattern-symmetric.mtx",
    "mesh-4elt.graph",
)
WIDE = (
    "words-kjv",
    "internet-as-22july06.txt.gz",
    "email-Enron.txt.gz",
    "social-Slashdot0902.txt.gz",
    "social-facebook-combined.txt.gz",
    "web-cnr-2000.txt.xz",
    "wordnet-noun-hypernym.txt.gz",
    "mesh-copter2.graph.gz",
    "random:1000000:8000000",
    "kron:20",
)
# Deep ones of several sizes, and a wide one; what their own order is worth differs.
ORDERED = (
    "road-USA-FLA.gr.xz",
    "road-USA-NY.gr.xz",
    "road-luxembourg-osm.mtx.gz",
    "maze512-1-0.txt.gz",
    "grid:512x512",
    "road:3000x3000",
    "kron:20",
)

Choice = dict[str, Any]


def mappings() -> Iterator[tuple[str, Choice]]:
    """Every mapping, pushed by the persistent engine."""
    for name in ADVANCES:
        yield name, {"engine": "persistent", "tiers": "none", "advance": name}


def directions() -> Iterator[tuple[str, Choice]]:
    """Push, pull and the choice between them; what pulls, with bitmaps too."""
    for direction in DIRECTIONS:
        how = {"engine": "persistent", "tiers": "none", "direction": direction}
        yield direction, how
        if direction != "push":
            yield f"{direction}, dense", how | {"frontier": "dense"}


def frontiers() -> Iterator[tuple[str, Choice]]:
    """Sparse and dense frontiers, wherever a bitmap is of use."""
    ways: tuple[tuple[str, str], ...] = (
        ("push", "topology"),
        ("pull", "thread"),
        ("auto", "auto"),
        ("auto", "edge"),
        ("auto", "bucketed"),
    )
    for direction, advance in ways:
        for frontier in FRONTIERS:
            how = {"direction": direction, "advance": advance, "frontier": frontier}
            choice = {"engine": "persistent", "tiers": "none", **how}
            yield f"{direction}, {advance}, {frontier}", choice


def appends() -> Iterator[tuple[str, Choice]]:
    """Every append, with the edge mapping, which all of them combine with."""
    for name in APPENDS:
        choice = {"engine": "persistent", "tiers": "none", "advance": "edge", "append": name}
        yield name, choice


def tiers() -> Iterator[tuple[str, Choice]]:
    """The tiers by threads a block, beside every level on the grid."""
    yield "none", {"engine": "persistent", "tiers": "none"}
    for tier, sizes in (("block", (256, 512, 768, 1024)), ("cluster", (256, 384, 512))):
        for threads in sizes:
            choice = {"engine": "persistent", "tiers": tier, "block_threads": threads}
            yield f"{tier}, {threads} threads", choice


def shapes() -> Iterator[tuple[str, Choice]]:
    """The persistent engine by blocks and threads a block."""
    for threads in (128, 256, 512, 1024):
        for blocks in (33, 66, 132, 264, 528):
            name = f"{blocks} blocks of {threads} threads"
            options = Options(blocks=blocks)
            choice = {"engine": "persistent", "tiers": "none", "block_threads": threads}
            yield name, choice | {"options": options}


def engines() -> Iterator[tuple[str, Choice]]:
    """What ``auto`` picks against the best mapping of every engine that needs no host."""
    yield "auto", {}
    for engine, tier in (
        ("graph_while", "none"),
        ("persistent", "none"),
        ("persistent", "block"),
        ("persistent", "cluster"),
    ):
        for advance in ("thread", "warp", "auto"):
            choice = {"engine": engine, "tiers": tier, "advance": advance}
            yield f"{engine}, {tier}, {advance}", choice
    for engine in ("graph_while", "persistent"):
        for frontier in FRONTIERS:
            how = {"direction": "auto", "advance": "auto", "frontier": frontier}
            yield f"{engine}, direction auto, {frontier}", how | {"engine": engine, "tiers": "none"}


def deep() -> Iterator[tuple[str, Choice]]:
    """The naive loop and what ``auto`` picks, with every level on the grid between them.

    What ``auto`` picks also where L2 holds nothing of the graph, as in the first search of it.
    """
    yield "host_loop", {"engine": "host_loop"}
    yield "persistent, no tier", {"engine": "persistent", "tiers": "none"}
    yield "auto", {}
    yield "auto, cold L2", {"l2": "cold"}


def orders() -> Iterator[tuple[str, Choice]]:
    """The automatic search of the vertices in every order; the reordering itself is not timed."""
    for name in ORDERS:
        yield name, {"reorder": name}


SWEEPS = {
    sweep.__name__: sweep
    for sweep in (deep, mappings, directions, frontiers, appends, tiers, shapes, engines, orders)
}
SMALL = (
    "matrix-jagmesh7-pattern-symmetric.mtx",
    "internet-as-22july06.txt.gz",
    "words-kjv",
)
DEEPEST = (*DEEP[:6], "road:3000x3000")

GRAPHS_OF = {
    "deep": DEEPEST + SMALL,
    "tiers": DEEPEST,
    "directions": WIDE,
    "frontiers": WIDE,
    "appends": WIDE,
    "orders": ORDERED,
}


def load(name: str) -> Graph | None:
    """A graph by spec, bundled name or file of the suite; None if the file is not there."""
    if ":" in name or name == "words-kjv":
        return read_graph(name)
    folder = os.environ.get("PERSISTENT_BFS_GRAPHS", "../shared/graphs")
    path = Path(folder) / name
    return read_graph(path) if path.is_file() else None


@click.command()
@click.argument("sweep", type=click.Choice(list(SWEEPS)))
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--graph", "names", multiple=True, help="Only this one; may be given several times.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="Timed searches a row and pass.",
)
@click.option(
    "--passes",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Times that all choices are measured in turn.",
)
@click.option("--device", "where", default="cuda", show_default=True)
def main(
    sweep: str, output: Path, names: tuple[str, ...], repeat: int, passes: int, where: str
) -> None:
    """Run SWEEP on a GPU and write its rows to OUTPUT."""
    rows: list[Choice] = []
    with opened(where) as device:
        report = {
            "sweep": sweep,
            "device": device.info.name,
            "driver": device.info.driver,
            "repeat": repeat,
            "passes": passes,
        }
        for name in names or GRAPHS_OF.get(sweep, DEEP + WIDE):
            graph = load(name)
            if graph is None:
                click.echo(f"passed over: no {name}", err=True)
                continue
            source = int(graph.degrees.argmax()) if name in WIDE else 0
            rows += run(graph, device, source, dict(SWEEPS[sweep]()), repeat, passes)
            with published(output) as file:
                file.write(json.dumps(report | {"rows": rows}, indent=1) + "\n")


def run(
    graph: Graph,
    device: Device,
    source: int,
    choices: dict[str, Choice],
    repeat: int,
    passes: int,
) -> list[Choice]:
    """A row for every choice that ``graph`` can be searched with; a wrong answer ends the sweep."""
    expected = bfs_reference(graph, source).distances
    click.echo(f"{graph.name}: {graph.vertices:,} vertices, {graph.arcs:,} arcs")
    found: dict[str, list[Measurement]] = {label: [] for label in choices}

    def refused(label: str, error: Exception) -> None:
        click.echo(f"  {label}: {error}")
        del found[label]

    made: dict[str, Choice] = {}
    l2 = {label: how.pop("l2", "warm") for label, how in choices.items()}
    for label, how in choices.items():
        try:
            # The host takes long to reorder: once, not in every pass.
            order = {"reorder": reorder(graph, how["reorder"])} if "reorder" in how else {}
        except ValueError as error:
            refused(label, error)
        else:
            made[label] = how | order
    for number in range(passes):
        with ExitStack() as together:
            searches: dict[str, BFS] = {}
            for label in turned(tuple(found), number, passes):
                try:
                    search = BFS(graph, device=device, **made[label])
                except (ValueError, RuntimeError) as error:
                    refused(label, error)
                else:
                    searches[label] = together.enter_context(search)
            for label, search in searches.items():
                try:
                    one = measure(search, source, repeat=repeat, expected=expected, l2=l2[label])
                except (ValueError, RuntimeError) as error:
                    refused(label, error)
                    continue
                if one.device is None:
                    raise click.ClickException(f"{graph.name}, {label}: {one.problem}")
                found[label].append(one)
    rows = [row_of(graph, label, parts) for label, parts in found.items()]
    for row in rows:
        median, reordering = row["ms"]["median"], row["reorder_ms"]
        apart = f", {reordering:,.0f} ms of the host to reorder" if reordering else ""
        each = 1e3 * median / row["levels"]
        click.echo(f"  {row['choice']:36} {median:9.4f} ms {each:9.3f} us{apart}")
    medians = {row["choice"]: row["ms"]["median"] for row in rows}
    if "auto" in medians:
        click.echo(f"  auto takes {medians['auto'] / min(medians.values()):.2f} x the best")
    return rows


def turned(labels: tuple[str, ...], number: int, passes: int) -> tuple[str, ...]:
    """The labels in the order of pass ``number``: from another one on, each time."""
    first = number * len(labels) // passes
    return labels[first:] + labels[:first]


def row_of(graph: Graph, label: str, parts: list[Measurement]) -> Choice:
    """What all passes found of a choice."""
    result = parts[-1].result
    return {
        "graph": graph.name,
        "choice": label,
        "engine": result.engine,
        "tier": result.tier,
        "levels": result.levels,
        "reorder_ms": result.reorder_ms,
        "ms": pooled(part.device for part in parts).spread(),
        "wall_ms": pooled(part.wall for part in parts).spread(),
    }


def pooled(timings: Iterable[Timing | None]) -> Timing:
    """The samples of all of them."""
    return Timing(tuple(ms for timing in timings if timing for ms in timing.samples))


if __name__ == "__main__":
    main()

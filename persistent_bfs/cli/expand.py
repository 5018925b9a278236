"""``persistent-bfs expand``: levels walked in isolation, by every mapping."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from persistent_bfs.cli.options import (
    AT_LEAST_1,
    Numbers,
    advances_option,
    device_option,
    json_option,
    report_file_option,
    takes_graph,
    verbose_option,
)
from persistent_bfs.cli.output import Report, deliver, progress_bar, write_json
from persistent_bfs.cli.program import bad_input
from persistent_bfs.cli.searches import (
    compile_ahead,
    describe_device,
    describe_graph,
    kernel_device,
)
from persistent_bfs.config import WALK

if TYPE_CHECKING:
    from persistent_bfs.graph import Graph

# One for the walks and the searches beside them.
BLOCK_THREADS = 256


@click.command("expand")
@takes_graph
@click.option("--levels", type=Numbers(), help="Levels to walk; default: the three of most edges.")
@advances_option("all", "Mappings to walk by.")
@click.option(
    "--repeat", type=AT_LEAST_1, default=64, show_default=True, help="Walks of a level in a launch."
)
@click.option(
    "--samples", type=AT_LEAST_1, default=10, show_default=True, help="Timed launches a row."
)
@device_option
@verbose_option
@report_file_option
@json_option
def command(
    graph: Graph,
    source: int,
    levels: list[int] | None,
    advances: list[str],
    repeat: int,
    samples: int,
    device: str,
    output: Path | None,
    as_json: bool,
) -> int:
    """Walk levels of a search of GRAPH alone, by each mapping.

    A level is walked over and over in one launch and nothing is claimed or appended: what is
    measured is what reading its arcs costs, and what was read is checked. Beside it stands the
    whole search with that mapping.
    """
    from persistent_bfs.expand import REPEAT_LIMIT, expand, pick_levels
    from persistent_bfs.plan import configure
    from persistent_bfs.reference import level_table

    # All that can be refused is refused before anything is compiled.
    if repeat > REPEAT_LIMIT:
        raise click.ClickException(f"--repeat is {repeat}; it must be 1 to {REPEAT_LIMIT:,}")
    with bad_input():
        if levels is not None:
            pick_levels(level_table(graph, source), levels)
        configs = [
            configure(graph, engine=engine, advance=advance, block_threads=BLOCK_THREADS)
            for engine in (WALK.name, "persistent")
            for advance in advances
        ]
    with (
        kernel_device("expand", device) as (opened, chosen),
        progress_bar() as progress,
        bad_input(),
    ):
        compile_ahead(opened, configs, progress)
        progress(f"walking by {', '.join(advances)}", 0, 0)
        found = expand(
            graph,
            source,
            levels=levels,
            advances=advances,
            repeat=repeat,
            device=opened,
            samples=samples,
            block_threads=BLOCK_THREADS,
        ).summary()
    report = {
        **describe_graph(graph, source),
        **found,
        **describe_device(opened, chosen),
        "rows": list(with_ratios(found["rows"])),
    }
    return deliver(
        report,
        "expansion",
        as_json=as_json,
        files=[(output, write_json(report, "expansion"))] if output else (),
        wrong=[
            ("wrong answer", f"{where(row)}, {row['advance']}: {row['problem']}")
            for row in [*report["rows"], *report["searches"]]
            if not row["verified"]
        ],
    )


def where(row: Report) -> str:
    """What a row of the report is about."""
    return f"level {row['level']}" if "level" in row else "the whole search"


def with_ratios(rows: list[Report]) -> Iterator[Report]:
    """Add to each row how many times what its level's best mapping costs it costs."""
    for _, level in groupby(rows, itemgetter("level")):
        costs = [(row, walk_cost(row)) for row in level]
        best = min((cost for _, cost in costs if cost is not None), default=None)
        for row, cost in costs:
            yield {**row, "ratio_to_best": cost / best if cost is not None and best else None}


def walk_cost(row: Report) -> float | None:
    """What mappings are compared by: the median time, or where there is no clock the lane slots."""
    cost: float | None = row["ms"]["median"] if row["ms"] else row["lane_slots"]
    return cost

"""``persistent-bfs levels``: the level table, by the reference alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from persistent_bfs.cli.options import json_option, takes_graph
from persistent_bfs.cli.output import Report, present
from persistent_bfs.cli.searches import describe_graph

if TYPE_CHECKING:
    from persistent_bfs.graph import Graph


@click.command("levels")
@takes_graph
@json_option
def command(graph: Graph, source: int, as_json: bool) -> None:
    """Show every level of a search of GRAPH, and what each mapping would issue for it."""
    from persistent_bfs.reference import level_table, level_totals

    table = level_table(graph, source)
    totals = level_totals(table)

    def plain(row: Any) -> Report:
        return {**row._asdict(), "lane_slots": row.lane_slots._asdict()}

    report = {
        **describe_graph(graph, source),
        "rows": [plain(row) | {"busiest": graph.label_of(row.busiest)} for row in table],
        "totals": plain(totals),
        "useful_share": totals.lane_slots.useful_share(),
    }
    present(report, as_json, "levels")

"""``persistent-bfs compare``: every engine and mapping on one search, checked and measured."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from persistent_bfs.cli.options import (
    AT_LEAST_1,
    Names,
    OutputFile,
    PeerNames,
    advances_option,
    engines_option,
    json_option,
    l2_option,
    max_depth_option,
    no_verify_option,
    policy_options,
    report_file_option,
    search_options,
    takes_graph,
)
from persistent_bfs.cli.output import Report, deliver, progress_bar, published, write_json
from persistent_bfs.cli.program import bad_input, say
from persistent_bfs.cli.searches import (
    compile_ahead,
    describe_device,
    describe_graph,
    describe_search,
    kernel_device,
    note_ignored,
    session,
)
from persistent_bfs.config import ENGINES, TIERS, conflict
from persistent_bfs.peers import PEERS
from persistent_bfs.tiers import AUTO, NONE

if TYPE_CHECKING:
    import numpy.typing as npt

    from persistent_bfs.config import Config
    from persistent_bfs.graph import Graph
    from persistent_bfs.io import Progress
    from persistent_bfs.measure import Measurement
    from persistent_bfs.peers.measure import PeerMeasurement
    from persistent_bfs.session import BFS

# The two plain mappings and the one that chooses: enough to see by, on any graph.
COMPARED_ADVANCES = "thread,warp,auto"

# Of an engine or a session, not of the kernels it runs.
OPTIONS = ("blocks", "levels_per_launch", "tier_slots", "time_limit", "reorder")


@click.command("compare")
@takes_graph
@engines_option("Engines to compare.")
@advances_option(COMPARED_ADVANCES, "Mappings to compare, or all.")
@click.option(
    "--tiers",
    type=Names({AUTO: None, **TIERS}, "tier"),
    default=f"{AUTO},{NONE}",
    show_default=True,
    help="Tiers to compare, for engines that have them.",
)
@click.option(
    "--with",
    "peers",
    type=PeerNames(PEERS, "peer"),
    help=f"Other libraries to measure beside ours, by commas: {', '.join(PEERS)}; all: those that "
    "are installed.",
)
@click.option("--repeat", type=AT_LEAST_1, default=10, help="Timed searches a row.")
@l2_option
@max_depth_option
@no_verify_option
@policy_options()
@search_options
@report_file_option
@click.option(
    "--plot", type=OutputFile(".svg", ".png", needs="matplotlib"), help="Draw the comparison."
)
@json_option
def command(
    graph: Graph,
    source: int,
    engines: list[str],
    advances: list[str],
    tiers: list[str],
    peers: list[str] | None,
    repeat: int,
    l2: str,
    max_depth: int | None,
    no_verify: bool,
    device: str,
    direction: str,
    schedule: str,
    seed: int,
    output: Path | None,
    plot: Path | None,
    as_json: bool,
    **how: Any,
) -> int:
    """Search GRAPH by every engine and mapping, check each answer, and compare what they cost."""
    import numpy as np

    from persistent_bfs.layout import NO_DEPTH_LIMIT
    from persistent_bfs.measure import measure
    from persistent_bfs.peers.measure import measure_peer
    from persistent_bfs.plan import configure, with_tier
    from persistent_bfs.reference import bfs_reference
    from persistent_bfs.reorder import reorder

    if peers and max_depth is not None:
        raise click.ClickException(
            "--max-depth is for our searches: leave it out, or leave out --with"
        )
    conflicts = {
        advance: conflict(direction, advance, how["append"], how["frontier"])
        for advance in advances
    }
    pairs = [pair for pair in product(engines, advances) if conflicts[pair[1]] is None]
    if not pairs:
        raise click.ClickException(str(conflicts[advances[0]]))
    choices = {name: how[name] for name in how if name not in OPTIONS}
    rows: list[Report] = []
    with (
        kernel_device("compare", device, schedule=schedule, seed=seed) as (opened, chosen),
        progress_bar() as progress,
    ):
        note_ignored(chosen.kind, schedule, seed)
        right: npt.NDArray[np.int32] | None = None  # the distances, once an answer is proved
        configs: dict[Config, None] = {}  # in order, each once: two words may mean one tier
        with bad_input():
            for engine, advance in pairs:
                usual = configure(
                    graph, engine=engine, advance=advance, direction=direction, **choices
                )
                threads = choices["block_threads"]
                for word in tiers if ENGINES[engine].tiers else [NONE]:
                    config, _ = with_tier(usual, graph, word, opened.info, block_threads=threads)
                    configs[config] = None
        compile_ahead(opened, configs, progress)
        order = how["reorder"]
        progress("preparing", 0, 0)
        with bad_input():
            how["reorder"] = made = reorder(graph, order)  # once for all rows
        for number, config in enumerate(configs):
            engine, advance, tier = config.engine, config.advance, config.tier
            name = f"{engine}, {advance}" + (f", {tier} tier" if tier != NONE else "")
            done, total = number * repeat, len(configs) * repeat
            progress(f"{name}: preparing", done, total)
            how |= {"engine": engine, "advance": advance, "direction": direction, "tiers": tier}
            with session(graph, opened, **how) as search:
                progress(name, done, total)
                advanced = functools.partial(_advance, progress, name, done, total)
                measured = measure(
                    search,
                    source,
                    repeat=repeat,
                    max_depth=max_depth,
                    expected=right,
                    progress=advanced,
                    l2=l2,
                    verify=not no_verify,
                )
                if right is None and (measured.verified or no_verify):
                    right = measured.result.distances
                rows.append(describe_row(graph, search, measured))
            if rows[-1]["engine"] != engine:
                say("note", rows[-1]["reason"])
        if right is None:  # no answer was right
            depth = NO_DEPTH_LIMIT if max_depth is None else max_depth
            right = bfs_reference(graph, source, depth).distances
        found: list[PeerMeasurement] = []
        for number, name in enumerate(peers or ()):
            done, total = number * repeat, len(peers or ()) * repeat
            progress(f"{name}: preparing", done, total)
            advanced = functools.partial(_advance, progress, name, done, total)
            found.append(
                measure_peer(
                    PEERS[name],
                    graph,
                    source,
                    repeat=repeat,
                    expected=right,
                    progress=advanced,
                    verify=not no_verify,
                )
            )
    for row in rows:
        base = [
            other["device_ms"]
            for other in rows
            if (other["engine"], other["advance"]) == ("host_loop", row["advance"])
        ]
        timed = bool(row["device_ms"] and base and base[0])
        row["speedup_vs_host_loop"] = base[0] / row["device_ms"] if timed else None
    report = {
        **describe_graph(graph, source),
        **describe_device(opened, chosen),
        "repeat": repeat,
        "l2": l2,
        "max_depth": max_depth,
        "reorder": order,
        "reorder_ms": None if no_verify else made.milliseconds if made else 0.0,
        "levels": int(right.max()) + 1,
        "reached": int(np.count_nonzero(right >= 0)),
        "rows": rows,
        "peers": [describe_peer(peer, rows) for peer in found],
    }
    files: list[tuple[Path, Callable[[Path], None]]] = []
    if output:
        files.append((output, write_json(report, "comparison")))
    if plot:
        files.append((plot, functools.partial(write_plot, report)))
    searched = [(f"{row['engine']}, {row['advance']}", row["problem"]) for row in rows]
    searched += [(f"{peer['name']} {peer['version']}", peer["problem"]) for peer in report["peers"]]
    wrong = [("wrong answer", f"{who}: {problem}") for who, problem in searched if problem]
    return deliver(report, "comparison", as_json=as_json, files=files, wrong=wrong)


def write_plot(report: Report, path: Path) -> None:
    """Draw a comparison into a file of the kind that its name says."""
    from persistent_bfs.display import plot_comparison

    with published(path, "wb") as file:
        plot_comparison(report, file, path.suffix[1:])


def _advance(progress: Progress, name: str, before: int, total: int, done: int) -> None:
    progress(name, before + done, total)


def describe_row(graph: Graph, search: BFS, measured: Measurement) -> Report:
    """Describe one search of a comparison: as `describe_search`, with the spread of its times."""
    row = describe_search(graph, search, measured)
    counts = row["counts"] or {}
    milliseconds = row["device_ms"]
    return row | {
        "ms": measured.device.spread() if measured.device else None,
        "wall_ms": measured.wall.spread() if measured.wall else None,
        "us_per_level": milliseconds and 1e3 * milliseconds / row["levels"],
        "lane_slots": counts.get("lane_slots"),
        "atomics": counts.get("atomics"),
    }


def describe_peer(found: PeerMeasurement, rows: list[Report]) -> Report:
    """Describe another library's search, and how much longer it takes than our fastest row.

    Both by the host's clock, around the whole call.
    """
    ours = [row["wall_ms"]["median"] for row in rows if row["verified"] and row["wall_ms"]]
    timed = bool(found.wall and ours)
    return {
        "name": found.peer.name,
        "function": found.peer.function,
        "runs_on": found.peer.runs_on,
        "version": found.version,
        "verified": found.verified,
        "problem": found.problem,
        "prepare_ms": found.prepare_ms if found.checked else None,
        "wall_ms": found.wall.spread() if found.wall else None,
        "times_ours": found.wall.median / min(ours) if timed and found.wall else None,
    }

"""Measure what the trace of levels costs: device time with it on against off, in one run.

    python benchmarks/trace_cost.py benchmarks/results/h200/trace-cost.json

Two sessions, alike but for the trace, search in turn, and who is first alternates, so that neither
a drifting clock nor a warmer cache is taken for a cost. They are opened anew in an even number of
passes, the other one first, since sessions differ by where in memory they lie: which is opened
second may take longer by more than the trace costs. What it costs is told by the means of two
passes, one of either order, with the standard error over these. Each searches after a third
session, which has no trace: while the host reads one the device falls idle, and whatever search
comes next is slower by some 20 microseconds, traced or not. A row a graph and tier, all of the
persistent engine. Both answers are compared with the reference, and the trace with what follows
from them: sizes of frontiers, arcs of what was pushed, times that follow each other and fit into
the search. A row that is wrong has no time. The file is written anew after each row.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import numpy.typing as npt
from sweep import load, turned
from wide import opened, spread, text

from persistent_bfs import BFS, BFSResult, Graph, LevelTrace
from persistent_bfs.cli.output import published
from persistent_bfs.config import TIERS
from persistent_bfs.device.base import Device, RepeatedDiscovery
from persistent_bfs.measure import (
    WARM_UPS,
    Timing,
    describe_clocks,
    describe_environment,
    find_problem,
)
from persistent_bfs.reference import WrongAnswer, bfs_reference

Report = dict[str, Any]

# Sessions to compare, and whether they trace.
TRACES = {"untraced": False, "traced": True}

# A trace that lasts longer than its search, by more than two clocks may differ, is wrong.
CLOCKS_DIFFER = 1.01


class Case(NamedTuple):
    """A graph, who may run its narrow levels, and where from; None: the largest degree."""

    graph: str
    tiers: str = "auto"
    source: int | None = None


CASES = (
    Case("path:10000", source=0),
    Case("grid:512x512", source=0),
    Case("road-USA-NY.gr.xz", source=0),
    Case("road-luxembourg-osm.mtx.gz", source=0),
    Case("maze512-1-0.txt.gz", source=0),
    Case("road-USA-FLA.gr.xz", "block", source=0),
    Case("road-USA-NY.gr.xz", "cluster", source=0),
    Case("path:10000", "cluster", source=0),
    Case("road:3000x3000", source=0),
    Case("matrix-jagmesh7-pattern-symmetric.mtx"),
    Case("kron:20"),
    Case("words-kjv"),
)


def cases_of(names: tuple[str, ...]) -> list[Case]:
    """The cases of these graphs; of one that is not among them, with the automatic tier."""
    if not names:
        return list(CASES)
    return [
        case
        for name in names
        for case in [known for known in CASES if known.graph == name] or [Case(name)]
    ]


def find_trace_problem(
    graph: Graph, result: BFSResult, expected: npt.NDArray[np.int32]
) -> str | None:
    """What is wrong with the trace of a search by the persistent engine, in one line.

    ``expected`` are the right distances, (n,). Times are checked where the device tells them.
    """
    levels = result.trace or []
    reached = expected >= 0
    sizes = np.bincount(expected[reached]).tolist()
    if [level.frontier for level in levels] != sizes:
        return "the frontiers' sizes are not those of the distances"
    arcs = np.bincount(expected[reached], weights=graph.degrees[reached])
    for level in levels:
        if level.direction == "push" and level.edges != arcs[level.level]:
            return f"level {level.level} has {arcs[level.level]:.0f} arcs, not {level.edges}"
    if result.device_ms is None:
        return None
    return _find_time_problem(levels, result.tier, result.device_ms)


def _find_time_problem(levels: list[LevelTrace], tier: str, device_ms: float) -> str | None:
    narrow = TIERS[tier].mappings
    begins, ends = [], []
    for level in levels:
        if level.begin_ns is None or level.ns is None or level.ns <= 0:
            return f"level {level.level} has no duration"
        begins.append(level.begin_ns)
        ends.append(level.begin_ns + level.ns)
    for here, after in pairwise(levels):
        gap = begins[after.level] - ends[here.level]
        # A tier is entered and left; levels of the grid meet at the barrier.
        on_grid = here.mapping not in narrow and after.mapping not in narrow
        if gap < 0 or (on_grid and gap > 0):
            return f"levels {here.level} and {after.level} are {gap} ns apart"
    if ends[-1] / 1e6 > device_ms * CLOCKS_DIFFER:
        return f"the levels take {ends[-1] / 1e6:.4f} ms of {device_ms:.4f}"
    return None


def measure_case(
    graph: Graph, device: Device, case: Case, source: int, repeat: int, passes: int = 2
) -> Report:
    """Measure one case with the trace and without, in an even number of passes.

    Raises
    ------
    WrongAnswer
        A search was wrong, or its trace.
    ValueError, RuntimeError
        The tier is not to be had.
    """
    expected = bfs_reference(graph, source).distances
    how: Report = {"engine": "persistent", "tiers": case.tiers}
    samples: dict[str, list[float]] = {label: [] for label in TRACES}
    shapes: dict[str, str] = {}
    results: dict[str, BFSResult] = {}
    for number in range(passes):
        with ExitStack() as together:
            before, *both = (
                together.enter_context(BFS(graph, device=device, **how, trace=traces))
                for traces in (False, *(TRACES[label] for label in in_turn(number)))
            )
            sessions = dict(zip(in_turn(number), both, strict=True))
            results = _search_in_turn(graph, source, expected, before, sessions, repeat, samples)
            shapes = {label: session.shape for label, session in sessions.items()}
    last = results["traced"]
    row: Report = {
        "tier": last.tier,
        "shape": shapes,
        "levels": last.levels,
        "mappings": dict(Counter(level.mapping for level in last.trace or [])),
        "verified": True,
        "untraced_ms": None,
        "traced_ms": None,
        "percent": None,
        "percent_error": None,
        "ns_a_level": None,
    }
    if samples["traced"]:
        row |= compared(samples, passes, last.levels)
    return row


def compared(samples: dict[str, list[float]], passes: int, levels: int) -> Report:
    """What the trace costs, by the samples in milliseconds of an even number of passes."""
    sessions = {
        label: np.median(np.reshape(found, (passes, -1)), axis=1)
        for label, found in samples.items()
    }
    # Either was opened first in one of two passes.
    off, on = (sessions[label].reshape(-1, 2).mean(axis=1) for label in TRACES)
    percents = 100 * (on / off - 1)
    error = percents.std(ddof=1) / np.sqrt(len(percents)) if len(percents) > 1 else None
    return {
        **{f"{label}_ms": spread(Timing(tuple(found))) for label, found in samples.items()},
        "sessions_ms": {label: found.tolist() for label, found in sessions.items()},
        "percent": float(percents.mean()),
        "percent_error": None if error is None else float(error),
        "ns_a_level": float((on - off).mean()) * 1e6 / levels,
        "samples": samples,
    }


def in_turn(number: int) -> tuple[str, ...]:
    """Both kinds of session, in an order that alternates."""
    return turned(tuple(TRACES), number % 2, 2)


def _search_in_turn(
    graph: Graph,
    source: int,
    expected: npt.NDArray[np.int32],
    before: BFS,
    sessions: dict[str, BFS],
    repeat: int,
    samples: dict[str, list[float]],
) -> dict[str, BFSResult]:
    """The last results of one pass; its times are added to ``samples``."""
    results: dict[str, BFSResult] = {}
    searches = 1 + WARM_UPS + repeat
    for number in range(searches):
        for label in in_turn(number + 1):
            before.run(source)
            results[label] = sessions[label].run(source)
        if number in (0, searches - 1):
            for label, result in results.items():
                problem = find_problem(graph, result, expected=expected)
                if problem is None and label == "traced":
                    problem = find_trace_problem(graph, result, expected)
                if problem is not None:
                    raise WrongAnswer(f"{label}: {problem}")
        if number > WARM_UPS:
            for label, result in results.items():
                if result.device_ms is not None:
                    samples[label].append(result.device_ms)
    return results


def describe(row: Report) -> str:
    """A row in one line."""
    start = f"{row['graph']:34} {row['tiers']:8}"
    if row.get("problem"):
        return f"{start} {'WRONG: ' if row['verified'] is False else ''}{row['problem']}"
    if row["percent"] is None:
        return f"{start} right; this device tells no time"
    error = "" if row["percent_error"] is None else f" ({row['percent_error']:.1f})"
    return (
        f"{start} {row['tier']:8} {row['levels']:6,} levels, "
        f"{row['untraced_ms']['median']:.4f} ms, traced {row['traced_ms']['median']:.4f}: "
        f"{row['percent']:+.1f}{error} %, {row['ns_a_level']:+.1f} ns a level"
    )


@click.command()
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--graph", "names", multiple=True, help="Only this one; may be given several times.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="Timed searches with the trace, and without, in a pass.",
)
@click.option(
    "--passes",
    type=click.IntRange(min=2),
    default=12,
    show_default=True,
    help="Times that both sessions are opened anew: even, so that each is first as often.",
)
@click.option("--device", "where", default="cuda", show_default=True)
def main(output: Path, names: tuple[str, ...], repeat: int, passes: int, where: str) -> None:
    """Measure what the trace costs and write it to OUTPUT."""
    if passes % 2:
        raise click.UsageError(f"--passes {passes}: an even number, so that each is first as often")
    rows: list[Report] = []
    with opened(where) as device:
        report: Report = {
            "device": device.info.name,
            "driver": device.info.driver,
            "clocks": describe_clocks(device.info),
            "environment": describe_environment(device.info),
            "repeat": repeat,
            "passes": passes,
            "rows": rows,
        }
        for case in cases_of(names):
            graph = load(case.graph)
            if graph is None:
                click.echo(f"passed over: no {case.graph}", err=True)
                continue
            source = int(graph.degrees.argmax()) if case.source is None else case.source
            row: Report = {"graph": graph.name, "source": source, "tiers": case.tiers}
            try:
                row |= measure_case(graph, device, case, source, repeat, passes)
            except (WrongAnswer, RepeatedDiscovery) as wrong:
                row |= {"verified": False, "problem": str(wrong)}
            except (ValueError, RuntimeError) as error:
                row |= {"verified": None, "problem": str(error)}
            rows.append(row)
            click.echo(describe(row))
            with published(output) as file:
                file.write(text(report))
    failed = [f"{row['graph']}, {row['tiers']}" for row in rows if row["verified"] is False]
    if failed:
        raise click.ClickException(f"wrong: {'; '.join(failed)}")


if __name__ == "__main__":
    main()

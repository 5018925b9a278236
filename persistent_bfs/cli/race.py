"""``persistent-bfs race``: a search under many schedules of its threads, and one of them told."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from persistent_bfs.cli.options import (
    AT_LEAST_0,
    AT_LEAST_1,
    choice,
    json_option,
    policy_options,
    takes_graph,
    verbose_option,
)
from persistent_bfs.cli.output import Report, deliver, progress_bar
from persistent_bfs.cli.program import bad_input
from persistent_bfs.cli.searches import describe_graph
from persistent_bfs.config import ADVANCES, ENGINES
from persistent_bfs.device.base import DeviceUnavailable

if TYPE_CHECKING:
    from persistent_bfs.graph import Graph
    from persistent_bfs.race import Access, DataRace, RaceReport

SCHEDULES = 200


@click.command("race")
@takes_graph
@choice("--engine", ENGINES, "persistent", "Who runs the level loop.")
@choice("--advance", ADVANCES, "thread", "How a frontier's edges are given to threads.")
@policy_options(claim="naive")
@click.option("--schedules", type=AT_LEAST_1, help=f"Schedules to try; default: {SCHEDULES}.")
@click.option("--seed", type=AT_LEAST_0, help="Try only this schedule.")
@click.option("--check/--no-check", default=True, help="Look for data races, too, in one more run.")
@verbose_option
@json_option
def command(
    graph: Graph,
    source: int,
    schedules: int | None,
    seed: int | None,
    check: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """Look for vertices of GRAPH that are discovered twice.

    The search is run under many schedules of the emulated device. One interleaving is shown step
    by step, with the command that replays it. Ends with exit code 1 if a vertex was discovered
    twice or a data race was found.
    """
    from persistent_bfs.device import emulated_problem
    from persistent_bfs.race import explore

    if schedules is not None and seed is not None:
        raise click.ClickException("--seed tries one schedule: leave --schedules out")
    problem = emulated_problem()
    if problem is not None:
        raise DeviceUnavailable(problem)
    count = 1 if seed is not None else schedules or SCHEDULES
    with bad_input(), progress_bar() as progress:
        progress("compiling", 0, count)
        found = explore(
            graph,
            source,
            schedules=count,
            check=check,
            progress=lambda done: progress("trying schedules", done, count),
            **how,
        )
        if seed:
            found = with_only(found, seed)
    report = {
        **describe_graph(graph, source),
        **how,
        "block_threads": found.config.block_threads,
        **describe(found),
        "data_races": [describe_race(race) for race in found.races] if check else None,
    }
    shown = report["interleaving"]
    if shown is not None:
        report["replay"] = replay_command(click.get_current_context(), shown["seed"])
    bad = [
        f"{number} of {count} schedules {what}"
        for number, what in (
            (report["duplicating"], "discover a vertex more than once"),
            (report["wrong"], "give wrong distances"),
        )
        if number
    ]
    if found.races:
        bad.append(f"data races on {', '.join(sorted({r.second.buffer for r in found.races}))}")
    wrong = [("race found", "; ".join(bad))] if bad else []
    return deliver(report, "races", as_json=as_json, wrong=wrong)


def with_only(found: RaceReport, seed: int) -> RaceReport:
    """Exchange the schedules of a report for the one of ``seed``."""
    run = found.run(seed)
    vertex = run.duplicated[0] if run.duplicated else found.vertex
    found = replace(found, runs=(run,), vertex=vertex)
    if vertex is None:
        return found
    return replace(found, seed=seed, interleaving=found.replay(seed, vertex))


def describe(found: RaceReport) -> Report:
    """Describe what all schedules did, and the one that is told."""
    runs, duplicating = found.runs, found.duplicating
    ended = [run for run in runs if not run.overflowed]
    sums = sorted({run.enqueued for run in ended})
    return {
        "schedules": len(runs),
        "reached": found.reached,
        "duplicating": len(duplicating),
        "first_seed": duplicating[0].seed if duplicating else None,
        "overflowed": len(runs) - len(ended),
        "wrong": sum(not run.distances_right for run in ended),
        "sums": [
            {"enqueued": total, "schedules": sum(run.enqueued == total for run in ended)}
            for total in sums
        ],
        "interleaving": describe_interleaving(found),
        "replay": None,
    }


def describe_interleaving(found: RaceReport) -> Report | None:
    """Describe the schedule that is told, and each access of it."""
    if found.vertex is None or found.seed is None:
        return None
    (run,) = (run for run in found.runs if run.seed == found.seed)
    level = int(found.distances[found.vertex])
    frontiers = found.frontiers(run)
    frontier = [] if run.overflowed else frontiers[level]
    return {
        "seed": found.seed,
        "vertex": found.vertex,
        "vertex_label": found.graph.label_of(found.vertex),
        "level": level,
        "discoveries": len(frontier),
        "discovered": len(set(frontier)),
        "overflowed": run.overflowed,
        "enqueued": run.enqueued,
        "frontiers": [len(each) for each in frontiers],
        "duplicated": list(run.duplicated),
        "accesses": [describe_access(access) for access in found.interleaving],
    }


def describe_race(race: DataRace) -> Report:
    """Describe two accesses that nothing orders."""
    return {
        "kernel": race.first.kernel,
        "place": race.place,
        "count": race.count,
        "first": describe_access(race.first),
        "second": describe_access(race.second),
    }


def describe_access(access: Access) -> Report:
    """Describe who accessed what, where in the device code, and the values before and after."""
    return {
        "kernel": access.kernel,
        "launch": access.launch,
        "step": access.step,
        "block": access.block,
        "thread": access.thread,
        "access": access.kind,
        "place": access.place,
        "before": access.before,
        "after": access.after,
        "file": access.source.file,
        "line": access.source.line,
        "code": access.source.text,
    }


def replay_command(ctx: click.Context, seed: int) -> str:
    """Return the command that shows one schedule of this one's, its other options as given."""
    words = ["persistent-bfs", str(ctx.info_name)]
    for parameter in ctx.command.params:
        name = str(parameter.name)
        value = ctx.params.get(name)
        if name in ("schedules", "seed", "as_json") or value is None:
            continue
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if isinstance(parameter, click.Argument):
            words.append(str(value))
        elif isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            words += [parameter.opts[0], str(value)]
    return shlex.join([*words, "--seed", str(seed)])

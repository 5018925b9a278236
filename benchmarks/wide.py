"""Measure wide graphs, a few levels that hold nearly all edges, against what was set out to reach.

    python benchmarks/wide.py benchmarks/results/h200/wide.json

For each graph and choice: device milliseconds of verified searches from the vertex of largest
degree; then of searches from random sources, each verified, as rates whose mean is harmonic; the
device memory held, buffer by buffer; a traced search, level by level; and what the host took. The
first answer from a source is proven, all others are compared with it; a search that is wrong has no
time. The file is written anew after each graph.

TEPS are counted both ways, and named: ``teps_edges`` counts the undirected edges of the reached
component, half its arcs, as Graph500 does; ``teps_arcs`` counts the stored arcs. Sources are any
vertices of positive degree; the means over those in the widest component searched stand apart.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import numpy.typing as npt

from persistent_bfs import BFS, BFSResult, Graph, read_graph
from persistent_bfs.cli.program import NO_DEVICE
from persistent_bfs.device import open_device
from persistent_bfs.device.base import Device, DeviceUnavailable
from persistent_bfs.io.formats import stem
from persistent_bfs.measure import (
    Measurement,
    Timing,
    describe_clocks,
    describe_environment,
    find_problem,
    harmonic_mean,
    measure,
)
from persistent_bfs.reference import WrongAnswer, prove_distances

Report = dict[str, Any]
Distances = npt.NDArray[np.int32]


class Bar(NamedTuple):
    """What the median from the vertex of largest degree, in milliseconds, is held against."""

    at_most: float
    reach_for: float


# The graphs, in the order in which they are measured, and their bars; small ones first.
BARS = {
    "internet-as-22july06.txt.gz": Bar(0.07, 0.03),
    "social-facebook-combined.txt.gz": Bar(0.07, 0.03),
    "email-Enron.txt.gz": Bar(0.07, 0.03),
    "social-Slashdot0902.txt.gz": Bar(0.07, 0.03),
    "web-cnr-2000.txt.xz": Bar(0.33, 0.20),
    "kron:20": Bar(0.075, 0.045),
    "kron:22": Bar(0.22, 0.12),
    "random:4194304:67108864": Bar(0.60, 0.30),
    "kron:24": Bar(0.95, 0.5),
}

DENSE = {"engine": "persistent", "direction": "auto", "frontier": "dense"}

# What is measured on each graph, in one run: the arguments of `BFS`.
CHOICES: dict[str, Report] = {
    "auto": {},
    "auto, predecessors": {"predecessors": True},
    "persistent, auto direction, dense": DENSE,
    "persistent, auto direction, dense, predecessors": DENSE | {"predecessors": True},
    "graph_while, auto direction, dense": DENSE | {"engine": "graph_while"},
}


def load(name: str) -> Graph | None:
    """A graph by spec, bundled name or file of the suite, undirected; None if it is not there."""
    folder = Path(os.environ.get("PERSISTENT_BFS_GRAPHS", "../shared/graphs"))
    for known in (name, *BARS):
        path = folder / known
        if stem(known)[0] == stem(name)[0] and path.is_file():
            return read_graph(path, symmetrize=True)
    try:
        return read_graph(name, symmetrize=True)
    except FileNotFoundError:
        return None


class NoDevice(click.ClickException):
    """There is no such device here; the message says what is missing."""

    exit_code = NO_DEVICE


@contextmanager
def opened(where: str) -> Iterator[Device]:
    """Open the device called ``where`` for the ``with`` block, or end with one line that says why.

    Raises
    ------
    NoDevice
        It cannot be used here.
    click.UsageError
        There is none of that name, or it runs no kernels.
    """
    try:
        choice = open_device(where)
    except DeviceUnavailable as missing:
        raise NoDevice(str(missing)) from missing
    except ValueError as unknown:
        raise click.UsageError(str(unknown)) from unknown
    if choice.device is None:
        raise click.UsageError(f"the {choice.kind} device runs no kernels")
    with choice.device as device:
        yield device


def bar_of(name: str) -> Bar | None:
    """The bar of a graph, named as in `BARS` or without the extensions."""
    return next((bar for key, bar in BARS.items() if stem(key)[0] == stem(name)[0]), None)


class Answers:
    """The distances that were proven, by source, and what proving them took."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.seconds = 0.0
        self._proven: dict[int, Distances] = {}

    def __contains__(self, source: int) -> bool:
        return source in self._proven

    def problem(self, result: BFSResult) -> str | None:
        """What is wrong with ``result``, in one line; None if every check passes."""
        started = time.perf_counter()
        source = result.source
        try:
            if source not in self:
                prove_distances(self.graph, source, result.distances)
                self._proven[source] = result.distances
            return find_problem(self.graph, result, expected=self._proven[source])
        except WrongAnswer as wrong:
            return str(wrong)
        finally:
            self.seconds += time.perf_counter() - started

    def __getitem__(self, source: int) -> Distances:
        return self._proven[source]


def spread(timing: Timing | None) -> Report | None:
    """All that is kept of some samples."""
    return None if timing is None else timing.spread() | {"quartiles": list(timing.quartiles)}


def memory_held(session: BFS) -> Report:
    """Bytes on the device, by buffer; an arc's are those of buffers with an item an arc or more."""
    graph, buffers = session.graph, session.buffers
    by_arcs = sum(buffer.nbytes for buffer in buffers.values() if buffer.count >= graph.arcs)
    total = sum(buffer.nbytes for buffer in buffers.values())
    return {
        "buffers": {name: buffer.nbytes for name, buffer in buffers.items()},
        "bytes": total,
        "bytes_an_arc": by_arcs / graph.arcs if graph.arcs else None,
        "bytes_a_vertex": (total - by_arcs) / graph.vertices,
    }


def reached_arcs(graph: Graph, distances: Distances) -> int:
    """Stored arcs of the reached vertices."""
    return int((graph.degrees * (distances >= 0)).sum(dtype=np.int64))


def rates(arcs: int, milliseconds: float) -> dict[str, float]:
    """Traversed edges per second, counted both ways."""
    seconds = milliseconds * 1e-3
    return {"teps_edges": arcs / 2 / seconds, "teps_arcs": arcs / seconds}


def from_many(session: BFS, sources: Sequence[int], runs: int, answers: Answers) -> Report:
    """Search ``runs`` times from each source; every search is checked, its median time kept.

    Raises
    ------
    WrongAnswer
        A search was wrong.
    """
    graph, started = session.graph, answers.seconds
    found: list[tuple[BFSResult, list[float]]] = []
    # The proofs come after all searches, so that the device does not cool down between them.
    for source in sources:
        result = session.run(source)
        first, samples = result.distances, [result.device_ms]
        for _ in range(runs - 1):
            again = session.run(source)
            samples.append(again.device_ms)
            if (again.enqueued, again.depth) != (result.enqueued, result.depth) or (
                not np.array_equal(again.distances, first)
            ):
                raise WrongAnswer(f"two searches from vertex {source} have different answers")
        found.append((result, [sample for sample in samples if sample is not None]))
    for result, _ in found:
        if problem := answers.problem(result):
            raise WrongAnswer(f"from vertex {result.source}: {problem}")
    arcs = [reached_arcs(graph, result.distances) for result, _ in found]
    report: Report = {
        "sources": [result.source for result, _ in found],
        "reached": [result.enqueued for result, _ in found],
        "arcs": arcs,
        "levels": [result.levels for result, _ in found],
        "runs_each": runs,
        "verify_seconds": answers.seconds - started,
        "ms": None,
    }
    if not all(samples for _, samples in found):
        return report
    medians = [float(np.median(samples)) for _, samples in found]
    pairs = list(zip(arcs, medians, strict=True))
    # A source in a component of two vertices has next to no rate, and a harmonic mean heeds it.
    widest = [pair for pair in pairs if pair[0] == max(arcs)]
    apart = {"sources": len(widest)} | harmonic_means(widest)
    return report | {"ms": medians} | harmonic_means(pairs) | {"widest_component": apart}


def harmonic_means(pairs: Sequence[tuple[int, float]]) -> dict[str, float]:
    """Graph500's mean of the rates of searches, from the arcs and milliseconds of each."""
    each = [rates(*pair) for pair in pairs]
    return {
        f"harmonic_mean_{name}": harmonic_mean([rate[name] for rate in each])
        for name in ("teps_edges", "teps_arcs")
    }


def trace(graph: Graph, device: Device, how: Report, source: int, answers: Answers) -> list[Report]:
    """The levels of one traced search."""
    with BFS(graph, device=device, **how, trace=True) as session:
        session.run(source)
        result = session.run(source)
        if problem := answers.problem(result):
            raise WrongAnswer(f"traced: {problem}")
    assert result.trace is not None
    names = ("level", "frontier", "edges", "direction", "mapping", "begin_ns", "ns")
    return [{name: getattr(level, name) for name in names} for level in result.trace]


def measure_choice(
    graph: Graph,
    device: Device,
    how: Report,
    source: int,
    sources: Sequence[int],
    answers: Answers,
    *,
    bar: Bar | None,
    repeat: int,
    source_runs: int,
) -> Report:
    """Measure one choice on one graph.

    Raises
    ------
    WrongAnswer
        A search was wrong.
    ValueError, RuntimeError
        The choice is not to be had, or does not fit.
    """
    started = time.perf_counter()
    BFS(graph, device=device, **how).close()
    prepared = time.perf_counter()
    with BFS(graph, device=device, **how) as session:
        uploaded = time.perf_counter()
        if source not in answers and (problem := answers.problem(session.run(source))):
            raise WrongAnswer(problem)
        measured: Measurement = measure(session, source, repeat=repeat, expected=answers[source])
        if measured.problem is not None:
            raise WrongAnswer(measured.problem)
        memory, shape = memory_held(session), session.shape
        many = None
        if sources and not how.get("predecessors"):
            many = from_many(session, sources, source_runs, answers)
    result = measured.result
    median = None if measured.device is None else measured.device.median
    row: Report = {
        name: getattr(result, name)
        for name in ("engine", "advance", "direction", "frontier", "tier", "reorder", "reorder_ms")
    }
    row |= {
        "predecessors": result.has_predecessors,
        "shape": shape,
        "reason": result.reason,
        "levels": result.levels,
        "reached": result.enqueued,
        "verified": True,
        "ms": spread(measured.device),
        "wall_ms": spread(measured.wall),
        "at_most": None if bar is None or median is None else median <= bar.at_most,
        "reach_for": None if bar is None or median is None else median <= bar.reach_for,
        "memory": memory,
        "prepare_seconds": prepared - started,
        "upload_seconds": uploaded - prepared,
        "from_many": many,
    }
    if median is not None:
        row |= rates(reached_arcs(graph, answers[source]), median)
    if not how.get("predecessors"):
        row["trace"] = trace(graph, device, how, source, answers)
    return row


def draw_sources(graph: Graph, count: int, seed: int) -> list[int]:
    """Draw distinct random vertices of positive degree, fewer if there are not so many."""
    candidates = np.flatnonzero(graph.degrees)
    rng = np.random.default_rng(seed)
    drawn = rng.choice(candidates, min(count, candidates.size), replace=False)
    return [int(vertex) for vertex in drawn]


def measure_graph(
    graph: Graph,
    device: Device,
    choices: dict[str, Report],
    *,
    bar: Bar | None = None,
    repeat: int = 30,
    sources: int = 64,
    source_runs: int = 3,
    seed: int = 1,
    say: Callable[[str], Any] = click.echo,
) -> Report:
    """Measure every choice on one graph; a choice that is wrong or refused has a ``problem``."""
    source = int(graph.degrees.argmax())
    drawn = draw_sources(graph, sources, seed)
    answers = Answers(graph)
    rows: list[Report] = []
    for name, how in choices.items():
        began = time.perf_counter()
        try:
            row = measure_choice(
                graph,
                device,
                how,
                source,
                drawn,
                answers,
                bar=bar,
                repeat=repeat,
                source_runs=source_runs,
            )
        except WrongAnswer as wrong:
            row = {"verified": False, "problem": str(wrong)}
        except (ValueError, RuntimeError) as error:
            row = {"verified": None, "problem": str(error)}
        row = {"choice": name} | row | {"seconds": time.perf_counter() - began}
        rows.append(row)
        say(describe(row))
    return {
        "graph": graph.name,
        "vertices": graph.vertices,
        "arcs": graph.arcs,
        "max_degree": graph.max_degree,
        "source": source,
        "at_most_ms": bar and bar.at_most,
        "reach_for_ms": bar and bar.reach_for,
        "verify_seconds": answers.seconds,
        "rows": rows,
    }


def describe(row: Report) -> str:
    """A row in one line."""
    start = f"  {row['choice']:48}"
    if row.get("problem"):
        return f"{start} {'WRONG: ' if row['verified'] is False else ''}{row['problem']}"
    gigabytes = row["memory"]["bytes"] / 1e9
    if row["ms"] is None:
        return f"{start} right; this device tells no time; {gigabytes:.3f} GB held"
    line = (
        f"{start} {row['ms']['median']:8.4f} ms ({row['ms']['min']:.4f} - {row['ms']['max']:.4f})"
    )
    line += f" {row['teps_edges'] / 1e9:7.1f} GTEPS (edges), {gigabytes:.3f} GB held"
    if row["from_many"]:
        many = row["from_many"]
        line += (
            f"; {len(many['sources'])} sources: {many['harmonic_mean_teps_edges'] / 1e9:.1f} GTEPS"
            f" (edges), {many['harmonic_mean_teps_arcs'] / 1e9:.1f} (arcs)"
        )
    if row["at_most"] is not None:
        line += f"; at most: {'met' if row['at_most'] else 'MISSED'}"
        line += f", reach for: {'met' if row['reach_for'] else 'missed'}"
    return line


def text(report: Report) -> str:
    """The report as JSON, a line a list of numbers."""
    lines = json.dumps(report, indent=1)
    numbers = re.compile(r"\[\s+([-+.\deE,\s]+?)\s+\]")
    return numbers.sub(lambda match: f"[{' '.join(match[1].split())}]", lines) + "\n"


@click.command()
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--graph", "names", multiple=True, help="Only this one; may be given several times.")
@click.option(
    "--choice",
    "chosen",
    multiple=True,
    type=click.Choice(list(CHOICES)),
    help="Only this one; may be given several times.",
)
@click.option("--repeat", default=30, show_default=True, help="Timed searches a choice.")
@click.option("--sources", default=64, show_default=True, help="Random sources a choice.")
@click.option("--source-runs", default=3, show_default=True, help="Searches from each of them.")
@click.option("--seed", default=1, show_default=True, help="Of the random sources.")
@click.option("--device", "where", default="cuda", show_default=True)
def main(
    output: Path,
    names: tuple[str, ...],
    chosen: tuple[str, ...],
    repeat: int,
    sources: int,
    source_runs: int,
    seed: int,
    where: str,
) -> None:
    """Measure wide graphs and write what was found to OUTPUT."""
    choices = {name: CHOICES[name] for name in chosen or CHOICES}
    graphs: list[Report] = []
    with opened(where) as device:
        report: Report = {
            "device": device.info.name,
            "driver": device.info.driver,
            "clocks": describe_clocks(device.info),
            "environment": describe_environment(device.info),
            "repeat": repeat,
            "seed": seed,
            "choices": choices,
            "graphs": graphs,
        }
        for name in names or BARS:
            started = time.perf_counter()
            graph = load(name)
            if graph is None:
                click.echo(f"passed over: no {name}", err=True)
                continue
            seconds = time.perf_counter() - started
            click.echo(
                f"{graph.name}: {graph.vertices:,} vertices, {graph.arcs:,} arcs, "
                f"{'generated' if ':' in name else 'read'} in {seconds:.1f} s"
            )
            found = measure_graph(
                graph,
                device,
                choices,
                bar=bar_of(name),
                repeat=repeat,
                sources=sources,
                source_runs=source_runs,
                seed=seed,
            )
            graphs.append(found | {"load_seconds": seconds})
            output.write_text(text(report))
            click.echo(f"  {found['verify_seconds']:.1f} s of the host to verify")
    wrong = [
        f"{graph['graph']}, {row['choice']}"
        for graph in graphs
        for row in graph["rows"]
        if row["verified"] is False
    ]
    if wrong:
        raise click.ClickException(f"wrong answers: {'; '.join(wrong)}")


if __name__ == "__main__":
    main()

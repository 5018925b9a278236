"""Count the bytes that each level of a search moves, beside the rate at which the machine copies.

    python benchmarks/bytes_moved.py benchmarks/results/h200/bytes-moved.json kron:22

A persistent search is one kernel, whose levels no profiler tells apart. So Nsight Compute (``ncu``)
counts the same levels where each is a kernel of its own, those of ``host_loop``: of the second
search alone, in a process apart, with caches as the level before leaves them. The time of a level
is the persistent engine's, by its trace, from a run without a profiler; bytes of DRAM over that
time, as a share of what a copy reads and writes in a second, say how near a level is to being bound
by memory. Every answer is proven.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from wide import DENSE, Answers, load, opened, spread, text

from persistent_bfs import BFS, Graph
from persistent_bfs.cli.output import published
from persistent_bfs.cli.program import bad_input
from persistent_bfs.device.base import Device
from persistent_bfs.measure import Timing, describe_clocks, describe_environment, measure
from persistent_bfs.reference import WrongAnswer
from persistent_bfs.study.primitives import PRIMITIVES, Bench, Effort, measure_primitive

Report = dict[str, Any]

PERSISTENT: Report = DENSE | {"tiers": "none"}
PROFILED: Report = PERSISTENT | {"engine": "host_loop"}

METRICS = {
    "dram__bytes_read.sum": "dram_read",
    "dram__bytes_write.sum": "dram_written",
    "lts__t_bytes.sum": "l2_bytes",
    "gpu__time_duration.sum": "profiled_ns",
}

# How ncu names units, by version and by size, in bytes or nanoseconds.
UNITS = {
    **dict.fromkeys(("byte", "b", "nsecond", "ns"), 1.0),
    **dict.fromkeys(("kbyte", "kb", "usecond", "us"), 1e3),
    **dict.fromkeys(("mbyte", "mb", "msecond", "ms"), 1e6),
    **dict.fromkeys(("gbyte", "gb", "second", "s"), 1e9),
}

NCU = (
    *("ncu", "--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off"),
    *("--kernel-name-base", "function", "--kernel-name", "regex:search_level"),
    *("--metrics", ",".join(METRICS), "--csv", "--page", "raw", "--print-units", "base"),
)

RIGHT = "the profiled search is right"


def parse(log: str) -> list[Report]:
    """Kernels of what ncu wrote with ``--csv --page raw``: metrics in bytes and nanoseconds.

    One that ncu has no value of (``n/a``) is None.

    Raises
    ------
    ValueError
        There are no kernels, or a unit is not known.
    """
    rows = list(csv.DictReader(line for line in log.splitlines() if line.startswith('"')))
    if len(rows) < 2:  # the first has the units
        raise ValueError("ncu wrote of no kernel")
    units, kernels = rows[0], []
    for row in rows[1:]:
        kernel: Report = {
            "kernel": row["Kernel Name"],
            "grid": row["Grid Size"],
            "block": row["Block Size"],
        }
        for metric, name in METRICS.items():
            value = (row.get(metric) or "n/a").replace(",", "")
            unit = (units.get(metric) or "").strip()
            if value.lower() == "n/a":
                kernel[name] = None
            elif unit.lower() in UNITS:
                kernel[name] = float(value) * UNITS[unit.lower()]
            else:
                raise ValueError(f"ncu gives {metric} in {unit!r}")
        kernels.append(kernel)
    return kernels


def passes(log: str) -> int | None:
    """How often ncu ran a kernel to count everything; None if it does not say."""
    found = [int(number) for number in re.findall(r" - (\d+) pass(?:es)?\b", log)]
    return max(found, default=None)


def copy_rate(device: Device) -> tuple[int, Timing | None]:
    """Bytes of a copy, and gigabytes a second read and written."""
    kind = device.info.kind
    with Bench(device, Effort.of(kind, quick=kind != "cuda")) as bench:
        (point,) = measure_primitive(bench, PRIMITIVES["copy_rate"])["points"]
    samples = point["samples"]
    return point["point"]["bytes"], Timing(tuple(samples)) if samples else None


def measure_levels(
    graph: Graph, device: Device, how: Report, source: int, repeat: int, answers: Answers
) -> Report:
    """Search without a profiler: milliseconds of the whole, and of each level the median time.

    Raises
    ------
    WrongAnswer
        A search was wrong.
    """
    with BFS(graph, device=device, **how) as session:
        if problem := answers.problem(session.run(source)):
            raise WrongAnswer(f"{how['engine']}: {problem}")
        whole = measure(session, source, repeat=repeat, expected=answers[source])
        if whole.problem is not None:
            raise WrongAnswer(f"{how['engine']}: {whole.problem}")
    with BFS(graph, device=device, **how, trace=True) as session:
        results = [session.run(source) for _ in range(1 + repeat)][1:]
        if problem := answers.problem(results[-1]):
            raise WrongAnswer(f"{how['engine']}, traced: {problem}")
    names = ("level", "frontier", "edges", "direction", "mapping")
    levels = []
    for level, *others in zip(*(result.trace or [] for result in results), strict=True):
        times = [one.ns for one in (level, *others) if one.ns is not None]
        row = {name: getattr(level, name) for name in names}
        levels.append(row | {"ns": statistics.median(times) if times else None})
    return {"how": how, "ms": spread(whole.device), "levels": levels}


def profile(name: str, where: str) -> str:
    """Run this file under ncu to search the graph ``name``, and return what ncu wrote."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        worker = [sys.executable, os.path.abspath(__file__), "--profiled", "--device", where]
        command = [*NCU, "--log-file", str(log), *worker, os.devnull, name]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        found = log.read_text(encoding="utf-8") if log.is_file() else ""
    if answer.returncode or RIGHT not in answer.stdout:
        said = [*found.splitlines(), *answer.stdout.splitlines(), *answer.stderr.splitlines()]
        errors = [line for line in said if line.startswith("==ERROR==")] or said[-1:]
        raise click.ClickException(f"ncu ends with {answer.returncode}: {' '.join(errors)}")
    return found


def search_profiled(graph: Graph, device: Device, source: int) -> None:
    """What ncu is to run: two searches, of which it looks at the second."""
    with BFS(graph, device=device, **PROFILED) as session:
        session.run(source)
        with device.current():
            _profiler("start_profiler", device)
        result = session.run(source)
        with device.current():
            _profiler("stop_profiler", device)
        if problem := Answers(graph).problem(result):
            raise click.ClickException(f"profiled: {problem}")
    click.echo(RIGHT)


def _profiler(name: str, device: Device) -> None:
    if device.info.kind == "cuda":
        import pycuda.driver

        getattr(pycuda.driver, name)()


def join(
    kernels: list[Report],
    profiled: list[Report],
    persistent: list[Report],
    gb_per_second: float | None,
) -> list[Report]:
    """A row a level: what it moved, and the share of the copy rate at the persistent time.

    A level of the persistent engine that went another direction, or had another frontier, did other
    work: it has no time here.

    Raises
    ------
    ValueError
        There is not one kernel a level, or ncu did not count the bytes.
    """
    if len(kernels) != len(profiled):
        raise ValueError(f"ncu saw {len(kernels)} kernels of {len(profiled)} levels")
    rows = []
    for kernel, level, other in zip(kernels, profiled, persistent, strict=True):
        if any(kernel[name] is None for name in ("dram_read", "dram_written", "l2_bytes")):
            raise ValueError(f"ncu did not count the bytes of level {level['level']}")
        moved = kernel["dram_read"] + kernel["dram_written"]
        same = all(level[name] == other[name] for name in ("frontier", "direction"))
        row = level | kernel
        row["dram_bytes"] = moved
        row["persistent_ns"] = ns = other["ns"] if same else None
        timed = ns and gb_per_second
        row["share_of_copy_rate"] = moved / ns / gb_per_second if timed else None
        rows.append(row)
    return rows


def describe(row: Report) -> str:
    """A level in one line."""
    line = (
        f"  level {row['level']}: {row['direction']:4} frontier {row['frontier']:>9,}, "
        f"{row['edges']:>11,} edges, DRAM {row['dram_bytes'] / 1e6:8.2f} MB, "
        f"L2 {row['l2_bytes'] / 1e6:8.2f} MB"
    )
    if row["persistent_ns"] is not None:
        line += f", {row['persistent_ns'] / 1e3:8.2f} us"
    if row["share_of_copy_rate"] is not None:
        line += f", {100 * row['share_of_copy_rate']:.0f} % of the copy rate"
    return line


@click.command()
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("name", metavar="[GRAPH]", default="kron:22")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Timed searches, and traced ones.",
)
@click.option("--device", "where", default="cuda", show_default=True)
@click.option("--profiled", is_flag=True, hidden=True, help="Search as ncu is to see it.")
def main(output: Path, name: str, repeat: int, where: str, profiled: bool) -> None:
    """Count what the levels of a search of GRAPH move and write it to OUTPUT."""
    with opened(where) as device:
        if not profiled and shutil.which(NCU[0]) is None:
            raise click.ClickException("ncu is not installed: Nsight Compute is what counts bytes")
        with bad_input():
            graph = load(name)
        if graph is None:
            raise click.ClickException(f"there is no {name}")
        source = int(graph.degrees.argmax())
        if profiled:
            search_profiled(graph, device, source)
            return
        click.echo(f"{graph.name}: {graph.vertices:,} vertices, {graph.arcs:,} arcs")
        answers = Answers(graph)
        nbytes, rate = copy_rate(device)
        report: Report = {
            "device": device.info.name,
            "driver": device.info.driver,
            "clocks": describe_clocks(device.info),
            "environment": describe_environment(device.info),
            "graph": graph.name,
            "vertices": graph.vertices,
            "arcs": graph.arcs,
            "source": source,
            "repeat": repeat,
            "copy_bytes": nbytes,
            "copy_gb_per_second": spread(rate),
        }
        try:
            for label, how in (("profiled", PROFILED), ("persistent", PERSISTENT)):
                report[label] = measure_levels(graph, device, how, source, repeat, answers)
        except WrongAnswer as wrong:
            raise click.ClickException(f"wrong answer: {wrong}") from wrong
    # The device is closed: what ncu runs has it alone.
    log = profile(name, where)
    report |= {"ncu": " ".join(NCU), "passes": passes(log)}
    engines = (report["profiled"]["levels"], report["persistent"]["levels"])
    try:
        report["levels"] = join(parse(log), *engines, None if rate is None else rate.median)
    except ValueError as problem:
        raise click.ClickException(str(problem)) from problem
    with published(output) as file:
        file.write(text(report))
    if rate is not None:
        click.echo(f"  a copy: {rate.median:,.0f} GB/s, read and written")
    for row in report["levels"]:
        click.echo(describe(row))


if __name__ == "__main__":
    main()

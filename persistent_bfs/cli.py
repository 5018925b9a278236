"""The command line: ``run``, ``compare``, ``levels``, ``list``, ``doctor``.

Results go to stdout, as tables or with ``--json`` as one JSON object; all else goes to stderr.
Exit codes: 0; 1 an answer was wrong; 2 bad usage or input; 3 the device asked for is not usable.

What is slow to import is imported by the command that needs it, so that ``--help`` answers at once.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from persistent_bfs.compiler import CompileError
from persistent_bfs.config import (
    ADVANCES,
    APPENDS,
    CLAIMS,
    DIRECTIONS,
    ENGINES,
    conflict,
    rows_by_loop,
)
from persistent_bfs.device import DEVICES, SCHEDULES
from persistent_bfs.device.base import (
    Device,
    DeviceError,
    DeviceInfo,
    DeviceUnavailable,
    LaunchTooLarge,
    RepeatedDiscovery,
)
from persistent_bfs.version import __version__

if TYPE_CHECKING:
    from persistent_bfs.graph import Graph
    from persistent_bfs.io import Progress
    from persistent_bfs.measure import Measurement
    from persistent_bfs.reference import ReferenceSearch
    from persistent_bfs.session import BFS

WRONG, BAD_INPUT, NO_DEVICE, INTERRUPTED, BROKEN_PIPE = 1, 2, 3, 130, 141

MAX_DEGREE = "max-degree"

# The two plain mappings and the one that chooses: enough to see by, on any graph.
COMPARED_ADVANCES = "thread,warp,auto"

Command = Callable[..., Any]
Report = dict[str, Any]


def _say(kind: str, message: object) -> None:
    """Write one line to stderr."""
    click.echo(f"{kind}: {' '.join(str(message).split())}", err=True)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say("warning", message)


class Program(click.Group):
    """The group of commands: a failure is one line on stderr and an exit code."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """As `click.Group.main`, with this program's messages and exit codes."""
        options["standalone_mode"] = False
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                code = super().main(*arguments, **options)
        except click.ClickException as error:
            _say("error", error.format_message())
            code = BAD_INPUT
        except click.Abort:
            _say("error", "interrupted")
            code = INTERRUPTED
        sys.exit(code or 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a device that cannot be used ends it, and so does a reader that left."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
            return code
        except RepeatedDiscovery as error:
            _say("error", error)
            return WRONG
        except LaunchTooLarge as error:
            _say("error", error)
            return BAD_INPUT
        except (DeviceError, CompileError) as error:
            _say("error", error)
            if ctx.ensure_object(dict).get("verbose"):
                for text in (getattr(error, "command", ""), getattr(error, "output", "")):
                    click.echo(text, err=True)
            return NO_DEVICE
        except BrokenPipeError:
            # What is still buffered must go somewhere when the interpreter flushes it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE


@contextmanager
def bad_input() -> Iterator[None]:
    """Make what the library refuses inside the ``with`` block an error of the user's."""
    try:
        yield
    except OSError as error:
        named = error.strerror and f"{error.filename}: {error.strerror}"
        raise click.ClickException(named or str(error)) from error
    except (ValueError, TypeError, MemoryError) as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def published(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file for writing that appears at ``path`` only once it is whole."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with bad_input():
        try:
            with beside.open(mode, encoding=None if "b" in mode else "utf-8") as file:
                yield file
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def print_json(report: Report, file: IO[str] | None = None) -> None:
    """Write one JSON object, refusing what JSON cannot say (NaN, infinity)."""
    print(json.dumps(report, indent=2, allow_nan=False), file=file)


class OutputFile(click.ParamType[Path]):
    """A file to write, refused before any work if its kind is unknown or its folder no good."""

    name = "file"

    def __init__(self, *extensions: str, needs: str = "") -> None:
        self.extensions = extensions
        self.needs = needs

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        """Return the path."""
        path = Path(value)
        if path.suffix not in self.extensions:
            self.fail(f"{value!r} must end in {' or '.join(self.extensions)}", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"there is no folder {str(path.parent)!r}", param, ctx)
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            self.fail(f"cannot write {value!r}", param, ctx)
        if self.needs and importlib.util.find_spec(self.needs) is None:
            self.fail(f"{self.needs} is not installed: pip install {self.needs}", param, ctx)
        return path


class Names(click.ParamType[list[str]]):
    """A list of names from a table, by commas; returned in the table's order, each once."""

    name = "a,b,..."

    def __init__(self, table: Mapping[str, Any], what: str) -> None:
        self.table = table
        self.what = what

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        """Return the names; ``all`` is every one."""
        if value == "all":
            return list(self.table)
        asked = [name.strip() for name in value.split(",")]
        for name in asked:
            if name not in self.table:
                known = ", ".join(self.table)
                self.fail(f"unknown {self.what} {name!r}; choose from {known}", param, ctx)
        return [name for name in self.table if name in asked]


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    return lambda command: functools.reduce(lambda c, option: option(c), reversed(options), command)


def _choice(
    name: str, table: Mapping[str, Any], default: str, text: str
) -> Callable[[Command], Command]:
    names = [default, *table] if default not in table else list(table)
    return click.option(name, type=click.Choice(names), default=default, help=text)


AT_LEAST_0, AT_LEAST_1 = click.IntRange(min=0), click.IntRange(min=1)

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")

verbose_option = click.option(
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _, value: ctx.find_root().ensure_object(dict).update(verbose=value),
    help="Show a compiler's command and output when it fails.",
)

graph_options = _options(
    click.argument("graph"),
    click.option(
        "--source",
        metavar=f"ID|LABEL|{MAX_DEGREE}",
        help=f"Where to start; default: vertex 0. {MAX_DEGREE}: at the vertex of largest degree.",
    ),
    click.option(
        "--directed/--undirected",
        default=None,
        help="How to take the edges; default: as the format means them.",
    ),
    click.option("--symmetrize", is_flag=True, help="Add the opposite of every arc."),
    click.option("--format", metavar="NAME", help="The file's format, where it does not tell."),
    click.option("--relabel", is_flag=True, help="Number an edge list's ids afresh."),
    click.option("--drop-zeros", is_flag=True, help="A matrix's stored zeros are no edges."),
    click.option("--graph-seed", type=AT_LEAST_0, help="Seed of a generated graph."),
)

search_options = _options(
    click.option(
        "--device",
        default="auto",
        show_default=True,
        help=f"{', '.join(DEVICES)}, or cuda:N for GPU N.",
    ),
    _choice("--direction", DIRECTIONS, "push", "From the frontier out, or into it."),
    _choice("--claim", CLAIMS, "cas", "Who discovers a vertex."),
    _choice("--append", APPENDS, "warp", "How it enters the next frontier."),
    click.option(
        "--schedule",
        type=click.Choice(SCHEDULES),
        default=SCHEDULES[0],
        help="How the emulated device interleaves threads.",
    ),
    click.option("--seed", type=AT_LEAST_0, default=0, help="Seed of that schedule."),
    click.option("--blocks", type=AT_LEAST_1, help="Blocks of a grid that serves every level."),
    click.option("--block-threads", type=AT_LEAST_1, default=256, help="Threads a block."),
    click.option(
        "--block-queue", type=AT_LEAST_1, default=1024, help="Size of the block append's."
    ),
    click.option("--levels-per-launch", type=AT_LEAST_1, help="Levels between two looks."),
    verbose_option,
)


def takes_graph(command: Command) -> Command:
    """Give a command the graph and source that its options name, as ``graph`` and ``source``."""

    @functools.wraps(command)
    def with_graph(*, graph: str, source: str | None, **options: Any) -> Any:
        how = {
            name: options.pop(name)
            for name in ("directed", "symmetrize", "format", "relabel", "drop_zeros", "graph_seed")
        }
        with bad_input():
            loaded = load_graph(graph, **how)
            vertex = choose_source(loaded, source)
        return command(graph=loaded, source=vertex, **options)

    return graph_options(with_graph)


def choose_source(graph: Graph, source: str | None) -> int:
    """The vertex that ``--source`` names; the first of the largest degree for `MAX_DEGREE`."""
    if source is None:
        return 0
    if source == MAX_DEGREE:
        return int(graph.degrees.argmax())
    return graph.vertex_of(source)


def load_graph(name: str, *, graph_seed: int | None, **how: Any) -> Graph:
    """Read or generate a graph, with a progress bar if that takes long."""
    from persistent_bfs.io import read_graph

    with progress_bar() as progress:
        return read_graph(name, seed=graph_seed, progress=progress, **how)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Give a progress function; what it is told shows on stderr, if a terminal, after 1 s."""
    if not sys.stderr.isatty():
        yield lambda _description, _done, _total: None
        return
    from persistent_bfs.display import LateProgress

    with LateProgress() as progress:
        yield progress


@contextmanager
def session(
    graph: Graph, device: Any, *, blocks: int | None, levels_per_launch: int | None, **how: Any
) -> Iterator[BFS]:
    """Open a search session; what it refuses is bad input."""
    from persistent_bfs.engines.base import EngineOptions
    from persistent_bfs.session import BFS

    with bad_input():
        options = EngineOptions(levels_per_launch=levels_per_launch, blocks=blocks)
        search = BFS(graph, device=device, options=options, **how)
    with search:
        yield search


def describe_search(graph: Graph, search: BFS, measured: Measurement) -> Report:
    """Describe one measured search under the names of the JSON; no time for a wrong answer."""
    result = measured.result
    counts = result.counters.device
    wall_ms = measured.wall.median if measured.wall else result.wall_ms
    return {
        "graph": graph.name,
        "vertices": graph.vertices,
        "arcs": graph.arcs,
        **result.summary(),
        "label": graph.label_of(result.source),
        "verified": measured.verified,
        "problem": measured.problem,
        "device_ms": measured.device.median if measured.device else None,
        "wall_ms": wall_ms if measured.verified else None,
        "shape": search.shape or None,
        "reason": result.reason,
        "counts": counts or None,
    }


def note_ignored(device: str, schedule: str, seed: int) -> None:
    """Say so if the schedule asked for means nothing on this device."""
    if device != "emulated" and (schedule != SCHEDULES[0] or seed):
        _say("note", f"--schedule and --seed are for the emulated device, not for {device}")


@click.group(
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="persistent-bfs")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Breadth-first search on NVIDIA GPUs, and what each level of it costs.

    GRAPH is a file (MatrixMarket, edge list, METIS, DIMACS 9, PACE, npz; plain, gz, xz or bz2), a
    bundled graph such as words-kjv, or a generator's spec such as grid:512x512.
    """
    # Not every terminal's encoding has every label's letters.
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="replace")
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@main.command()
@takes_graph
@_choice("--engine", ENGINES, "auto", "Who runs the level loop.")
@_choice("--advance", ADVANCES, "auto", "How a frontier's edges are given to threads.")
@search_options
@click.option("--max-depth", type=AT_LEAST_0, help="The largest distance to look for.")
@click.option("--predecessors", is_flag=True, help="Find a parent of every vertex, too.")
@click.option("--trace", is_flag=True, help="Show every level.")
@click.option(
    "--output", type=OutputFile(".npz", ".tsv"), help="Write the distances (and predecessors)."
)
@json_option
def run(
    graph: Graph,
    source: int,
    device: str,
    schedule: str,
    seed: int,
    max_depth: int | None,
    output: Path | None,
    as_json: bool,
    **how: Any,
) -> int:
    """Search GRAPH from one vertex and check the answer against the reference."""
    from persistent_bfs.measure import measure
    from persistent_bfs.reference import bfs_reference

    expected = bfs_reference(graph, source, max_depth)
    with session(graph, device, schedule=schedule, seed=seed, **how) as search:
        measured = measure(
            search, source, repeat=1, max_depth=max_depth, expected=expected.distances
        )
        result = measured.result
        if result.device == "reference":
            # Compared with itself it would always be right: its tree proves it instead.
            measured = replace(measured, problem=find_unproven(graph, source, expected, max_depth))
        report = describe_search(graph, search, measured)
    note_ignored(result.device, schedule, seed)
    emulated = result.device == "emulated"
    whole = max_depth is None and not graph.directed
    report |= {
        "max_depth": max_depth,
        "schedule": schedule if emulated else None,
        "seed": seed if emulated else None,
        "teps": traversed_edges_per_second(graph, measured) if whole else None,
        "frontier_sizes": result.frontier_sizes,
        "trace": None if result.trace is None else [vars(row) for row in result.trace],
    }
    if output and measured.verified:
        parents = result.predecessors if how["predecessors"] else None
        write_answer(output, graph, source, result.distances, parents)
    if as_json:
        print_json(report)
    else:
        from persistent_bfs import display

        display.show(display.search(report))
    if measured.verified:
        return 0
    _say("wrong answer", measured.problem)
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


def traversed_edges_per_second(graph: Graph, measured: Measurement) -> float | None:
    """Return Graph500's rate for a search of an undirected graph; None if no GPU timed it."""
    if measured.device is None:
        return None
    arcs = int(graph.degrees[measured.result.distances >= 0].sum(dtype="int64"))
    return arcs / 2 / (measured.device.median * 1e-3)


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


@main.command()
@takes_graph
@click.option(
    "--engines",
    type=Names(ENGINES, "engine"),
    default="all",
    show_default=True,
    help="Engines to compare.",
)
@click.option(
    "--advances",
    type=Names(ADVANCES, "advance"),
    default=COMPARED_ADVANCES,
    show_default=True,
    help="Mappings to compare, or all.",
)
@click.option("--repeat", type=AT_LEAST_1, default=10, help="Timed searches a row.")
@search_options
@click.option("--output", type=OutputFile(".json"), help="Write the JSON here, too.")
@click.option(
    "--plot", type=OutputFile(".svg", ".png", needs="matplotlib"), help="Draw the comparison."
)
@json_option
def compare(
    graph: Graph,
    source: int,
    engines: list[str],
    advances: list[str],
    repeat: int,
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
    from persistent_bfs.device import open_device
    from persistent_bfs.measure import measure
    from persistent_bfs.reference import bfs_reference

    conflicts = {advance: conflict(direction, advance) for advance in advances}
    pairs = [pair for pair in product(engines, advances) if conflicts[pair[1]] is None]
    if not pairs:
        raise click.ClickException(str(conflicts[advances[0]]))
    with bad_input():
        choice = open_device(device, schedule=schedule, seed=seed)
    if choice.device is None:
        why = "compare needs a device that runs kernels"
        if device == "reference":
            raise click.ClickException(f"{why}, and the reference runs none")
        raise DeviceUnavailable(f"{why}: {choice.reason}")
    note_ignored(choice.kind, schedule, seed)
    expected = bfs_reference(graph, source)
    rows: list[Report] = []
    with choice.device as opened, progress_bar() as progress:
        compile_ahead(graph, opened, pairs, direction, how, progress)
        for number, (engine, advance) in enumerate(pairs):
            name, done, total = f"{engine}, {advance}", number * repeat, len(pairs) * repeat
            progress(f"{name}: preparing", done, total)
            how |= {"engine": engine, "advance": advance, "direction": direction}
            with session(graph, opened, **how) as search:
                progress(name, done, total)
                advanced = functools.partial(_advance, progress, name, done, total)
                measured = measure(
                    search,
                    source,
                    repeat=repeat,
                    expected=expected.distances,
                    progress=advanced,
                )
                rows.append(describe_row(graph, search, measured))
            if rows[-1]["engine"] != engine:
                _say("note", rows[-1]["reason"])
    for row in rows:
        base = [
            other["device_ms"]
            for other in rows
            if (other["engine"], other["advance"]) == ("host_loop", row["advance"])
        ]
        timed = bool(row["device_ms"] and base and base[0])
        row["speedup_vs_host_loop"] = base[0] / row["device_ms"] if timed else None
    report = {
        "graph": graph.name,
        "vertices": graph.vertices,
        "arcs": graph.arcs,
        "source": source,
        "label": graph.label_of(source),
        "device": choice.kind,
        "device_name": opened.info.name,
        "reason": choice.reason,
        "environment": describe_environment(opened.info),
        "repeat": repeat,
        "levels": len(expected.frontier_sizes),
        "reached": int(expected.frontier_sizes.sum()),
        "rows": rows,
    }
    if output:
        with published(output) as file:
            print_json(report, file)
    if plot:
        from persistent_bfs.display import plot_comparison

        with published(plot, "wb") as file:
            plot_comparison(report, file, plot.suffix[1:])
    if as_json:
        print_json(report)
    else:
        from persistent_bfs import display

        display.show(display.comparison(report))
    wrong = [row for row in rows if not row["verified"]]
    for row in wrong:
        _say("wrong answer", f"{row['engine']}, {row['advance']}: {row['problem']}")
    return WRONG if wrong else 0


def compile_ahead(
    graph: Graph,
    device: Device,
    pairs: list[tuple[str, str]],
    direction: str,
    how: Report,
    progress: Progress,
) -> None:
    """Compile what a comparison needs on all cores at once; most of its time, the first time."""
    from persistent_bfs.session import configure

    choices = {name: how[name] for name in how if name not in ("blocks", "levels_per_launch")}
    with bad_input():
        configs = {
            configure(graph, engine=engine, advance=advance, direction=direction, **choices)
            for engine, advance in pairs
        }
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, _ in enumerate(pool.map(device.compile, configs)):
            progress("compiling", done, len(configs))


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


def describe_environment(device: DeviceInfo) -> Report:
    """Name what a measurement depends on besides the program."""
    import platform

    import numpy as np

    return {
        "persistent_bfs": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "driver": device.driver,
        "architecture": device.architecture,
        "multiprocessors": device.multiprocessors,
        "memory_bytes": device.memory_bytes,
    }


@main.command()
@takes_graph
@json_option
def levels(graph: Graph, source: int, as_json: bool) -> None:
    """Show every level of a search of GRAPH, and what each mapping would issue for it."""
    from persistent_bfs.reference import level_table, level_totals

    table = level_table(graph, source)
    totals = level_totals(table)

    def plain(row: Any) -> Report:
        return {**row._asdict(), "lane_slots": row.lane_slots._asdict()}

    report = {
        "graph": graph.name,
        "vertices": graph.vertices,
        "arcs": graph.arcs,
        "source": source,
        "label": graph.label_of(source),
        "rows": [plain(row) | {"busiest": graph.label_of(row.busiest)} for row in table],
        "totals": plain(totals),
        "useful_share": totals.lane_slots.useful_share(),
    }
    if as_json:
        print_json(report)
    else:
        from persistent_bfs import display

        display.show(display.levels(report))


@main.command("list")
@click.option("--resources", is_flag=True, help="Show what nvcc gives each kernel, instead.")
@click.option(
    "--architecture", default="sm_90", show_default=True, help="For --resources: sm_75 and newer."
)
@json_option
@verbose_option
def list_choices(resources: bool, architecture: str, as_json: bool) -> None:
    """List engines, mappings and other choices, formats, graphs and devices."""
    if resources:
        list_resources(architecture, as_json)
        return
    from persistent_bfs.device import cuda_problem, emulated_problem
    from persistent_bfs.generate import GENERATORS
    from persistent_bfs.io import BUNDLED, FORMATS

    tables: dict[str, Mapping[str, Any]] = {
        "engines": ENGINES,
        "advances": ADVANCES,
        "directions": DIRECTIONS,
        "claims": CLAIMS,
        "appends": APPENDS,
    }
    problems = {"cuda": cuda_problem(), "emulated": emulated_problem(), "reference": None}
    report: dict[str, list[Report]] = {
        what: [{"name": row.name, "trade_off": row.trade_off} for row in table.values()]
        for what, table in tables.items()
    }
    report |= {
        "formats": [
            {"name": row.name, "title": row.title, "extensions": list(row.extensions)}
            for row in FORMATS.values()
        ],
        "generators": [
            {"usage": row.usage, "description": row.description, "seeded": row.seeded}
            for row in GENERATORS.values()
        ],
        "graphs": [{"name": name, "file": file} for name, file in BUNDLED.items()],
        "devices": [
            {"name": name, "usable": problem is None, "problem": problem}
            for name, problem in problems.items()
        ],
    }
    if as_json:
        print_json(report)
    else:
        from persistent_bfs import display

        display.show(display.choices(report))


def list_resources(architecture: str, as_json: bool) -> None:
    """Show the registers and memory of every row's kernels, as compiled with each loop."""
    from persistent_bfs import compiler

    configs = list(rows_by_loop())
    rows: list[Report] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool, progress_bar() as progress:
        measure = functools.partial(compiler.resources, architecture=architecture)
        for config, kernels in zip(configs, pool.map(measure, configs), strict=True):
            progress("compiling", len(rows), len(configs))
            rows += [
                {
                    "kernel": kernel,
                    "advance": config.advance,
                    "direction": config.direction,
                    "claim": config.claim,
                    "append": config.append,
                    "registers": used.registers,
                    "shared_bytes": used.shared_bytes,
                    "local_bytes": used.local_bytes,
                }
                for kernel, used in kernels.items()
            ]
    report = {"architecture": architecture, "rows": rows}
    if as_json:
        print_json(report)
    else:
        from persistent_bfs import display

        display.show(display.resources(report))


@main.command()
@verbose_option
@json_option
def doctor(as_json: bool) -> int:
    """Check what this machine offers, and say what to do where something is missing."""
    from persistent_bfs.doctor import EXAMINATIONS, usable

    checks = []
    with progress_bar() as progress:
        for number, (what, examine) in enumerate(EXAMINATIONS.items()):
            progress(f"looking at {what}", number, len(EXAMINATIONS))
            checks += examine()
    fit = usable(checks)
    if as_json:
        print_json({"usable": fit, "checks": [vars(check) for check in checks]})
    else:
        from persistent_bfs import display

        display.show(display.diagnosis(checks))
    if fit:
        return 0
    _say("error", "no device that runs kernels can be used here")
    return NO_DEVICE

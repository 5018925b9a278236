"""Options that commands share, and how their values are read."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from persistent_bfs.cli.output import progress_bar, try_file
from persistent_bfs.cli.program import bad_input, say
from persistent_bfs.config import ADVANCES, APPENDS, CLAIMS, DIRECTIONS, ENGINES, FRONTIERS, ORDERS
from persistent_bfs.device import DEVICES, SCHEDULES
from persistent_bfs.peers import PeerMissing
from persistent_bfs.tiers import AUTO

if TYPE_CHECKING:
    from persistent_bfs.graph import Graph

MAX_DEGREE = "max-degree"

Command = Callable[..., Any]
Option = Callable[[Command], Command]


class OutputFile(click.ParamType[Path]):
    """A file to write, refused before any work if its kind is unknown or it cannot be written."""

    name = "file"

    def __init__(self, *extensions: str, needs: str = "") -> None:
        self.extensions = extensions
        self.needs = needs

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        """Return the path."""
        path = Path(value)
        if path.suffix not in self.extensions:
            self.fail(f"{value!r} must end in {' or '.join(self.extensions)}", param, ctx)
        if self.needs and importlib.util.find_spec(self.needs) is None:
            self.fail(f"{self.needs} is not installed: pip install {self.needs}", param, ctx)
        try_file(path)
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


class PeerNames(Names):
    """Other libraries, by commas; ``all`` is those that are installed."""

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        """Return the names; a library that is named must be there."""
        if value == "all":
            return [name for name, peer in self.table.items() if peer.installed]
        names = super().convert(value, param, ctx)
        for name in names:
            try:
                self.table[name].require()
            except PeerMissing as missing:
                self.fail(str(missing), param, ctx)
        return names


class Numbers(click.ParamType[list[int]]):
    """A list of integers of at least 0, by commas; returned in ascending order, each once."""

    name = "a,b,..."

    def convert(self, value: Any, param: Any, ctx: Any) -> list[int]:
        """Return the numbers."""
        numbers = [number.strip() for number in value.split(",")]
        for number in numbers:
            if not (number.isascii() and number.isdecimal()):
                self.fail(f"{number!r} is no integer of at least 0", param, ctx)
        return sorted(set(map(int, numbers)))


class Bytes(click.ParamType[int]):
    """A number of bytes, perhaps in binary units: 500000000, 512M, 1.5G."""

    name = "bytes"
    UNITS: ClassVar = {unit: 1 << 10 * power for power, unit in enumerate(("", *"KMGT"))}

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", str(value).strip(), re.I)
        size = int(float(match[1]) * self.UNITS[match[2].upper()]) if match else 0
        if size < 1:
            self.fail(f"{value!r} is no number of bytes, such as 500000000, 512M or 4G", param, ctx)
        return size


def options(*given: Option) -> Option:
    """Make several options one, listed in the order given."""
    return lambda command: functools.reduce(lambda c, option: option(c), reversed(given), command)


def choice(
    name: str, table: Mapping[str, Any], default: str | None, text: str, *, several: str = ""
) -> Option:
    """Make an option that takes one name of a table, or its default.

    None as the default stands for what suits the graph. ``several`` is what the option is called
    by commands that take more than one name; it is understood, too.
    """
    if default is None:
        text += " Default: what suits the graph, where engine and mapping are auto."
    names = list(table) if default is None or default in table else [default, *table]
    called = (name, *filter(None, (several,)), name.strip("-").replace("-", "_"))
    return click.option(*called, type=click.Choice(names), default=default, help=text)


AT_LEAST_0, AT_LEAST_1 = click.IntRange(min=0), click.IntRange(min=1)

engine_option = choice("--engine", ENGINES, AUTO, "Who runs the level loop.", several="--engines")
advance_option = choice(
    *("--advance", ADVANCES, "auto", "How a frontier's edges are given to threads."),
    several="--advances",
)


def engines_option(text: str, table: Mapping[str, Any] = ENGINES) -> Option:
    """Make the option for several engines, of which ``--engine`` may name one."""
    return click.option(
        *("--engines", "--engine", "engines"),
        type=Names(table, "engine"),
        default="all",
        show_default=True,
        help=text,
    )


def advances_option(default: str, text: str) -> Option:
    """Make the option for several mappings, of which ``--advance`` may name one."""
    return click.option(
        *("--advances", "--advance", "advances"),
        type=Names(ADVANCES, "advance"),
        default=default,
        show_default=True,
        help=text,
    )


max_depth_option = click.option(
    "--max-depth", type=AT_LEAST_0, help="The largest distance to look for."
)

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")

verbose_option = click.option(
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _, value: ctx.find_root().ensure_object(dict).update(verbose=value),
    help="Show a compiler's command and output when it fails.",
)

report_file_option = click.option(
    "--output", type=OutputFile(".json"), help="Write the JSON here, too."
)

device_option = click.option(
    "--device",
    default="auto",
    show_default=True,
    help=f"{', '.join(DEVICES)}, or cuda:N for GPU N.",
)

no_verify_option = click.option(
    "--no-verify",
    is_flag=True,
    help="Do not prove the answer. It is then called unverified (null in JSON), and as no time is "
    "given for an answer that may be wrong, there is none.",
)

l2_option = click.option(
    "--l2",
    type=click.Choice(("warm", "cold")),
    default="warm",
    show_default=True,
    help="What L2 holds when a timed search begins: cold evicts it before each.",
)

graph_options = options(
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
    click.option(
        "--format",
        metavar="NAME",
        help="The file's format, where neither content nor extension tell; GRAPH may be - for "
        "standard input.",
    ),
    click.option("--relabel", is_flag=True, help="Number an edge list's ids afresh."),
    click.option("--drop-zeros", is_flag=True, help="A matrix's stored zeros are no edges."),
    click.option(
        "--memory-limit",
        type=Bytes(),
        metavar="BYTES",
        help="Memory that reading a file may take, such as 4G. Default: what is available; of it "
        "at most 256M or 100 times a compressed file's size for its content, and 1G and 128 bytes "
        "per byte of content for the graph.",
    ),
    click.option("--graph-seed", type=AT_LEAST_0, help="Seed of a generated graph."),
)


def policy_options(claim: str = "cas", *, suited: bool = False) -> Option:
    """Make the options for direction, claim (with its default), append and frontier.

    ``suited`` leaves direction and frontier, if not given, to what suits the graph.
    """
    direction, frontier = (None, None) if suited else ("push", "sparse")
    return options(
        choice("--direction", DIRECTIONS, direction, "From the frontier out, or into it."),
        choice("--claim", CLAIMS, claim, "Who discovers a vertex."),
        choice("--append", APPENDS, "warp", "How it enters the next frontier."),
        choice("--frontier", FRONTIERS, frontier, "Whether a frontier has a bitmap."),
    )


search_options = options(
    device_option,
    choice("--reorder", ORDERS, "none", "Search the vertices in another order; answers keep ids."),
    click.option(
        "--schedule",
        type=click.Choice(SCHEDULES),
        default=SCHEDULES[0],
        help="How the emulated device interleaves threads.",
    ),
    click.option("--seed", type=AT_LEAST_0, default=0, help="Seed of that schedule."),
    click.option("--blocks", type=AT_LEAST_1, help="Blocks of a grid that serves every level."),
    click.option(
        "--block-threads", type=AT_LEAST_1, help="Threads a block; default: what suits the engine."
    ),
    click.option(
        "--block-queue", type=AT_LEAST_1, default=1024, help="Size of the block append's."
    ),
    click.option(
        "--levels-per-launch",
        type=AT_LEAST_1,
        help="Levels between two looks (host_batched, graph_unrolled, graph_while); by default "
        "what suits the graph.",
    ),
    click.option(
        "--tier-slots", type=click.IntRange(min=2), help="Slots of a tier's block for a frontier."
    ),
    click.option(
        "--time-limit",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Stop a search that takes longer.",
    ),
    verbose_option,
)


READING = (
    *("directed", "symmetrize", "format", "relabel", "drop_zeros", "memory_limit", "graph_seed"),
)
"""The options that say how to read a graph."""


def takes_graph(command: Command) -> Command:
    """Give a command the graph and source that its options name, as ``graph`` and ``source``."""

    @functools.wraps(command)
    def with_graph(*, graph: str, source: str | None, **options: Any) -> Any:
        how = {name: options.pop(name) for name in READING}
        with bad_input():
            loaded = load_graph(graph, **how)
            vertex = choose_source(loaded, source)
        return command(graph=loaded, source=vertex, **options)

    return graph_options(with_graph)


def choose_source(graph: Graph, source: str | None) -> int:
    """The vertex that ``--source`` names; the first of the largest degree for `MAX_DEGREE`."""
    if source is None:
        if graph.arcs and not graph.degrees[0]:
            name = "" if graph.labels is None else f" ({graph.label_of(0)!r})"
            edges = "edges out" if graph.directed else "edges"
            say(
                "warning",
                f"no --source given: the search begins at vertex 0{name}, which has no {edges}; "
                f"--source {MAX_DEGREE} begins where most are",
            )
        return 0
    if source == MAX_DEGREE:
        return int(graph.degrees.argmax())
    return graph.vertex_of(source)


def load_graph(name: str, *, graph_seed: int | None, **how: Any) -> Graph:
    """Read or generate a graph, with a progress bar if that takes long."""
    from persistent_bfs.io import read_graph

    with progress_bar() as progress:
        return read_graph(name, seed=graph_seed, progress=progress, **how)

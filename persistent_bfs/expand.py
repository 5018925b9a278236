"""The isolated level walk: what each mapping costs where reading a frontier's arcs is all it does.

A chosen level of a search is walked many times in one launch, without claim or append, and what
the arcs add up to is compared with the host's prediction, so that a walk cut short is wrong rather
than fast: first every frontier vertex's accumulator, then in each timed launch the checksum of
them all. How the kernels do it is told in ``cuda/walk.cuh``. Beside each mapping stands the time
of the whole search with it, which is what a user gets: the walk explains that time and never
replaces it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from persistent_bfs import layout
from persistent_bfs.config import ADVANCES, WALK, choose
from persistent_bfs.device import DeviceChoice, open_device
from persistent_bfs.device.base import (
    Buffer,
    Device,
    DeviceError,
    DeviceUnavailable,
    Kernel,
    KernelArguments,
    LaunchShape,
)
from persistent_bfs.engines.base import ARCS_PER_THREAD, MAX_COUNTED_ARCS, uploads
from persistent_bfs.graph import Graph
from persistent_bfs.measure import WARM_UPS, Timing, measure
from persistent_bfs.plan import configure
from persistent_bfs.reference import (
    ARCS_AT_ONCE,
    LevelRow,
    WrongAnswer,
    bfs_reference,
    level_table,
)
from persistent_bfs.session import BFS

__all__ = [
    "ExpandReport",
    "LevelWalk",
    "Makespan",
    "WalkRow",
    "WholeSearch",
    "check_sums",
    "checksum",
    "edge_offsets",
    "expand",
    "makespan",
    "pick_levels",
    "predicted_sums",
]

Vertices = npt.NDArray[np.int32]
Sums = npt.NDArray[np.uint32]

LEVELS = 3
"""Levels walked where none is named: those with the most edges."""

REPEAT_LIMIT = 1 << 16
"""Walks a launch: beyond this nothing is gained, and a launch may last too long for a display."""


class Makespan(NamedTuple):
    """Steps until the last thread is through with a frontier, given one thread a vertex."""

    thread: int
    """Each thread expands its own vertex: the largest degree."""
    balanced: int
    """The same threads share the edges equally."""

    @property
    def ratio(self) -> float:
        """How many times longer the thread mapping takes."""
        return self.thread / self.balanced if self.balanced else 1.0


def makespan(degrees: npt.ArrayLike) -> Makespan:
    """Compare the slowest thread of the thread mapping with that of equal edges a thread.

    Parameters
    ----------
    degrees : (k,) integer array-like
        Degrees of the frontier's vertices.

    Examples
    --------
    >>> makespan([6, 1, 1])
    Makespan(thread=6, balanced=3)
    """
    degree = np.asarray(degrees, dtype=np.int64)
    if not degree.size:
        return Makespan(0, 0)
    return Makespan(int(degree.max()), -(-int(degree.sum()) // degree.size))


def edge_offsets(graph: Graph, frontier: Vertices) -> npt.NDArray[np.uint32]:
    """Where each frontier vertex's edges begin in the frontier's numbering of them.

    Returns
    -------
    (k + 1,) uint32 array
        The exclusive scan of the k degrees, and their sum.
    """
    offsets = np.zeros(frontier.size + 1, np.uint32)
    np.cumsum(graph.degrees[frontier], out=offsets[1:])
    return offsets


def predicted_sums(graph: Graph, frontier: Vertices, repeat: int) -> Sums:
    """What walking ``frontier`` ``repeat`` times leaves in every vertex's accumulator.

    For a vertex u of the frontier, modulo 2^32, the sum over walks r and arcs u -> v of
    ``v XOR r``; 0 for all others.

    Returns
    -------
    (n,) uint32 array
    """
    # Walks change only the bits that r has: one look-up sums them over all walks.
    bits = (repeat - 1).bit_length()
    lows, walks = np.arange(1 << bits, dtype=np.uint32), np.arange(repeat)
    low_sums = np.zeros(1 << bits, np.uint32)
    for bit in range(bits):
        ones = int(np.count_nonzero(walks >> bit & 1))
        low_sums += np.where(lows >> bit & 1, repeat - ones, ones).astype(np.uint32) << bit
    sums = np.zeros(graph.vertices, np.uint32)
    parts = max(1, -(-int(graph.degrees[frontier].sum(dtype=np.int64)) // ARCS_AT_ONCE))
    for part in np.array_split(frontier, parts):
        degrees = graph.degrees[part]
        ends = degrees.cumsum(dtype=np.int64)
        arcs = np.repeat(graph.row_offsets[part] - ends + degrees, degrees)
        arcs = arcs + np.arange(arcs.size)
        neighbours = graph.col_indices[arcs].astype(np.uint32)
        values = (neighbours >> bits << bits) * np.uint32(repeat) + low_sums[
            neighbours & np.uint32((1 << bits) - 1)
        ]
        before = np.concatenate([np.zeros(1, np.uint32), values.cumsum(dtype=np.uint32)])
        sums[part] = before[ends] - before[ends - degrees]
    return sums


def checksum(sums: Sums) -> int:
    """The accumulators in one word: the sum of (2u + 1) times that of u, modulo 2^32."""
    weights = 2 * np.arange(sums.size, dtype=np.uint32) + 1
    return int((weights * sums).sum(dtype=np.uint32))


def check_sums(graph: Graph, sums: Sums, expected: Sums) -> None:
    """Compare every vertex's accumulator with its prediction.

    Raises
    ------
    WrongAnswer
        Naming the first vertex that differs, by id, label and both values.
    """
    differ = np.flatnonzero(sums != expected)
    if differ.size:
        vertex = int(differ[0])
        label = "" if graph.labels is None else f" ({graph.label_of(vertex)!r})"
        raise WrongAnswer(
            f"vertex {vertex}{label}: accumulator {sums[vertex]}, predicted {expected[vertex]} "
            f"({differ.size:,} of {graph.vertices:,} vertices differ)"
        )


def pick_levels(table: Sequence[LevelRow], levels: Iterable[int] | None = None) -> list[LevelRow]:
    """Return the rows of ``levels``, or of the three levels with the most edges, by level.

    Raises
    ------
    ValueError
        A level that the search does not have, or none at all.
    """
    if levels is None:
        busiest = sorted(table, key=lambda row: (-row.edges, row.level))[:LEVELS]
        return sorted(busiest, key=lambda row: row.level)
    chosen = list(dict.fromkeys(levels))
    if not chosen:
        raise ValueError("no level to walk: name at least one")
    for level in chosen:
        if not 0 <= level < len(table):
            raise ValueError(f"there is no level {level}: the search has 0 to {len(table) - 1}")
    return [table[level] for level in chosen]


class WalkArguments(ctypes.Structure):
    """The struct of that name in ``cuda/walk.cuh``."""

    _fields_ = (
        ("sums", ctypes.c_void_p),
        ("checksum", ctypes.c_void_p),
        ("moved", ctypes.c_longlong),
        ("repeats", ctypes.c_int),
        ("level", ctypes.c_int),
        ("frontier_size", ctypes.c_uint),
        ("frontier_edges", ctypes.c_uint),
        ("largest_degree", ctypes.c_int),
        ("reserved", ctypes.c_int),
    )


@dataclass(frozen=True)
class WalkRow:
    """One level under one mapping.

    Attributes
    ----------
    level, frontier, edges, max_degree : int
        The level, its vertices, their arcs and the largest degree among them.
    advance : str
        The mapping.
    problem : str or None
        What was wrong with the accumulators or their checksum; None if all was as predicted.
    timing : Timing or None
        Milliseconds of one walk: the launch's time over its walks. None where the device has no
        time to tell, or the walk was wrong.
    lane_slots : int or None
        Lane slots of one walk; None where the device does not count (cuda) or the walk was wrong.
    atomics : int or None
        Atomic operations of the whole launch, all its walks; None likewise.
    """

    level: int
    frontier: int
    edges: int
    max_degree: int
    advance: str
    problem: str | None
    timing: Timing | None
    lane_slots: int | None
    atomics: int | None

    @property
    def verified(self) -> bool:
        """Whether every accumulator and checksum was as predicted."""
        return self.problem is None

    @property
    def edges_per_second(self) -> float | None:
        """Edges walked a second, by the median walk; None without a time."""
        return None if self.timing is None else self.edges / (self.timing.median / 1e3)

    def summary(self) -> dict[str, Any]:
        """The figures of this row, as JSON takes them."""
        return {
            "level": self.level,
            "frontier": self.frontier,
            "edges": self.edges,
            "max_degree": self.max_degree,
            "advance": self.advance,
            "verified": self.verified,
            "problem": self.problem,
            "ms": self.timing and self.timing.spread(),
            "edges_per_second": self.edges_per_second,
            "lane_slots": self.lane_slots,
            "atomics": self.atomics,
        }


@dataclass(frozen=True)
class WholeSearch:
    """The search that the levels are of, by the persistent engine with one mapping.

    ``timing`` is the device's time in milliseconds, ``lane_slots`` and ``atomics`` are of one
    search; None as in `WalkRow`.
    """

    advance: str
    problem: str | None
    timing: Timing | None
    lane_slots: int | None
    atomics: int | None

    @property
    def verified(self) -> bool:
        """Whether the answer was checked and found right."""
        return self.problem is None

    def summary(self) -> dict[str, Any]:
        """The figures of this search, as JSON takes them."""
        return {
            "advance": self.advance,
            "verified": self.verified,
            "problem": self.problem,
            "ms": self.timing and self.timing.spread(),
            "lane_slots": self.lane_slots,
            "atomics": self.atomics,
        }


@dataclass(frozen=True)
class ExpandReport:
    """Walks of some levels of a search under some mappings, and the whole searches beside them.

    Attributes
    ----------
    graph : str
    source, repeat, samples : int
        The search's source, walks a launch, timed launches.
    device, reason : str
        What ran the walks, and why.
    rows : tuple of WalkRow
        By level, then mapping.
    searches : dict of str to WholeSearch
        By mapping.
    """

    graph: str
    source: int
    repeat: int
    samples: int
    device: str
    reason: str
    rows: tuple[WalkRow, ...]
    searches: Mapping[str, WholeSearch]

    @property
    def verified(self) -> bool:
        """Whether every walk and every search was right."""
        rows, searches = self.rows, self.searches.values()
        return all(row.verified for row in rows) and all(search.verified for search in searches)

    @property
    def levels(self) -> list[int]:
        """The levels walked."""
        return list(dict.fromkeys(row.level for row in self.rows))

    def row(self, level: int, advance: str) -> WalkRow:
        """The walk of ``level`` under the mapping ``advance``; KeyError if there is none."""
        for row in self.rows:
            if (row.level, row.advance) == (level, advance):
                return row
        raise KeyError((level, advance))

    def summary(self) -> dict[str, Any]:
        """All figures, as JSON takes them."""
        return {
            "graph": self.graph,
            "source": self.source,
            "repeat": self.repeat,
            "samples": self.samples,
            "device": self.device,
            "reason": self.reason,
            "verified": self.verified,
            "rows": [row.summary() for row in self.rows],
            "searches": [search.summary() for search in self.searches.values()],
        }


class LevelWalk:
    """A search's graph and distances on a device, to walk its levels by; a context manager.

    Parameters
    ----------
    device : Device
    graph : Graph
    distances : (n,) int32 array
        Distances of the search; a level's frontier is every vertex at that distance, ascending.
    advances : sequence of str
        The mappings to walk by, from `persistent_bfs.config.ADVANCES`.
    block_threads : int
        Threads a block.

    Raises
    ------
    CompileError
        The compiler is missing or refused.
    DeviceMemoryError
        The graph does not fit.
    """

    def __init__(
        self,
        device: Device,
        graph: Graph,
        distances: Vertices,
        advances: Sequence[str],
        *,
        block_threads: int = 256,
    ) -> None:
        self.device = device
        self.graph = graph
        self.distances = distances
        configs = {
            name: configure(graph, engine=WALK.name, advance=name, block_threads=block_threads)
            for name in advances
        }
        self._stack = ExitStack()
        self.parameters = layout.SearchParameters(vertices=graph.vertices, arcs=graph.arcs)
        self.arguments = WalkArguments()
        self._launch = KernelArguments(self.parameters, self.arguments)
        with self._stack, device.current():
            self.stream = device.stream()
            self.programs = {name: device.load(config) for name, config in configs.items()}
            arrays = {"distances": distances}
            for config in configs.values():
                arrays |= uploads(graph, config)
            for name, array in arrays.items():
                setattr(self.parameters, name, self._keep(device.upload(array, name)).address)
            self._sums = self._keep(device.allocate(graph.vertices, np.uint32, "sums"))
            self._checksum = self._keep(device.allocate(1, np.uint32, "checksum"))
            self.arguments.sums = self._sums.address
            self.arguments.checksum = self._checksum.address
            # Nothing failed: what is on the device stays there until `close`.
            self._stack = self._stack.pop_all()

    def _keep(self, buffer: Buffer) -> Buffer:
        self._stack.callback(buffer.free)
        return buffer

    def close(self) -> None:
        """Give the device memory back; harmless when done twice."""
        with self.device.current():
            self._stack.close()

    def __enter__(self) -> LevelWalk:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextmanager
    def level(self, level: int) -> Iterator[Vertices]:
        """Upload a level's frontier and edge offsets for the walks inside the ``with`` block.

        Raises
        ------
        DeviceError
            The level has more edges than 32 bits count.
        """
        frontier = np.flatnonzero(self.distances == level).astype(np.int32)
        degrees = self.graph.degrees[frontier]
        edges = int(degrees.sum(dtype=np.int64))
        if edges > MAX_COUNTED_ARCS:
            raise DeviceError(
                f"level {level} has {edges:,} edges: a frontier's edges are counted in 32 bits"
            )
        with ExitStack() as stack, self.device.current():
            for name, array in (
                ("queue", frontier),
                ("edge_begin", edge_offsets(self.graph, frontier)),
            ):
                buffer = self.device.upload(array, name)
                stack.callback(buffer.free)
                setattr(self.parameters, name, buffer.address)
            self.parameters.queue_capacity = frontier.size
            self.arguments.level = level
            self.arguments.frontier_size = frontier.size
            self.arguments.frontier_edges = edges
            self.arguments.largest_degree = int(degrees.max(initial=0))
            yield frontier

    def shape(self, kernel: Kernel, threads: int) -> LaunchShape:
        """The persistent engine's grid: resident, and no larger than of use."""
        limit = self.device.max_resident_blocks(kernel, threads)
        useful = self.graph.arcs // (threads * ARCS_PER_THREAD)
        return LaunchShape(min(limit, max(self.device.info.multiprocessors, useful)), threads)

    def sums(self, advance: str, repeat: int) -> Sums:
        """Walk the level ``repeat`` times and return every vertex's accumulator, (n,) uint32."""
        sums: Sums = self._run("walk_level_by_vertex", advance, repeat, self._sums)[0]
        return sums

    def walk(self, advance: str, repeat: int) -> tuple[int, float | None, dict[str, int]]:
        """Walk the level ``repeat`` times in one launch, as fast as the mapping can.

        Returns
        -------
        checksum : int
            What `checksum` says of the accumulators.
        ms : float or None
            The launch's time by the device's clock, if it has one.
        counts : dict of str to int
            What the device counted, if it counts.
        """
        word, ms, counts = self._run("walk_level", advance, repeat, self._checksum)
        return int(word[0]), ms, counts

    def _run(
        self, name: str, advance: str, repeat: int, result: Buffer
    ) -> tuple[Any, float | None, dict[str, int]]:
        program = self.programs[advance]
        kernel = program[name]
        shape = self.shape(kernel, program.config.block_threads)
        self.arguments.repeats = repeat
        with self.device.current():
            self.stream.fill(result, 0)
            self.device.take_counts()
            begin = self.stream.record()
            self.stream.launch(kernel, shape, self._launch)
            ms = self.stream.elapsed_ms(begin, self.stream.record())
            self.stream.synchronize()
            return result.to_host(), ms, self.device.take_counts()

    def measure(
        self, advance: str, repeat: int, samples: int, expected: Sums
    ) -> tuple[str | None, Timing | None, dict[str, int]]:
        """Check every accumulator, then warm up and time ``samples`` launches, checking each.

        Returns
        -------
        problem : str or None
            What was wrong.
        timing : Timing or None
            Milliseconds of one walk, if nothing was wrong and the device has a clock.
        counts : dict of str to int
            What the device counted in one launch to be timed, if it counts.
        """
        right, times = checksum(expected), []
        try:
            check_sums(self.graph, self.sums(advance, repeat), expected)
        except WrongAnswer as wrong:
            return str(wrong), None, {}
        for run in range(WARM_UPS + samples):
            got, ms, counts = self.walk(advance, repeat)
            if got != right:
                problem = f"checksum of the walks {got}, predicted {right}: arcs were left out"
                return problem, None, counts
            if ms is None:
                return None, None, counts
            if run >= WARM_UPS:
                times.append(ms / repeat)
        return None, Timing(tuple(times)), counts


def expand(
    graph: Graph,
    source: int,
    *,
    levels: Iterable[int] | None = None,
    advances: Iterable[str] | None = None,
    repeat: int = 64,
    device: str | Device = "auto",
    samples: int = 10,
    block_threads: int = 256,
) -> ExpandReport:
    """Walk some levels of the search from ``source`` under every mapping, arcs only.

    Parameters
    ----------
    graph : Graph
    source : int
        A vertex id.
    levels : iterable of int, optional
        The levels; by default the three with the most edges.
    advances : iterable of str, optional
        Names from `persistent_bfs.config.ADVANCES`; by default all.
    repeat : int
        Walks in one launch, 1 to 65,536.
    device : str or Device
        As in `persistent_bfs.BFS`, but for ``reference``, which has no kernels to walk with.
    samples : int
        Timed launches of each walk and runs of each whole search, where the device tells time.
    block_threads : int
        Threads a block.

    Raises
    ------
    TypeError, ValueError
        A source, level, mapping or number that is not there or out of range.
    DeviceUnavailable
        The device cannot be used here.
    DeviceError, CompileError
        The device failed; the compiler is missing or refused.

    Examples
    --------
    >>> from persistent_bfs import read_graph
    >>> report = expand(read_graph("star:40"), 0, advances=["warp"], device="emulated")
    >>> row = report.row(0, "warp")
    >>> row.verified, row.edges, row.lane_slots
    (True, 39, 64)
    """
    source = graph.check_source(source)
    names = tuple(dict.fromkeys(ADVANCES if advances is None else advances))
    if not names:
        raise ValueError("no mapping to walk by: name at least one")
    for name in names:
        choose(ADVANCES, name, "advance")
    if not 1 <= repeat <= REPEAT_LIMIT:
        raise ValueError(f"repeat is {repeat}; it must be 1 to {REPEAT_LIMIT:,}")
    if samples < 1:
        raise ValueError(f"samples is {samples}; it must be at least 1")
    distances = bfs_reference(graph, source).distances
    chosen = pick_levels(level_table(graph, source, distances), levels)
    with ExitStack() as stack:
        if isinstance(device, Device):
            choice = DeviceChoice(device.info.kind, device, "given")
        else:
            choice = open_device(device)
            if choice.device is not None:
                stack.enter_context(choice.device)
        opened = choice.device
        if opened is None:
            raise DeviceUnavailable(
                f"the isolated walk runs kernels, on cuda or emulated; the reference has none "
                f"({choice.reason})"
            )
        rows: list[WalkRow] = []
        with LevelWalk(opened, graph, distances, names, block_threads=block_threads) as walk:
            for level in chosen:
                with walk.level(level.level) as frontier:
                    expected = predicted_sums(graph, frontier, repeat)
                    for name in names:
                        problem, timing, counts = walk.measure(name, repeat, samples, expected)
                        slots = counts.get("lane_slots")
                        rows.append(
                            WalkRow(
                                level=level.level,
                                frontier=level.frontier,
                                edges=level.edges,
                                max_degree=level.max_degree,
                                advance=name,
                                problem=problem,
                                timing=timing,
                                lane_slots=None if slots is None else slots // repeat,
                                atomics=counts.get("atomics"),
                            )
                        )
        searches = {
            name: _whole_search(graph, source, name, opened, samples, distances, block_threads)
            for name in names
        }
    return ExpandReport(
        graph=graph.name,
        source=source,
        repeat=repeat,
        samples=samples,
        device=choice.kind,
        reason=choice.reason,
        rows=tuple(rows),
        searches=searches,
    )


def _whole_search(
    graph: Graph,
    source: int,
    advance: str,
    device: Device,
    samples: int,
    distances: Vertices,
    block_threads: int,
) -> WholeSearch:
    # Without a tier, which would run narrow levels without the mapping.
    how: dict[str, Any] = {"advance": advance, "tiers": "none", "block_threads": block_threads}
    with BFS(graph, engine="persistent", device=device, **how) as search:
        found = measure(search, source, repeat=samples, expected=distances)
    counts = found.result.counters.device
    return WholeSearch(
        advance, found.problem, found.device, counts.get("lane_slots"), counts.get("atomics")
    )

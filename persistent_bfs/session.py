"""The search: a session that prepares once and runs many times, and one call for one search."""

from __future__ import annotations

import operator
import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from persistent_bfs import layout
from persistent_bfs.config import (
    ENGINES,
    MOST_ROW_SLOTS,
    ORDERS,
    PROGRAMS,
    TIERS,
    Config,
    choose,
    conflict,
)
from persistent_bfs.device import DeviceChoice, open_device
from persistent_bfs.device.base import Device, DeviceError, DeviceInfo
from persistent_bfs.engines import engine_class
from persistent_bfs.engines.base import (
    MAX_COUNTED_ARCS,
    Engine,
    EngineOptions,
    Workspace,
    make_workspace,
    memory_needed,
)
from persistent_bfs.graph import Graph
from persistent_bfs.reference import bfs_reference
from persistent_bfs.reorder import NO_ORDER, Relabelling, Reordering
from persistent_bfs.reorder import reorder as reordered
from persistent_bfs.result import BFSResult, Counters, Fetch, LevelTrace
from persistent_bfs.tiers import AUTO, NONE, check_tiers, choose_tier
from persistent_bfs.trace import count_frontiers, join_levels, runs_of, set_times, unpack_levels

# Of a graph without larger degrees, a level's size alone can choose the mapping.
EVEN_DEGREE = layout.EVEN_DEGREE

# What a tier is compiled for at least: more would do for any graph, but take longer on short rows.
FEWEST_ROW_SLOTS = 1

# Rows longer than this keep the few warps of a tier long.
TIERED_DEGREE = 32

# With so many arcs a wide level takes longer than what pulling it needs beside; and with so many
# more, longer than what bitmaps need: their clearing, and fewer threads a multiprocessor.
WIDE_ARCS, DENSE_ARCS = 1 << 16, 1 << 23

# In this many levels a graph of narrow ones does not reach this many vertices.
PROBED_LEVELS, PROBED_VERTICES = 12, 2048


def looks_deep(graph: Graph) -> bool:
    """Whether the first levels of a few searches are narrow, as where there are many of them.

    Looks at little more than `PROBED_VERTICES` vertices from each of three starts, in
    milliseconds: from a vertex of a road, a mesh or a path few are within `PROBED_LEVELS` levels,
    from one of a random graph or a tree that many are.
    """
    offsets, indices = graph.row_offsets, graph.col_indices
    for start in {0, graph.vertices // 2, graph.vertices - 1}:
        seen = {start}
        frontier = [start]
        for _ in range(PROBED_LEVELS):
            neighbours = (indices[offsets[v] : offsets[v + 1]].tolist() for v in frontier)
            frontier = list({u for row in neighbours for u in row} - seen)
            seen.update(frontier)
            if len(seen) > PROBED_VERTICES:
                return False
    return True


def choose_engine(engine: str, device: Device) -> tuple[str, str]:
    """The engine that ``auto`` (or a name) means on ``device``, and why (which may be empty)."""
    info = device.info
    if engine == "auto":
        if not info.cooperative_launch:
            if info.while_nodes:
                return "graph_while", "graph_while: the device has no cooperative launch"
            return "graph_unrolled", "graph_unrolled: no cooperative launch, no WHILE nodes here"
        return "persistent", "persistent: the least a level of any width can cost"
    if engine == "graph_while" and not info.while_nodes:
        return (
            "graph_unrolled",
            f"graph_unrolled instead of graph_while: WHILE nodes need a driver of CUDA 12.4, "
            f"this one is {info.driver}",
        )
    return engine, ""


def choose_advance(advance: str, direction: str) -> tuple[str, str]:
    """The mapping that ``auto`` (or a name) means with ``direction``, and why (may be empty)."""
    if advance == "auto" and direction == "pull":
        return "thread", "thread mapping: the one that pull combines with"
    return advance, ""


def suitable_frontier(graph: Graph, config: Config) -> str | None:
    """The form of frontiers with which wide levels of ``graph`` had better be pulled, if any.

    So it is in undirected graphs that are not deep: with bitmaps where there are very many arcs,
    without where there are many and some vertex has a large share of them, so that a search that
    only pushed would count the frontiers' arcs all the same. A directed graph would have to be
    transposed first; that is left to whoever asks for it.
    """
    form = "dense" if graph.arcs >= DENSE_ARCS else "sparse"
    counted = form == "dense" or graph.max_degree > EVEN_DEGREE
    if (
        graph.directed
        or not WIDE_ARCS <= graph.arcs <= MAX_COUNTED_ARCS
        or not (counted and config.exact)
        or conflict("auto", config.advance, config.append, form) is not None
        or looks_deep(graph)
    ):
        return None
    return form


def is_narrow(graph: Graph) -> bool:
    """Whether ``graph`` has many narrow levels and no long rows, by a look at it."""
    return graph.max_degree <= TIERED_DEGREE and looks_deep(graph)


def suitable_levels(engine: str, graph: Graph) -> int | None:
    """Levels that ``engine`` had better issue before anyone looks; None if it always knows."""
    levels = ENGINES[engine].levels_per_launch
    return levels and levels[0 if is_narrow(graph) else 1]


def configure(
    graph: Graph,
    *,
    engine: str = "auto",
    advance: str = "auto",
    direction: str = "push",
    block_threads: int | None = None,
    tiers: str = "auto",
    **choices: Any,
) -> Config:
    """What a session of ``graph`` is compiled as; arguments and errors are those of `BFS`.

    ``auto`` as an engine stands for the one it usually means, and as tiers for none; the device
    may have others.
    """
    engine = "persistent" if engine == "auto" else engine
    row = PROGRAMS.get(engine) or choose(ENGINES, engine, "engine")
    allowed = check_tiers(tiers)
    tier = allowed[0] if len(allowed) == 1 else NONE
    if block_threads is None:
        block_threads = TIERS[tier].block_threads if TIERS[tier].exists else row.block_threads
    return Config(
        engine=engine,
        tier=tier,
        advance=choose_advance(advance, direction)[0],
        direction=direction,
        offset_bits=graph.row_offsets.dtype.itemsize * 8,
        even_degrees=graph.max_degree <= EVEN_DEGREE,
        block_threads=block_threads,
        **choices,
    )


def with_tier(
    config: Config,
    graph: Graph,
    tiers: str,
    info: DeviceInfo,
    *,
    block_threads: int | None = None,
) -> tuple[Config, str]:
    """``config`` with the tier that ``tiers`` means for ``graph``, and why (may be empty).

    ``block_threads`` is what the user asked for, or None for what suits the tier.
    """
    if not ENGINES[config.engine].tiers:
        return config, ""
    tier, why = choose_tier(
        tiers,
        vertices=graph.vertices,
        narrow=is_narrow(graph),
        direction=config.direction,
        claim=config.claim,
        append=config.append,
        frontier=config.frontier,
        info=info,
    )
    row = TIERS[tier]
    if block_threads is None:
        block_threads = row.block_threads if row.exists else ENGINES[config.engine].block_threads
    if row.exists:
        slots = -(-graph.max_degree // layout.PACKED)
        config = config.with_(row_slots=min(max(slots, FEWEST_ROW_SLOTS), MOST_ROW_SLOTS))
    return config.with_(tier=tier, block_threads=block_threads), why


class BFS:
    """A breadth-first search session: upload, allocate and compile once, run many times.

    Parameters
    ----------
    graph : Graph
    engine : str
        Who runs the level loop: a name from `persistent_bfs.config.ENGINES`, or ``auto``.
    advance : str
        How a frontier's edges are given to threads: a name from ``ADVANCES``, or ``auto``.
    device : str or Device
        ``auto``, ``cuda``, ``cuda:N``, ``emulated``, ``reference``; or a device already open,
        which then stays open.
    claim, append : str
        Names from ``CLAIMS`` and ``APPENDS``.
    direction, frontier : str, optional
        Names from ``DIRECTIONS`` and ``FRONTIERS``. By default what suits the graph where engine
        and mapping are ``auto``, and else ``push`` and ``sparse``; the result says which.
    predecessors : bool
        Whether results have predecessors.
    trace : bool
        Whether results have a level trace.
    block_threads : int, optional
        Threads a block; by default what suits the engine.
    block_queue : int
        Vertices that the block append's shared queue holds before it spills.
    tiers : str
        Who may run the narrow levels of the persistent engine: names from ``TIERS`` with commas
        between, of which the first that fits is taken; or ``auto``.
    reorder : str or Reordering, optional
        The order in which vertices are searched: a name from ``ORDERS``, or what
        `persistent_bfs.reorder.reorder` made of ``graph``, for several sessions to share. By
        default, and for ``none``, the graph's own. Sources, distances and predecessors are the
        caller's ids all the same: the host maps answers back when they are first looked at, by one
        NumPy gather (predecessors: two). Preparing costs ``reorder_ms``.
    time_limit : float, optional
        Seconds after which a search is stopped; by default it may take as long as it takes.
    options : EngineOptions, optional
        Levels a launch, blocks of the grid, slots of a tier.
    schedule, seed
        How the emulated device interleaves threads.

    Attributes
    ----------
    graph : Graph
        The caller's, whatever the order.
    reorder : str
        The name of the order.
    reorder_ms : float
        Milliseconds by the host's clock that reordering took, 0 for ``none``; in no other time.

    Raises
    ------
    ValueError
        A name that is in no table, a graph without vertices, or a reordering of another graph.
    DeviceUnavailable
        The device cannot be used here.
    DeviceMemoryError
        The graph does not fit; says how many bytes are needed and free.
    CompileError
        The compiler is missing or refused.

    Examples
    --------
    >>> from persistent_bfs import BFS, read_graph
    >>> with BFS(read_graph("path:5"), device="reference") as search:
    ...     search.run(0).distances.tolist()
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        graph: Graph,
        *,
        engine: str = "auto",
        advance: str = "auto",
        device: str | Device = "auto",
        direction: str | None = None,
        claim: str = "cas",
        append: str = "warp",
        frontier: str | None = None,
        predecessors: bool = False,
        trace: bool = False,
        block_threads: int | None = None,
        block_queue: int = 1024,
        tiers: str = "auto",
        reorder: str | Reordering | None = None,
        time_limit: float | None = None,
        options: EngineOptions | None = None,
        schedule: str = "roundrobin",
        seed: int = 0,
    ) -> None:
        self.graph = graph
        self.time_limit = _check_time_limit(time_limit)
        self._closed = False
        self._engine: Engine | None = None
        self._workspace: Workspace | None = None
        self._runs = 0
        self._relabelling: Relabelling | None = None
        self.reorder = _check_order(graph, reorder)
        self.reorder_ms = 0.0
        # Names are checked before a device is opened or anything is compiled.
        wanted = configure(
            graph,
            engine=engine,
            advance=advance,
            direction=direction or "push",
            claim=claim,
            append=append,
            frontier=frontier or "sparse",
            predecessors=predecessors,
            trace=trace,
            block_threads=block_threads,
            block_queue=block_queue,
            tiers=tiers,
        )
        self._owns_device = not isinstance(device, Device)
        if isinstance(device, Device):
            self._choice = DeviceChoice(device.info.kind, device, "given")
        else:
            self._choice = open_device(device, schedule=schedule, seed=seed)
        self.device = self._choice.device
        reasons = [f"{self._choice.kind} device: {self._choice.reason}"]
        try:
            if self.device is not None:
                name, why = choose_engine(engine, self.device)
                self.config = wanted.with_(engine=name)
                reasons += filter(None, (why, choose_advance(advance, direction or "push")[1]))
                free = direction is None and frontier is None and engine == advance == "auto"
                if free and tiers.strip() in (AUTO, NONE):
                    reasons += filter(None, (self._take_direction(self.device),))
                reasons += filter(None, (self._take_tier(tiers, block_threads, self.device),))
                searched = self._take_order(reorder)
                with self.device.current():
                    self._prepare(self.device, searched, options or EngineOptions())
            else:
                self.config = wanted
                self._searched = self._take_order(reorder)
        except BaseException:
            self.close()
            raise
        self.reason = "; ".join(reasons)

    def _take_direction(self, device: Device) -> str:
        """Give the configuration the direction that suits; returns why, if it is not push."""
        graph, pushing = self.graph, self.config
        form = suitable_frontier(graph, pushing)
        if form is None:
            return ""
        self.config = pushing.with_(direction="auto", frontier=form)
        needed = memory_needed(graph.vertices, graph.arcs, self.config, directed=False)
        if sum(needed.values()) > device.free_bytes():
            self.config = pushing
            return f"push: direction auto would need {sum(needed.values()):,} bytes in all"
        return f"direction auto, {form} frontiers: {graph.arcs:,} arcs in wide levels"

    def _take_tier(self, tiers: str, block_threads: int | None, device: Device) -> str:
        """Give the configuration its tier; returns why, if there is anything to say."""
        graph, plain = self.graph, self.config
        self.config, why = with_tier(plain, graph, tiers, device.info, block_threads=block_threads)
        needed = memory_needed(
            graph.vertices,
            graph.arcs,
            self.config,
            directed=graph.directed,
            max_degree=graph.max_degree,
        )
        if why and tiers.strip() == AUTO and sum(needed.values()) > device.free_bytes():
            self.config = plain.with_(tier=NONE)
            return f"no tier: its packed rows take {needed['packed_rows']:,} bytes more"
        return why

    def _take_order(self, reorder: str | Reordering | None) -> Graph:
        """The graph that is searched: the caller's, or that in another order."""
        if not isinstance(reorder, Reordering):
            reorder = reordered(self.graph, self.reorder)
        if reorder is None:
            return self.graph
        self._relabelling, self.reorder_ms = reorder.relabelling, reorder.milliseconds
        return reorder.graph

    def _prepare(self, device: Device, graph: Graph, options: EngineOptions) -> None:
        config = self.config
        levels = options.levels_per_launch or suitable_levels(config.engine, self.graph)
        options = replace(options, levels_per_launch=levels)
        self._workspace = make_workspace(device, graph, config)
        self.stream = device.stream()
        self._engine = engine_class(config.engine)(
            device, self.stream, config, self._workspace, options
        )

    @property
    def shape(self) -> str:
        """The launch geometry, in words; empty where each launch has its own."""
        return str(getattr(self._engine, "shape", ""))

    @property
    def levels_per_launch(self) -> int:
        """Levels issued before anyone looks whether there are more; 1 for one that always knows."""
        return 1 if self._engine is None else self._engine.levels_per_launch

    def run(self, source: int, *, max_depth: int | None = None) -> BFSResult:
        """Search from ``source``.

        Parameters
        ----------
        source : int
            A vertex id, any integer type.
        max_depth : int, optional
            The largest distance to look for; vertices farther away stay at -1.

        Raises
        ------
        TypeError, ValueError
            ``source`` or ``max_depth`` is not an integer in range; nothing was launched.
        SearchTimeout
            The session's time limit was reached; the session stays usable.
        DeviceError
            The device failed.
        """
        if self._closed:
            raise ValueError("this session is closed")
        source = self.graph.check_source(source)
        limit = _check_depth(max_depth)
        start = source if self._relabelling is None else self._relabelling.source(source)
        if self._engine is None or self.device is None:
            return self._run_reference(source, start, limit)
        self._runs += 1
        device, stream = self.device, self.stream
        with device.current():
            device.take_counts()
            stream.counters.reset()
            started = time.perf_counter()
            outcome = self._engine.run(start, limit, self.time_limit)
            launches, host_syncs = stream.counters.launches, stream.counters.host_syncs
            wall_ms = (time.perf_counter() - started) * 1e3
            device_ms = self._engine.device_ms()
            counts = device.take_counts()
            trace = self._read_trace(outcome.depth + 1) if self.config.trace else None
        return self._result(
            source,
            depth=outcome.depth,
            enqueued=outcome.enqueued,
            counters=Counters(launches, host_syncs, outcome.barriers, counts),
            trace=trace,
            device_ms=device_ms,
            wall_ms=None if device_ms is None else wall_ms,
            fetch_distances=self._later("distances"),
            fetch_predecessors=self._later("predecessors") if self.config.predecessors else None,
        )

    def _result(
        self, source: int, *, fetch_distances: Any, fetch_predecessors: Any, **fields: Any
    ) -> BFSResult:
        config = self.config
        reference = self.device is None
        return BFSResult(
            source=source,
            engine="reference" if reference else config.engine,
            advance="numpy" if reference else config.advance,
            direction=config.direction,
            claim=config.claim,
            append=config.append,
            frontier=config.frontier,
            tier=config.tier,
            device=self._choice.kind,
            reason=self.reason,
            reorder=self.reorder,
            reorder_ms=self.reorder_ms,
            _fetch_distances=fetch_distances,
            _fetch_predecessors=fetch_predecessors,
            **fields,
        )

    def _later(self, what: str) -> Fetch:
        """A function that copies a buffer to the host while it still holds this run's answer."""
        run = self._runs

        def fetch() -> npt.NDArray[np.int32]:
            if self._workspace is None or self._runs != run:
                raise DeviceError(
                    f"the {what} of this search are gone: the session has "
                    f"{'been closed' if self._workspace is None else 'searched again'} since; "
                    "look at them before"
                )
            array: npt.NDArray[np.int32] = self._workspace[what].to_host()
            return array

        return self._mapped_back(what, fetch)

    def _mapped_back(self, what: str, fetch: Fetch) -> Fetch:
        """``fetch`` itself, or where the order is another with its answer in the caller's ids."""
        if self._relabelling is None:
            return fetch
        back = getattr(self._relabelling, what)
        return lambda: back(fetch())

    def _read_trace(self, levels: int) -> list[LevelTrace]:
        assert self._workspace is not None
        records = self._workspace["trace"].to_host(levels)
        self._complete(records)
        timed = self.device is not None and self.device.info.kind == "cuda"
        first = int(records["begin_nanoseconds"][0])
        return [
            LevelTrace(
                level=level,
                frontier=int(record["frontier_size"]),
                edges=int(record["edges"]),
                mapping=self._mapping(record),
                direction="pull" if record["pulled"] else "push",
                begin_ns=int(record["begin_nanoseconds"]) - first if timed else None,
                ns=_duration(record) if timed else None,
            )
            for level, record in enumerate(records)
        ]

    def _complete(self, records: npt.NDArray[Any]) -> None:
        """Fill in what a tier leaves out of its levels' records, to be short about them."""
        assert self._workspace is not None
        buffer = self._workspace["trace"]
        own = unpack_levels(records)
        runs = runs_of(own)
        if runs:
            # The last run's clocks come first of those at the end of the buffer.
            clocks = buffer.to_host(len(runs), start=buffer.count - len(runs))
            set_times(records, runs, clocks.view(layout.RUN_CLOCKS)[::-1])
        if self.config.program.tiers:  # one grid ran all levels that no tier did
            join_levels(records, own)
        if (records["frontier_size"] == layout.FRONTIERS_SIZE).any():
            distances = self._later("distances")()
            count_frontiers(records, own, distances, self.graph.degrees)

    def _mapping(self, record: Any) -> str:
        """The mapping a level was expanded with; a pull is always a thread a vertex."""
        if record["pulled"]:
            return "thread"
        return layout.MAPPINGS[record["mapping"]] or self.config.advance

    def _run_reference(self, source: int, start: int, max_depth: int) -> BFSResult:
        started = time.perf_counter()
        found = bfs_reference(self._searched, start, max_depth)
        wall_ms = (time.perf_counter() - started) * 1e3
        sizes = found.frontier_sizes
        trace = None
        if self.config.trace:
            degrees = self._searched.degrees.astype(np.int64)
            reached = found.distances >= 0
            expanded = reached & (found.distances < max_depth)
            edges = np.bincount(
                found.distances[reached], weights=degrees[reached] * expanded[reached]
            )
            trace = [
                LevelTrace(level, int(size), int(edges[level]), "numpy", "push", None, None)
                for level, size in enumerate(sizes)
            ]
        return self._result(
            source,
            depth=len(sizes) - 1,
            enqueued=int(sizes.sum()),
            counters=Counters(),
            trace=trace,
            device_ms=None,
            wall_ms=wall_ms,
            fetch_distances=self._mapped_back("distances", lambda: found.distances),
            fetch_predecessors=self._mapped_back("predecessors", lambda: found.predecessors)
            if self.config.predecessors
            else None,
        )

    def close(self) -> None:
        """Give back memory, graphs and, if this session opened it, the device. Harmless twice."""
        if self._closed:
            return
        self._closed = True
        if self.device is None:
            return
        with self.device.current():
            if self._engine is not None:
                self._engine.close()
            if self._workspace is not None:
                self._workspace.free()
        self._engine = self._workspace = None
        if self._owns_device:
            self.device.close()

    def __enter__(self) -> BFS:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _check_order(graph: Graph, reorder: str | Reordering | None) -> str:
    """The name of an order that ``graph`` can be searched in."""
    if isinstance(reorder, Reordering):
        if reorder.original is not graph:
            raise ValueError(f"this reordering is of another graph, {reorder.original!r}")
        return reorder.name
    name: str = choose(ORDERS, NO_ORDER if reorder is None else reorder, "order").name
    return name


def _check_time_limit(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not seconds > 0:
        raise ValueError(f"time_limit is {seconds!r}; it must be a number of seconds above 0")
    return float(seconds)


def _check_depth(max_depth: int | None) -> int:
    if max_depth is None:
        return layout.NO_DEPTH_LIMIT
    if isinstance(max_depth, bool):
        raise TypeError("max_depth is a bool; it must be an integer of at least 0")
    try:
        limit = operator.index(max_depth)
    except TypeError:
        raise TypeError(
            f"max_depth is {max_depth!r}; it must be an integer of at least 0"
        ) from None
    if limit < 0:
        raise ValueError(f"max_depth is {limit}; it must be at least 0")
    return min(limit, layout.NO_DEPTH_LIMIT)


def _duration(record: Any) -> int | None:
    """Nanoseconds of a level; None for one at the depth limit, which was never expanded."""
    begin, end = int(record["begin_nanoseconds"]), int(record["end_nanoseconds"])
    return end - begin if end else None


def bfs(
    graph: Graph,
    source: int,
    *,
    engine: str = "auto",
    advance: str = "auto",
    device: str | Device = "auto",
    max_depth: int | None = None,
    predecessors: bool = False,
) -> BFSResult:
    """Search ``graph`` from ``source`` once.

    Parameters and errors are those of `BFS` and `BFS.run`; for many searches of one graph, a
    `BFS` session uploads and compiles only once.

    Returns
    -------
    BFSResult
        With ``distances`` (n,) int32, -1 where unreachable, already on the host.

    Examples
    --------
    >>> from persistent_bfs import bfs, read_graph
    >>> result = bfs(read_graph("star:4"), 0, device="reference")
    >>> result.distances.tolist(), result.levels, result.reached
    ([0, 1, 1, 1], 2, 4)
    """
    graph.check_source(source)
    with BFS(
        graph, engine=engine, advance=advance, device=device, predecessors=predecessors
    ) as search:
        result = search.run(source, max_depth=max_depth)
        _ = result.distances
        if predecessors:
            _ = result.predecessors
    return result

"""The search: a session that prepares once and runs many times, and one call for one search."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from persistent_bfs import layout
from persistent_bfs.answer import Answer, MapBack, Vertices
from persistent_bfs.arguments import (
    check_choice,
    check_flag,
    check_integer,
    check_seconds,
    shown,
)
from persistent_bfs.config import ENGINES, ORDERS, Config
from persistent_bfs.device import DeviceChoice, check_device, open_device
from persistent_bfs.device.base import Buffer, Device, DeviceMemoryError, LaunchTooLarge, Stream
from persistent_bfs.graph import Graph
from persistent_bfs.options import DeviceName, EngineName, Options, OrderName
from persistent_bfs.plan import Plan, configure, plans, suitable_levels
from persistent_bfs.reference import bfs_reference
from persistent_bfs.reorder import Relabelling, Reordering
from persistent_bfs.reorder import reorder as reordered
from persistent_bfs.resident import Found, ResidentSearch
from persistent_bfs.result import BFSResult, Counters, LevelTrace
from persistent_bfs.trace import Records, count_frontiers, join_levels

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from persistent_bfs.options import Choices


class BFS:
    """A breadth-first search session: upload, allocate and compile once, run many times.

    Any thread may search; a session runs one search at a time, and a second thread waits. A session
    that is dropped without `close` is closed when Python collects it, or ends.

    Parameters
    ----------
    graph : Graph, or what `Graph.of` takes
        Also a NetworkX graph, a SciPy matrix, a pair ``(row_offsets, col_indices)``, or a path.
    engine : str
        Who runs the level loop: a name from `persistent_bfs.config.ENGINES`, or ``auto``.
    device : str or Device
        ``auto``, ``cuda``, ``cuda:N``, ``emulated``, ``reference``; or a device already open.
        A GPU is opened once a process, and kept.
    predecessors : bool
        Whether results have predecessors.
    trace : bool
        Whether results have a level trace.
    reorder : str or Reordering, optional
        The order in which vertices are searched: a name from ``ORDERS``, or what
        `persistent_bfs.reorder.reorder` made of ``graph``, for several sessions to share. By
        default, and for ``none``, the graph's own. Sources, distances and predecessors are the
        caller's ids all the same: the host maps answers back when they are first looked at, by one
        NumPy gather (predecessors: two). Preparing costs ``reorder_ms``.
    time_limit : float, optional
        Seconds after which a search is stopped; by default, and for infinity, it may take as long
        as it takes.
    options : Options, optional
        How the search runs, for those who compare: mapping, direction, claim, append, frontier,
        tiers, shapes, and the emulated device's schedule.
    **choices
        Fields of `Options`, as keywords; they go before those of ``options``.

    Attributes
    ----------
    graph : Graph
        The caller's, whatever the order.
    device : Device or None
        The device that runs kernels; None where NumPy and SciPy search.
    config : Config
        What the kernels are compiled as.
    reason : str
        Why device, engine, direction and tier are what they are.
    reorder : str
        The name of the order.
    reorder_ms : float
        Milliseconds by the host's clock that reordering took, 0 for ``none``; in no other time.

    Raises
    ------
    TypeError
        An argument of a wrong type; the message names it.
    ValueError
        A name that is in no table, a graph without vertices, or a reordering of another graph.
    DeviceUnavailable
        The device cannot be used here.
    DeviceMemoryError
        The graph does not fit; says how many bytes are needed and free.
    DeviceLost
        This process has lost its context on the device.
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
        graph: Any,
        *,
        engine: EngineName = "auto",
        device: DeviceName | str | Device = "auto",
        predecessors: bool = False,
        trace: bool = False,
        reorder: OrderName | Reordering | None = None,
        time_limit: float | None = None,
        options: Options | None = None,
        **choices: Unpack[Choices],
    ) -> None:
        # All that can be wrong with the arguments is found before a device is opened, and what can
        # be seen at once before a graph is read.
        wishes = _check_arguments(
            *(engine, device, predecessors, trace, reorder, time_limit, options, choices),
            keywords=BFS.__init__.__kwdefaults__ or (),
        )
        self._options = wishes
        self.time_limit = time_limit
        self.graph = graph = Graph.of(graph)
        self.reorder = _order_of(graph, reorder)
        self.reorder_ms = 0.0
        self._relabelling: Relabelling | None = None
        self._closed = False
        self._resident: ResidentSearch | None = None
        self._plans: Iterator[Plan] = iter(())
        self._wanted = configure(
            graph,
            engine=engine,
            advance=wishes.advance,
            direction=wishes.direction or "push",
            claim=wishes.claim,
            append=wishes.append,
            frontier=wishes.frontier or "sparse",
            predecessors=bool(predecessors),
            trace=bool(trace),
            block_threads=wishes.block_threads,
            block_queue=wishes.block_queue,
            tiers=wishes.tiers,
        )
        self._owns_device = not isinstance(device, Device)
        if isinstance(device, Device):
            self._choice = DeviceChoice(device.info.kind, device, "given")
        else:
            self._choice = open_device(device, schedule=wishes.schedule, seed=wishes.seed)
        self.device = self._choice.device
        self._reasons = [f"{self._choice.kind} device: {self._choice.reason}"]
        self.config: Config = self._wanted
        try:
            if self.device is not None:
                self.device.reap()
                self._plans = plans(graph, engine, wishes, self._wanted, self.device)
                self._prepare_next(self.device, self._take_order(reorder))
            else:
                self._searched = self._take_order(reorder)
        except BaseException:
            self.close()
            raise

    @property
    def time_limit(self) -> float | None:
        """Seconds after which a search is stopped; None for no limit."""
        return self._time_limit

    @time_limit.setter
    def time_limit(self, seconds: float | None) -> None:
        self._time_limit = check_seconds("time_limit", seconds)

    @property
    def reason(self) -> str:
        """Why device, engine, direction and tier are what they are."""
        return "; ".join(self._reasons)

    def _take_order(self, reorder: str | Reordering | None) -> Graph:
        """The graph that is searched: the caller's, or that in another order."""
        if not isinstance(reorder, Reordering):
            reorder = reordered(self.graph, self.reorder)
        if reorder is None:
            return self.graph
        self._relabelling, self.reorder_ms = reorder.relabelling, reorder.milliseconds
        return reorder.graph

    def _prepare_next(
        self, device: Device, searched: Graph, refused: Exception | None = None
    ) -> None:
        """Prepare to search a graph by the first plan that the device does not refuse.

        Raises
        ------
        LaunchTooLarge, DeviceMemoryError
            It refuses them all; what it said of the first.
        """
        first = refused
        for plan in self._plans:
            why = [] if refused is None else [f"the {device.info.kind} device refused: {refused}"]
            try:
                self._prepare(device, searched, plan)
            except (LaunchTooLarge, DeviceMemoryError) as error:
                refused = error
                first = first or error
                continue
            self._reasons += [*plan.reasons, *why]
            return
        assert first is not None
        raise first

    def _prepare(self, device: Device, searched: Graph, plan: Plan) -> None:
        options, config = self._options, plan.config
        levels = options.levels_per_launch or suitable_levels(config.engine, self.graph)
        map_back: MapBack | None = None
        if self._relabelling is not None:
            map_back = partial(_map_back, self._relabelling)
        self._resident = ResidentSearch(
            device, searched, config, replace(options, levels_per_launch=levels), map_back
        )
        self.config = config
        owned = device if self._owns_device else None
        self._finalizer = weakref.finalize(self, _close, self._resident, owned)

    @property
    def stream(self) -> Stream | None:
        """The stream that searches run on; None where NumPy and SciPy search."""
        return None if self._resident is None else self._resident.stream

    @property
    def buffers(self) -> Mapping[str, Buffer]:
        """Its memory on the device, by name; empty where NumPy and SciPy search."""
        return {} if self._resident is None else self._resident.workspace.buffers

    @property
    def shape(self) -> str:
        """The launch geometry, in words; empty where each launch has its own."""
        return "" if self._resident is None else str(getattr(self._resident.engine, "shape", ""))

    @property
    def levels_per_launch(self) -> int:
        """Levels issued before anyone looks whether there are more; 1 for one that always knows."""
        return 1 if self._resident is None else self._resident.engine.levels_per_launch

    def run(self, source: Any, *, max_depth: int | None = None) -> BFSResult:
        """Search from ``source``.

        Parameters
        ----------
        source : int, or what the graph calls a vertex
            A vertex id, any integer type; a label, where the graph has labels; where it has nodes
            (as one that was made of a NetworkX graph may have), one of them.
        max_depth : int, optional
            The largest distance to look for; vertices farther away stay at -1.

        Returns
        -------
        BFSResult
            With ``distances`` (n,) int32, -1 where unreachable; it stays readable whatever the
            session does next.

        Raises
        ------
        TypeError, ValueError
            ``source`` or ``max_depth`` is not an integer in range; nothing was launched.
        SearchTimeout
            The session's time limit was reached; the session stays usable.
        DeviceBusy
            It was reached, and the search did not end when it was told to, since another kernel
            keeps it from the device; the session is of no use any more.
        DeviceError
            The device failed.
        """
        source = _vertex(self.graph, source)
        return self._run(source, max_depth)

    def _run(self, source: int, max_depth: int | None) -> BFSResult:
        limit = _check_depth(max_depth)
        if self._closed:
            raise ValueError("this session is closed")
        start = source if self._relabelling is None else self._relabelling.source(source)
        resident, device = self._resident, self.device
        if resident is None or device is None:
            return self._run_reference(source, start, limit)
        while True:
            try:
                found = resident.run(start, limit, self.time_limit)
                break
            except LaunchTooLarge as refused:
                # What occupancy promises is not always given: under MPS, for one.
                with resident.lock:
                    if self._resident is resident:
                        self._finalizer()
                        searched = self.graph
                        if self._relabelling is not None:
                            searched = searched.permuted(self._relabelling.order)
                        self._prepare_next(device, searched, refused)
                    resident = cast(ResidentSearch, self._resident)
        return self._result_of(source, found, resident.config)

    def _result_of(self, source: int, found: Found, config: Config) -> BFSResult:
        outcome, answer = found.outcome, found.answer
        trace = None
        if found.records is not None:
            trace = self._trace_of(found.records, answer, config)
        # The counter that grew by each claim; a claim that lets several win tells too many.
        reached = outcome.enqueued
        if not config.exact:
            reached = int(np.count_nonzero(answer["distances"] >= 0))
        return self._result(
            source,
            config,
            reached=reached,
            depth=outcome.depth,
            enqueued=outcome.enqueued,
            counters=Counters(found.launches, found.host_syncs, outcome.barriers, found.counts),
            trace=trace,
            device_ms=found.device_ms,
            wall_ms=None if found.device_ms is None else found.wall_ms,
            answer=answer,
        )

    def _result(self, source: int, config: Config, **fields: Any) -> BFSResult:
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
            **fields,
        )

    def _trace_of(self, records: Records, answer: Answer, config: Config) -> list[LevelTrace]:
        levels, own = records
        if config.program.tiers:  # one grid ran all levels that no tier did
            join_levels(levels, own)
        if (levels["frontier_size"] == layout.FRONTIERS_SIZE).any():
            count_frontiers(levels, own, answer["distances"], self.graph.degrees)
        timed = self.device is not None and self.device.info.kind == "cuda"
        first = int(levels["begin_nanoseconds"][0])
        return [
            LevelTrace(
                level=level,
                frontier=int(record["frontier_size"]),
                edges=int(record["edges"]),
                mapping=_mapping(record, config),
                direction="pull" if record["pulled"] else "push",
                begin_ns=int(record["begin_nanoseconds"]) - first if timed else None,
                ns=_duration(record) if timed else None,
            )
            for level, record in enumerate(levels)
        ]

    def _run_reference(self, source: int, start: int, max_depth: int) -> BFSResult:
        started = time.perf_counter()
        found = bfs_reference(self._searched, start, max_depth, time_limit=self.time_limit)
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
        arrays = {"distances": found.distances}
        if self.config.predecessors:
            arrays["predecessors"] = found.predecessors
        if self._relabelling is not None:
            arrays = {
                name: _map_back(self._relabelling, name, array) for name, array in arrays.items()
            }
        return self._result(
            source,
            self.config,
            reached=int(sizes.sum()),
            depth=len(sizes) - 1,
            enqueued=int(sizes.sum()),
            counters=Counters(),
            trace=trace,
            device_ms=None,
            wall_ms=wall_ms,
            answer=Answer(arrays),
        )

    def close(self) -> None:
        """Give back all that this session has on the device. Harmless twice, and never raises.

        Results keep their answers: what lies on the device alone is copied first.
        """
        self._closed = True
        if self._resident is not None:
            self._finalizer.detach()
            _close(self._resident, self.device if self._owns_device else None)
        elif self.device is not None and self._owns_device:
            self.device.close()

    def __enter__(self) -> BFS:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _map_back(relabelling: Relabelling, name: str, found: Vertices) -> Vertices:
    return cast(Vertices, getattr(relabelling, name)(found))


def _close(resident: ResidentSearch, owned: Device | None) -> None:
    resident.close()
    if owned is not None:
        owned.close()


def _check_arguments(
    engine: object,
    device: object,
    predecessors: object,
    trace: object,
    reorder: object,
    time_limit: object,
    options: Options | None,
    choices: Mapping[str, Any],
    keywords: Iterable[str],
) -> Options:
    """All that is asked of a session but its graph, as far as it can be wrong without one."""
    wishes = Options.of(options, choices, keywords)
    check_choice("engine", engine, ("auto", *ENGINES))
    if not isinstance(device, Device):
        check_device(device)
    check_flag("predecessors", predecessors)
    check_flag("trace", trace)
    if reorder is not None and not isinstance(reorder, Reordering):
        if not isinstance(reorder, str):
            raise TypeError(f"reorder is {shown(reorder)}; it must be a str or a Reordering")
        check_choice("order", reorder, ORDERS)
    check_seconds("time_limit", time_limit)
    return wishes


def _order_of(graph: Graph, reorder: str | Reordering | None) -> str:
    """The name of an order that ``graph`` can be searched in; None stands for the graph's own."""
    if isinstance(reorder, Reordering):
        if reorder.original is not graph:
            raise ValueError(f"reorder: this reordering is of another graph, {reorder.original!r}")
        return reorder.name
    return reorder or "none"


def _vertex(graph: Graph, source: Any) -> int:
    if graph.nodes is None and not (graph.labels is not None and isinstance(source, str)):
        return graph.check_source(source)
    try:
        return graph.vertex_of(source)
    except (TypeError, ValueError) as error:
        raise type(error)(f"source: {error}") from None


def _check_depth(max_depth: Any) -> int:
    if max_depth is None:
        return layout.NO_DEPTH_LIMIT
    return min(check_integer("max_depth", max_depth, 0), layout.NO_DEPTH_LIMIT)


def _duration(record: Any) -> int | None:
    """Nanoseconds of a level; None for one at the depth limit, which was never expanded."""
    begin, end = int(record["begin_nanoseconds"]), int(record["end_nanoseconds"])
    return end - begin if end else None


def _mapping(record: Any, config: Config) -> str:
    """The mapping a level was expanded with; a pull is always a thread a vertex."""
    if record["pulled"]:
        return "thread"
    return layout.MAPPINGS[record["mapping"]] or config.advance


def bfs(
    graph: Any,
    source: Any,
    *,
    engine: EngineName = "auto",
    device: DeviceName | str | Device = "auto",
    max_depth: int | None = None,
    predecessors: bool = False,
    time_limit: float | None = None,
    options: Options | None = None,
    **choices: Unpack[Choices],
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
    for name in ("trace", "reorder"):
        if name in choices:
            raise TypeError(f"{name} is an argument of BFS, not of bfs")
    _check_arguments(
        *(engine, device, predecessors, False, None, time_limit, options, choices),
        keywords=bfs.__kwdefaults__ or (),
    )
    _check_depth(max_depth)
    graph = Graph.of(graph)
    source = _vertex(graph, source)
    with BFS(
        graph,
        engine=engine,
        device=device,
        predecessors=predecessors,
        time_limit=time_limit,
        options=options,
        **choices,
    ) as search:
        return search._run(source, max_depth)

"""The oracle: breadth-first search on the host, and the checks that every answer must pass.

:func:`verify` is the one checker used by tests, command line and benchmarks, and needs no search:
distances are proved exact from the graph itself (:func:`prove_distances`), predecessors pass the
five checks of the Graph500 benchmark (any valid tree is right, so they are never compared), and
frontier sizes add up, because a vertex enqueued twice leaves the distances right.

Two searches that share nothing answer by themselves: :func:`bfs_reference`, level-synchronous and
vectorised in NumPy, which leaves deep graphs to SciPy's compiled queue, and :func:`bfs_serial`, the
FIFO queue of the textbooks.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from persistent_bfs.graph import Graph, Int32Array, IntArray
from persistent_bfs.queue_order import (
    distances_of_levels,
    is_searchable,
    level_begins,
    search_order,
)
from persistent_bfs.rows import ArcPart, by_arcs

__all__ = [
    "LaneSlots",
    "LevelRow",
    "LevelTotals",
    "ReferenceSearch",
    "SerialSearch",
    "WrongAnswer",
    "bfs_reference",
    "bfs_serial",
    "check_distances",
    "check_enqueued",
    "check_frontiers",
    "check_predecessors",
    "lane_slots",
    "level_table",
    "level_totals",
    "prove_distances",
    "verify",
]

WARP = 32
ARCS_AT_ONCE = 1 << 23
"""Arcs of one level expanded together: bounds the scratch memory to a few hundred MB."""

LEVEL_IN_ITEMS = 4096
"""Vertices and arcs that a compiled search is through with while NumPy runs a level of next to none
(40 us against 10 ns each, measured on one core of an x86 server)."""

FEWEST_NARROW_LEVELS = 64
"""Of a graph however small: a few milliseconds, in which NumPy's own search answers for most."""

QUICKEST_NS = 3
"""Nanoseconds per vertex and arc that no compiled search beats."""

ARCS_CHECKED = 1 << 18
"""Arcs checked together by one thread: what it works on stays in its cache."""


class WrongAnswer(AssertionError):
    """An answer that is not a breadth-first search of the graph; the message names where."""


class ReferenceSearch(NamedTuple):
    """What :func:`bfs_reference` returns."""

    distances: Int32Array
    """(n,) levels from the source, -1 where unreachable."""
    predecessors: Int32Array
    """(n,) a vertex one level nearer, -1 for the source and where unreachable."""
    frontier_sizes: npt.NDArray[np.int64]
    """(levels,) vertices at each distance."""


class SerialSearch(NamedTuple):
    """What :func:`bfs_serial` returns."""

    distances: Int32Array
    """(n,) levels from the source, -1 where unreachable."""
    predecessors: Int32Array
    """(n,) the vertex that discovered each, -1 for the source and where unreachable."""
    order: Int32Array
    """(reached,) vertices in the order in which the queue gave them out."""


def bfs_reference(
    graph: Graph,
    source: int,
    max_depth: int | None = None,
    *,
    time_limit: float | None = None,
) -> ReferenceSearch:
    """Search on the host, in O(n + m): level by level with NumPy, in one go where that is deep.

    A level costs about ten array operations, however narrow it is. Once narrow levels have cost as
    much as SciPy's compiled search of the whole graph would, that search starts over in their
    place: so the time is at most about twice that of the better of the two, whatever the graph.

    Parameters
    ----------
    graph : Graph
        The graph.
    source : int
        The vertex to start from.
    max_depth : int, optional
        The last distance to assign; vertices farther away count as unreached.
    time_limit : float, optional
        Seconds after which to give up; by default it may take as long as it takes.

    Returns
    -------
    ReferenceSearch
        Distances and predecessors (int32), and the size of every frontier.

    Raises
    ------
    TypeError, ValueError
        If ``source`` is no vertex of the graph, ``max_depth`` is negative, or ``time_limit`` is
        not above 0.
    SearchTimeout
        The time was up. It is looked at between levels, and in a wide level between parts of about
        `ARCS_AT_ONCE` arcs (a longer row is one), half a second of one core each. Nothing stops the
        compiled search, an interrupt neither: so it is not begun where less time is left than it
        takes at best, `QUICKEST_NS` per vertex and arc; one that takes longer, up to 30 ns, ends as
        much too late.
    """
    source = graph.check_source(source)
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth cannot be negative, got {max_depth}")
    allowed = _Allowance(time_limit)
    row_starts, degrees, col_indices = graph.row_offsets, graph.degrees, graph.col_indices
    distances = np.full(graph.vertices, -1, np.int32)
    predecessors = np.full(graph.vertices, -1, np.int32)
    winner = np.empty(graph.vertices, np.int64)
    distances[source] = 0
    frontier = np.array([source], np.int32)
    sizes = [1]
    depth = narrow = 0
    items = graph.vertices + graph.arcs
    patience = max(items // LEVEL_IN_ITEMS, FEWEST_NARROW_LEVELS)
    while depth != max_depth:
        allowed.check(depth)
        if narrow > patience and is_searchable(graph) and allowed.has(items * QUICKEST_NS * 1e-9):
            return _search_in_one_go(graph, source, max_depth, allowed)
        depth += 1
        discovered = []
        arcs_here = int(degrees[frontier].sum(dtype=np.int64))
        narrow += arcs_here < LEVEL_IN_ITEMS
        parts = min(frontier.size, -(-arcs_here // ARCS_AT_ONCE))
        for part in np.array_split(frontier, parts) if parts > 1 else [frontier]:
            if parts > 1:
                allowed.check(depth - 1)
            counts = degrees[part]
            ends = counts.cumsum(dtype=np.int64)
            # Arc k of the part lies k - (where its row begins here) past its row's start.
            arcs = np.repeat(row_starts[part] - ends + counts, counts) + np.arange(ends[-1])
            neighbours = col_indices[arcs]
            fresh = np.flatnonzero(distances[neighbours] < 0)
            if not fresh.size:
                continue
            neighbours = neighbours[fresh]
            # Several arcs may lead to one vertex: the last to write is its discoverer.
            claims = np.arange(fresh.size)
            winner[neighbours] = claims
            won = winner[neighbours] == claims
            neighbours = neighbours[won]
            distances[neighbours] = depth
            predecessors[neighbours] = part[ends.searchsorted(fresh[won], side="right")]
            discovered.append(neighbours)
        if not discovered:
            break
        frontier = discovered[0] if len(discovered) == 1 else np.concatenate(discovered)
        sizes.append(frontier.size)
    return ReferenceSearch(distances, predecessors, np.array(sizes, np.int64))


def _search_in_one_go(
    graph: Graph, source: int, max_depth: int | None, allowed: _Allowance
) -> ReferenceSearch:
    order, predecessors = search_order(graph, source)
    allowed.check()
    begins = level_begins(order, predecessors)
    allowed.check()
    if max_depth is not None and max_depth + 2 < begins.size:
        begins = begins[: max_depth + 2]
        predecessors[order[begins[-1] :]] = -1
    distances = distances_of_levels(graph.vertices, order, begins)
    return ReferenceSearch(distances, predecessors, np.diff(begins))


class _Allowance:
    """What is left of the seconds that a search on the host may take."""

    def __init__(self, seconds: float | None) -> None:
        if seconds is not None and not seconds > 0:
            raise ValueError(f"time_limit is {seconds!r}; it must be a number of seconds above 0")
        self.seconds = math.inf if seconds is None else seconds
        self._end = time.monotonic() + self.seconds

    def has(self, seconds: float) -> bool:
        """Whether so many seconds are left."""
        return time.monotonic() + seconds <= self._end

    def check(self, level: int | None = None) -> None:
        """Raise SearchTimeout if none are, at ``level``, or in the compiled search."""
        if self.has(0):
            return
        from persistent_bfs.device.base import SearchTimeout

        where = "after a compiled search" if level is None else f"at level {level:,}"
        raise SearchTimeout(
            f"reference: stopped {where}, after the time limit of {self.seconds:g} s"
        )


def bfs_serial(graph: Graph, source: int) -> SerialSearch:
    """Search with one FIFO queue, neighbours in stored order.

    Returns
    -------
    SerialSearch
        Distances, predecessors and the dequeue order, all int32.

    Raises
    ------
    TypeError, ValueError
        If ``source`` is no vertex of the graph.
    """
    source = graph.check_source(source)
    row_offsets, col_indices = graph.row_offsets.tolist(), graph.col_indices.tolist()
    distances = [-1] * graph.vertices
    predecessors = [-1] * graph.vertices
    distances[source] = 0
    order = []
    queue = deque([source])
    while queue:
        vertex = queue.popleft()
        order.append(vertex)
        for neighbour in col_indices[row_offsets[vertex] : row_offsets[vertex + 1]]:
            if distances[neighbour] < 0:
                distances[neighbour] = distances[vertex] + 1
                predecessors[neighbour] = vertex
                queue.append(neighbour)
    return SerialSearch(*(np.array(x, np.int32) for x in (distances, predecessors, order)))


def _named(graph: Graph, vertex: int) -> str:
    label = "" if graph.labels is None else f" ({graph.label_of(vertex)!r})"
    return f"vertex {vertex}{label}"


def _first(mask: npt.NDArray[np.bool_]) -> int | None:
    return int(mask.argmax()) if mask.any() else None


def _per_vertex(graph: Graph, what: str, values: Any) -> IntArray:
    array = np.asarray(values)
    if array.shape != (graph.vertices,) or array.dtype.kind not in "iu":
        raise WrongAnswer(
            f"{what}: {graph.vertices} integers expected, got shape {array.shape} of {array.dtype}"
        )
    return array


def check_distances(
    graph: Graph,
    source: int,
    distances: npt.ArrayLike,
    max_depth: int | None = None,
    *,
    expected: npt.ArrayLike | None = None,
) -> None:
    """Compare every distance with the reference's.

    Parameters
    ----------
    graph, source, max_depth
        The search.
    distances : (n,) integer array-like
        The answer, -1 where unreachable.
    expected : (n,) integer array-like, optional
        The reference's distances, if the caller has them already.

    Raises
    ------
    WrongAnswer
        Naming the first vertex that differs, by id, label and both values.
    """
    got = _per_vertex(graph, "distances", distances)
    if expected is None:
        expected = bfs_reference(graph, source, max_depth).distances
    right = _per_vertex(graph, "expected distances", expected)
    vertex = _first(got != right)
    if vertex is not None:
        raise WrongAnswer(
            f"{_named(graph, vertex)}: distance {got[vertex]}, expected {right[vertex]} "
            f"({np.count_nonzero(got != right):,} of {graph.vertices:,} vertices differ)"
        )


def prove_distances(
    graph: Graph, source: int, distances: npt.ArrayLike, max_depth: int | None = None
) -> None:
    """Show without a search that every distance is right: the way for large graphs.

    The checks of the Graph500 benchmark's validator, of distances alone and all of them exact:

    1. The source, and nothing else, has distance 0.
    2. An arc leads to a vertex at most one level farther, and to none that is unreached (but from
       ``max_depth``).
    3. To every other reached vertex an arc leads from one a level nearer.

    By 3, from any reached vertex one can go back a level at a time, by 1 to the source: no distance
    is too small. Along a shortest path to a vertex, each step raises the distance by one at most,
    and never leaves what is reached, by 2: none is too large, and none is missing.

    One gather and one comparison per arc, in bytes where the distances fit them, on all cores, and
    memory for a few numbers per vertex; no arc needs its opposite, so nothing is transposed.

    Parameters
    ----------
    graph, source, max_depth
        The search.
    distances : (n,) integer array-like
        The answer, -1 where unreachable.

    Raises
    ------
    WrongAnswer
        Naming the first vertex that fails.
    """
    source = graph.check_source(source)
    distance = _per_vertex(graph, "distances", distances)
    if distance[source] != 0:
        raise WrongAnswer(f"source {_named(graph, source)}: distance {distance[source]}, not 0")
    if np.count_nonzero(distance == 0) > 1:
        vertex = next(v for v in np.flatnonzero(distance == 0).tolist() if v != source)
        raise WrongAnswer(f"{_named(graph, vertex)}: distance 0, but it is not the source")
    largest = graph.vertices - 1 if max_depth is None else min(max_depth, graph.vertices - 1)
    if distance.min() < -1 or distance.max() > largest:
        vertex = int(((distance < -1) | (distance > largest)).argmax())
        raise WrongAnswer(
            f"{_named(graph, vertex)}: distance {distance[vertex]}, none of -1 to {largest}"
        )
    # Unreached is the largest number, and so farther than all that is reached and one more.
    beyond = int(distance.max()) + 1
    kind = next(kind for kind in (np.uint8, np.uint16, np.uint32) if beyond < np.iinfo(kind).max)
    unreached = np.iinfo(kind).max
    far = distance.astype(kind)  # -1 becomes it
    # How far an arc from a vertex may lead: anywhere, where it was not followed.
    most = far + (far != unreached)
    if max_depth is not None:
        most[far == max_depth] = unreached
    has_parent = np.zeros(graph.vertices, np.bool_)
    has_parent[source] = True

    def first_fault(part: ArcPart) -> int | None:
        targets = graph.col_indices[part.arcs]
        reach, allowed = far.take(targets), part.spread(most)
        # Several threads may write one entry, but all of them the same.
        has_parent[targets.compress(reach == allowed)] = True
        too_far = reach > allowed
        return int(targets[too_far].min()) if too_far.any() else None

    found = by_arcs(graph.row_offsets, first_fault, ARCS_CHECKED)
    faults = [vertex for vertex in found if vertex is not None]
    orphan = _first(~has_parent & (far != unreached))
    if orphan is not None:
        faults.append(orphan)
    if faults:
        vertex = min(faults)
        nearest = _nearest_neighbour(graph, vertex, far)
        raise WrongAnswer(
            f"{_named(graph, vertex)}: distance {distance[vertex]}, but "
            + (
                "no neighbour of it is reached"
                if nearest in (None, unreached)
                else f"its nearest neighbour has {nearest}"
            )
        )


def _nearest_neighbour(graph: Graph, vertex: int, far: npt.NDArray[Any]) -> int | None:
    """The smallest of ``far`` among the vertices with an arc to ``vertex``; None if there are none.

    A pass over all arcs.
    """

    def nearest(part: ArcPart) -> int | None:
        leads_there = graph.col_indices[part.arcs] == vertex
        return int(part.spread(far)[leads_there].min()) if leads_there.any() else None

    found = by_arcs(graph.row_offsets, nearest, ARCS_CHECKED)
    return min((number for number in found if number is not None), default=None)


def check_predecessors(
    graph: Graph,
    source: int,
    distances: npt.ArrayLike,
    predecessors: npt.ArrayLike,
    max_depth: int | None = None,
) -> None:
    """Check a search tree without knowing the right answer, by the five checks of Graph500.

    1. It is a tree rooted at the source: the source has distance 0 and no predecessor, a reached
       vertex a reached one, an unreached vertex none.
    2. A predecessor is exactly one level nearer (so there is no cycle).
    3. Every tree arc is an arc of the graph.
    4. No arc of the graph leads more than one level further.
    5. The tree covers all that is reachable: no arc leaves it (but from ``max_depth``).

    Checks 4 and 5 look along stored arcs, so an undirected graph is checked both ways.

    Raises
    ------
    WrongAnswer
        Naming the first vertex or arc that fails.
    """
    source = graph.check_source(source)
    distance = _per_vertex(graph, "distances", distances)
    if distance.dtype != np.int32:
        distance = distance.astype(np.int64)
    parent = _per_vertex(graph, "predecessors", predecessors)
    reached = distance >= 0
    child = reached.copy()
    child[source] = False

    def refuse(mask: npt.NDArray[np.bool_], why: str) -> None:
        vertex = _first(mask)
        if vertex is not None:
            raise WrongAnswer(
                f"{_named(graph, vertex)} at distance {distance[vertex]}: "
                f"predecessor {parent[vertex]} {why}"
            )

    if distance[source] != 0:
        raise WrongAnswer(f"source {_named(graph, source)}: distance {distance[source]}, not 0")
    refuse(~child & (parent != -1), "where none may be: the source or an unreached vertex")
    refuse(child & ((parent < 0) | (parent >= graph.vertices)), "is no vertex")
    safe = np.where(child, parent, source)
    refuse(child & ~reached[safe], "is itself unreached")
    refuse(child & (distance[safe] != distance - 1), "is not one level nearer")

    is_arc = np.zeros(graph.vertices, np.bool_)
    open_depth = np.iinfo(distance.dtype).max if max_depth is None else max_depth
    ids = np.arange(graph.vertices, dtype=np.int32)

    def first_faults(part: ArcPart) -> list[tuple[int, str]]:
        targets = graph.col_indices[part.arcs]
        is_arc[targets.compress(parent.take(targets) == part.spread(ids))] = True
        near, far = part.spread(distance), distance.take(targets)
        faults = (
            ((far > near + 1) & (near >= 0), "spans more than one level"),
            ((near >= 0) & (near < open_depth) & (far < 0), "leaves the tree"),
        )
        return [(part.arcs.start + int(mask.argmax()), why) for mask, why in faults if mask.any()]

    found = by_arcs(graph.row_offsets, first_faults, ARCS_CHECKED)
    faults = [fault for some in found for fault in some]
    refuse(child & ~is_arc, "has no arc to it")
    for arc, why in sorted(faults, key=lambda fault: fault[1] == "leaves the tree"):
        u = int(graph.row_offsets.searchsorted(arc, side="right")) - 1
        v = int(graph.col_indices[arc])
        raise WrongAnswer(
            f"arc from {_named(graph, u)} at distance {distance[u]} "
            f"to {_named(graph, v)} at distance {distance[v]} {why}"
        )


def check_frontiers(frontier_sizes: npt.ArrayLike, distances: npt.ArrayLike) -> None:
    """Check that every reached vertex was in exactly one frontier, that of its distance.

    Parameters
    ----------
    frontier_sizes : (levels,) integer array-like
        Vertices expanded at each level.
    distances : (n,) integer array-like
        The answer of the same search.

    Raises
    ------
    WrongAnswer
        If the sizes do not add up to the vertices reached (a vertex entered twice or was lost),
        or one differs from the number of vertices at that distance.
    """
    sizes = np.asarray(frontier_sizes)
    distance = np.asarray(distances)
    check_enqueued(int(sizes.sum()), distance)
    right = np.bincount(distance[distance >= 0])
    if sizes.shape != right.shape:
        raise WrongAnswer(f"{sizes.size} frontiers, but the distances have {right.size} levels")
    level = _first(sizes != right)
    if level is not None:
        raise WrongAnswer(
            f"level {level}: frontier of {sizes[level]}, but {right[level]} vertices lie there"
        )


def check_enqueued(enqueued: int, distances: npt.ArrayLike) -> None:
    """Check that as many vertices entered frontiers as were reached.

    Parameters
    ----------
    enqueued : int
        Sum of the frontier sizes.
    distances : (n,) integer array-like
        The answer of the same search.

    Raises
    ------
    WrongAnswer
        If a vertex entered twice or was lost, which distances alone cannot show.
    """
    reached = int(np.count_nonzero(np.asarray(distances) >= 0))
    if enqueued != reached:
        fault = "entered more than once" if enqueued > reached else "never entered"
        raise WrongAnswer(
            f"frontier sizes add up to {enqueued:,}, but {reached:,} vertices are reached: "
            f"{abs(enqueued - reached):,} {fault}"
        )


def verify(
    graph: Graph,
    source: int,
    distances: npt.ArrayLike,
    predecessors: npt.ArrayLike | None = None,
    frontier_sizes: npt.ArrayLike | None = None,
    max_depth: int | None = None,
    *,
    enqueued: int | None = None,
    expected: npt.ArrayLike | None = None,
) -> None:
    """Check all that a search returned: the one checker of tests, command line and benchmarks.

    Parameters
    ----------
    graph, source, max_depth
        The search.
    distances : (n,) integer array-like
        Its distances.
    predecessors : (n,) integer array-like, optional
        Its predecessors.
    frontier_sizes : (levels,) integer array-like, optional
        Its frontier sizes.
    enqueued : int, optional
        Their sum, where the sizes themselves were not kept.
    expected : (n,) integer array-like, optional
        The right distances, if the caller has them: compared instead of proved.

    Raises
    ------
    WrongAnswer
        From :func:`prove_distances` or :func:`check_distances`, :func:`check_predecessors`,
        :func:`check_frontiers` or :func:`check_enqueued`.
    """
    if expected is None:
        prove_distances(graph, source, distances, max_depth)
    else:
        check_distances(graph, source, distances, max_depth, expected=expected)
    if predecessors is not None:
        check_predecessors(graph, source, distances, predecessors, max_depth)
    if frontier_sizes is not None:
        check_frontiers(frontier_sizes, distances)
    if enqueued is not None:
        check_enqueued(enqueued, distances)


class LaneSlots(NamedTuple):
    """Lanes x steps that one advance occupies under each mapping, idle lanes included."""

    thread: int
    """One lane a vertex: each warp runs for as long as its largest degree, on all 32 lanes."""
    warp: int
    """One warp a vertex: its degree rounded up to 32."""
    edge: int
    """One lane an edge."""

    def useful_share(self) -> dict[str, float]:
        """Return the share of each mapping's slots that carry an edge (1.0 if it issues none)."""
        return {m: self.edge / slots if slots else 1.0 for m, slots in self._asdict().items()}


class LevelRow(NamedTuple):
    """One level of a search."""

    level: int
    frontier: int
    edges: int
    max_degree: int
    busiest: int
    """Vertex of the largest degree; the largest id of several."""
    warps: int
    """Warps that hold the frontier, 32 vertices each."""
    lane_slots: LaneSlots


class LevelTotals(NamedTuple):
    """A whole search: the sums of its levels."""

    levels: int
    frontier: int
    edges: int
    max_degree: int
    warps: int
    lane_slots: LaneSlots


def lane_slots(degrees: npt.ArrayLike) -> LaneSlots:
    """Return the lane slots that a frontier with these degrees, in queue order, issues."""
    degree = np.asarray(degrees, dtype=np.int64)
    if not degree.size:
        return LaneSlots(0, 0, 0)
    longest = np.maximum.reduceat(degree, np.arange(0, degree.size, WARP))
    rounded = -(-degree // WARP) * WARP
    return LaneSlots(WARP * int(longest.sum()), int(rounded.sum()), int(degree.sum()))


def level_table(
    graph: Graph, source: int, distances: npt.ArrayLike | None = None
) -> list[LevelRow]:
    """Describe every level of a search: its frontier, its edges, and what each mapping would issue.

    Parameters
    ----------
    graph, source
        The search.
    distances : (n,) integer array-like, optional
        Its distances, if the caller has them already.

    Returns
    -------
    list of LevelRow
        One row a level. Frontiers are taken in ascending order of id.
    """
    if distances is None:
        distances = bfs_reference(graph, source).distances
    distance = np.asarray(distances)
    order = np.argsort(distance, kind="stable")[np.count_nonzero(distance < 0) :]
    cuts = np.cumsum(np.bincount(distance[order]))[:-1]
    rows = []
    for level, frontier in enumerate(np.split(order, cuts)):
        degree = graph.degrees[frontier]
        last_of_largest = degree.size - 1 - int(degree[::-1].argmax())
        rows.append(
            LevelRow(
                level=level,
                frontier=frontier.size,
                edges=int(degree.sum(dtype=np.int64)),
                max_degree=int(degree[last_of_largest]),
                busiest=int(frontier[last_of_largest]),
                warps=-(-frontier.size // WARP),
                lane_slots=lane_slots(degree),
            )
        )
    return rows


def level_totals(rows: Sequence[LevelRow]) -> LevelTotals:
    """Return the sums of a level table (for ``max_degree`` the largest)."""
    return LevelTotals(
        levels=len(rows),
        frontier=sum(row.frontier for row in rows),
        edges=sum(row.edges for row in rows),
        max_degree=max(row.max_degree for row in rows),
        warps=sum(row.warps for row in rows),
        lane_slots=LaneSlots(*(sum(row.lane_slots[i] for row in rows) for i in range(3))),
    )

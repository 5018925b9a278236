"""Who discovers a vertex first? A search under many schedules of its threads, and one of them told.

The naive claim looks at a vertex's distance and then writes it; two threads that both look before
either writes both discover the vertex. Distances stay right, and the vertex enters the next
frontier twice. How often that happens depends on the schedule, which the emulated device chooses:
each seed is another one, and the same seed is always the same one. A check for data races needs no
luck: it finds accesses that nothing orders in one run, whatever its schedule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from persistent_bfs.config import Config
from persistent_bfs.device.accesses import Access, DataRace, SourceLine
from persistent_bfs.device.base import RepeatedDiscovery
from persistent_bfs.device.emulated import EmulatedDevice
from persistent_bfs.graph import Graph
from persistent_bfs.plan import configure
from persistent_bfs.reference import bfs_reference
from persistent_bfs.session import BFS
from persistent_bfs.tiers import NONE

__all__ = ["Access", "DataRace", "RaceReport", "ScheduleRun", "SourceLine", "explore"]

Vertices = npt.NDArray[np.int32]


@dataclass(frozen=True)
class ScheduleRun:
    """One search under one schedule.

    Parameters
    ----------
    seed : int
        What replays it.
    queue : (enqueued,) int32 array
        The frontiers, one after another, in the order in which vertices were discovered; empty
        if so many were discovered twice that the queue was too small.
    overflowed : bool
        Whether that happened.
    distances_right : bool
        Whether all distances were right; False if the search could not end.
    """

    seed: int
    queue: Vertices
    overflowed: bool
    distances_right: bool

    @property
    def enqueued(self) -> int:
        """The sum of the frontier sizes; more than the vertices reached if any came twice."""
        return self.queue.size

    @property
    def duplicated(self) -> tuple[int, ...]:
        """The vertices that were discovered more than once, as they come in the queue."""
        counts = Counter(self.queue.tolist())
        return tuple(vertex for vertex, count in counts.items() if count > 1)

    @property
    def duplicates(self) -> bool:
        """Whether some vertex was discovered more than once."""
        return self.overflowed or bool(self.duplicated)


@dataclass(frozen=True)
class RaceReport:
    """What `explore` found.

    Parameters
    ----------
    graph : Graph
    source : int
    config : Config
        What was run.
    max_depth : int or None
    distances : (n,) int32 array
        The right ones.
    runs : tuple of ScheduleRun
        One a schedule, seeds from 0.
    races : tuple of DataRace
        What the check for data races found in one run; empty also if it was not asked for.
    vertex : int or None
        The vertex that `interleaving` is about: the first that was discovered twice; if none was,
        the one that most vertices of the level before it lead to; None if none has two such.
    seed : int or None
        The schedule of `interleaving`: the first that discovers a vertex twice, else 0.
    interleaving : tuple of Access
        Every access to the vertex's distance and every write of it into the queue, in the order
        in which they happened, with the values before and after; up to the last write.
    """

    graph: Graph
    source: int
    config: Config
    max_depth: int | None
    distances: Vertices
    runs: tuple[ScheduleRun, ...] = ()
    races: tuple[DataRace, ...] = ()
    vertex: int | None = None
    seed: int | None = None
    interleaving: tuple[Access, ...] = ()

    @property
    def reached(self) -> int:
        """Vertices with a distance: what the frontier sizes must add up to."""
        return int(np.count_nonzero(self.distances >= 0))

    @property
    def duplicating(self) -> tuple[ScheduleRun, ...]:
        """The runs in which some vertex was discovered more than once."""
        return tuple(run for run in self.runs if run.duplicates)

    @property
    def distances_right(self) -> bool:
        """Whether every run's distances were right."""
        return all(run.distances_right for run in self.runs)

    @property
    def sums(self) -> dict[int, int]:
        """How many schedules gave each sum of the frontier sizes, smallest sum first."""
        return dict(sorted(Counter(run.enqueued for run in self.runs).items()))

    def frontiers(self, run: ScheduleRun) -> list[list[int]]:
        """The frontiers of a run, level by level, each in the order of discovery."""
        levels = self.distances[run.queue]
        return [run.queue[levels == level].tolist() for level in range(levels.max(initial=-1) + 1)]

    def run(self, seed: int) -> ScheduleRun:
        """Search once more, under the schedule of one seed."""
        with self._session() as (_, run):
            return run(seed)

    def replay(self, seed: int, vertex: int) -> tuple[Access, ...]:
        """Run one schedule again, and tell of it what `interleaving` tells.

        Raises
        ------
        ValueError
            There is no such vertex.
        """
        vertex = self.graph.check_source(vertex)
        with self._session() as (_, run):
            slots = np.flatnonzero(run(seed).queue == vertex)
        with self._session() as (device, run):
            device.watch("distances", vertex)
            for slot in slots.tolist():
                device.watch("queue", slot)
            run(seed)
            told = [each for each in device.watched if each.writes or each.buffer == "distances"]
        while told and not told[-1].writes:
            told.pop()
        return tuple(told)

    @contextmanager
    def _session(
        self, *, schedule: str = "adversarial", check_races: bool = False
    ) -> Iterator[tuple[EmulatedDevice, Callable[[int], ScheduleRun]]]:
        """A fresh device, and the search on it as a function of the seed."""
        device = EmulatedDevice(schedule=schedule, check_races=check_races)
        config = self.config
        how: dict[str, Any] = {
            name: getattr(config, name)
            for name in (
                "engine",
                "advance",
                "direction",
                "claim",
                "append",
                "frontier",
                "block_threads",
            )
        }
        # Without tiers, whose frontiers are in no queue.
        with device, BFS(self.graph, device=device, tiers=NONE, **how) as search:

            def run(seed: int) -> ScheduleRun:
                device.reseed(seed)
                try:
                    result = search.run(self.source, max_depth=self.max_depth)
                except RepeatedDiscovery:
                    if config.exact:
                        raise
                    return ScheduleRun(seed, np.empty(0, np.int32), True, False)
                queue = device.buffer("queue").to_host(result.enqueued)
                right = np.array_equal(result.distances, self.distances)
                return ScheduleRun(seed, queue, False, right)

            yield device, run


def explore(
    graph: Graph,
    source: int,
    *,
    engine: str = "persistent",
    advance: str = "thread",
    direction: str = "push",
    claim: str = "naive",
    append: str = "warp",
    frontier: str = "sparse",
    schedules: int = 200,
    block_threads: int = 32,
    max_depth: int | None = None,
    check: bool = True,
    progress: Callable[[int], Any] | None = None,
) -> RaceReport:
    """Search under adversarial schedules of the emulated device.

    Parameters
    ----------
    graph : Graph
    source : int
    engine, advance, direction, claim, append, frontier, block_threads, max_depth
        As of `persistent_bfs.session.BFS`. Of tiers there is none: all frontiers are in the queue.
    schedules : int
        How many: seeds 0 to ``schedules`` - 1. Seed 0 is the worst case: each thread waits
        before each of its plain writes until no other can run.
    check : bool
        Whether to look for data races too, in one more run.
    progress : callable, optional
        Called with the number of schedules done, after each.

    Raises
    ------
    ValueError
        ``schedules`` is below one, or as of `BFS`.
    DeviceUnavailable
        There is no g++, or this is not x86-64 Linux.
    """
    if schedules < 1:
        raise ValueError(f"schedules is {schedules}; it must be at least 1")
    source = graph.check_source(source)
    config = configure(
        graph,
        engine=engine,
        advance=advance,
        direction=direction,
        claim=claim,
        append=append,
        frontier=frontier,
        block_threads=block_threads,
    )
    if config.padded:
        raise ValueError(
            f"the {append} append leaves gaps between the vertices in its queue, where discoveries "
            "are looked for; use another"
        )
    if not config.queues_all:
        raise ValueError(
            f"a {frontier} frontier leaves what pulled levels discover out of the queue, where "
            "discoveries are looked for; use a sparse one"
        )
    expected = bfs_reference(graph, source, max_depth).distances
    found = RaceReport(graph, source, config, max_depth, expected)
    runs = []
    with found._session() as (_, run):
        for seed in range(schedules):
            runs.append(run(seed))
            if progress is not None:
                progress(seed + 1)
    found = replace(found, runs=tuple(runs))
    if check:
        with found._session(schedule="roundrobin", check_races=True) as (device, run):
            run(0)
            found = replace(found, races=tuple(device.races))
    shown = next((each for each in runs if each.duplicated), runs[0])
    vertex = shown.duplicated[0] if shown.duplicated else _most_contended(graph, expected)
    if vertex is None:
        return found
    told = found.replay(shown.seed, vertex)
    return replace(found, vertex=vertex, seed=shown.seed, interleaving=told)


def _most_contended(graph: Graph, distances: Vertices) -> int | None:
    """The vertex that most arcs from the level before lead to; None if none has two."""
    sources, targets = graph.arc_sources(), graph.col_indices
    leads = (distances[sources] >= 0) & (distances[targets] == distances[sources] + 1)
    rivals = np.bincount(targets[leads], minlength=graph.vertices)
    vertex = int(rivals.argmax())
    return vertex if rivals[vertex] > 1 else None

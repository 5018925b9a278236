"""The one way a search is timed: verified, warmed up, repeated.

Used by the command line and the benchmarks. A search whose answer is wrong has no time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from persistent_bfs.graph import Graph
from persistent_bfs.reference import WrongAnswer, verify
from persistent_bfs.result import BFSResult
from persistent_bfs.session import BFS

WARM_UPS = 2


@dataclass(frozen=True)
class Timing:
    """Samples of one quantity, in milliseconds."""

    samples: tuple[float, ...]

    @property
    def min(self) -> float:
        """The smallest sample."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """The median sample."""
        return float(np.median(self.samples))

    @property
    def max(self) -> float:
        """The largest sample."""
        return max(self.samples)

    def spread(self) -> dict[str, float]:
        """Minimum, median and maximum."""
        return {"min": self.min, "median": self.median, "max": self.max}


@dataclass(frozen=True)
class Measurement:
    """A search, whether it is right, and how long it took.

    ``device`` and ``wall`` are None where the device has no time to tell, or the answer was
    wrong; ``problem`` then says what was wrong.
    """

    result: BFSResult
    problem: str | None
    device: Timing | None
    wall: Timing | None

    @property
    def verified(self) -> bool:
        """Whether the answer was checked and found right."""
        return self.problem is None


def find_problem(
    graph: Graph,
    result: BFSResult,
    *,
    max_depth: int | None = None,
    expected: npt.ArrayLike | None = None,
) -> str | None:
    """What is wrong with ``result``, in one line; None if every check passes.

    Checks distances, predecessors and frontier sizes as far as the result has them.
    """
    try:
        verify(
            graph,
            result.source,
            result.distances,
            result.predecessors if result.has_predecessors else None,
            result.frontier_sizes,
            max_depth,
            enqueued=result.enqueued,
            expected=expected,
        )
    except WrongAnswer as wrong:
        return str(wrong)
    return None


def measure(
    session: BFS,
    source: int,
    *,
    repeat: int = 10,
    max_depth: int | None = None,
    expected: npt.ArrayLike | None = None,
    progress: Callable[[int], Any] | None = None,
) -> Measurement:
    """Run a search until its times can be believed.

    The first run is checked; warm-ups follow, then ``repeat`` timed runs, the last of which is
    checked again. Where the device tells no time, the checked run is all.

    Parameters
    ----------
    expected : array-like, optional
        The reference's distances, if the caller has them.
    progress : callable, optional
        Called with the number of runs done.
    """
    if repeat < 1:
        raise ValueError(f"repeat is {repeat}; it must be at least 1")
    result = session.run(source, max_depth=max_depth)
    problem = find_problem(session.graph, result, max_depth=max_depth, expected=expected)
    if problem is not None or result.device_ms is None:
        return Measurement(result, problem, None, None)
    for _ in range(WARM_UPS):
        session.run(source, max_depth=max_depth)
    device: list[float] = []
    wall: list[float] = []
    for done in range(repeat):
        result = session.run(source, max_depth=max_depth)
        assert result.device_ms is not None
        assert result.wall_ms is not None
        device.append(result.device_ms)
        wall.append(result.wall_ms)
        if progress is not None:
            progress(done + 1)
    problem = find_problem(session.graph, result, max_depth=max_depth, expected=expected)
    if problem is not None:
        return Measurement(result, problem, None, None)
    return Measurement(result, None, Timing(tuple(device)), Timing(tuple(wall)))


def harmonic_mean(rates: Sequence[float]) -> float:
    """The mean of rates over equal work; Graph500's mean of TEPS."""
    return len(rates) / sum(1 / rate for rate in rates)

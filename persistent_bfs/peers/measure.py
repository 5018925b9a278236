"""The one way another library's search is timed: verified, warmed up, repeated."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from persistent_bfs.graph import Graph
from persistent_bfs.measure import Timing
from persistent_bfs.peers import Peer
from persistent_bfs.peers.search import PeerSearch
from persistent_bfs.reference import WrongAnswer, check_distances


@dataclass(frozen=True)
class PeerMeasurement:
    """What a peer answered, and how long it took.

    ``wall`` is None, and ``problem`` says why, if an answer was wrong.
    """

    peer: Peer
    version: str
    prepare_ms: float
    problem: str | None
    wall: Timing | None


def measure_peer(
    peer: Peer,
    graph: Graph,
    source: int,
    *,
    repeat: int,
    expected: npt.ArrayLike,
    progress: Callable[[int], Any] | None = None,
) -> PeerMeasurement:
    """Search by another library until its time can be believed.

    The first search is checked and warms up, then ``repeat`` are timed, the last of which is
    checked again.

    Parameters
    ----------
    peer, graph, source
        Who searches what.
    repeat : int
        Timed searches.
    expected : (n,) integer array-like
        The right distances, -1 where unreachable.
    progress : callable, optional
        Called with the number of timed searches done.

    Raises
    ------
    PeerMissing
        Its package is not there.
    """
    version = peer.require()
    begin = time.perf_counter()
    search = peer.prepare(graph)
    prepare_ms = 1e3 * (time.perf_counter() - begin)
    samples: list[float] = []
    problem = find_problem(graph, source, search, search.run(source), expected)
    if problem is None:
        for done in range(repeat):
            begin = time.perf_counter()
            answer = search.run(source)
            samples.append(1e3 * (time.perf_counter() - begin))
            if progress is not None:
                progress(done + 1)
        problem = find_problem(graph, source, search, answer, expected)
    wall = Timing(tuple(samples)) if problem is None else None
    return PeerMeasurement(peer, version, prepare_ms, problem, wall)


def find_problem(
    graph: Graph, source: int, search: PeerSearch, answer: Any, expected: npt.ArrayLike
) -> str | None:
    """What is wrong with a peer's answer, in one line."""
    try:
        check_distances(graph, source, search.distances(answer), expected=expected)
    except WrongAnswer as wrong:
        return str(wrong)
    return None

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
from persistent_bfs.reference import WrongAnswer
from persistent_bfs.reference import verify as verify_answer


@dataclass(frozen=True)
class PeerMeasurement:
    """What a peer answered, and how long it took.

    ``wall`` is None, and ``problem`` says why, if an answer was wrong; and if none was checked.
    """

    peer: Peer
    version: str
    prepare_ms: float
    problem: str | None
    wall: Timing | None
    checked: bool = True

    @property
    def verified(self) -> bool | None:
        """Whether every answer that was checked is right; None if none was."""
        return self.problem is None if self.checked else None


def measure_peer(
    peer: Peer,
    graph: Graph,
    source: int,
    *,
    repeat: int,
    expected: npt.ArrayLike | None = None,
    progress: Callable[[int], Any] | None = None,
    verify: bool = True,
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
    expected : (n,) integer array-like, optional
        The right distances, -1 where unreachable; without, they are proved.
    progress : callable, optional
        Called with the number of timed searches done.
    verify : bool
        False searches once, checks nothing, and so has no time.

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
    answer = search.run(source)
    if not verify:
        return PeerMeasurement(peer, version, prepare_ms, None, None, checked=False)
    problem = find_problem(graph, source, search, answer, expected)
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
    graph: Graph, source: int, search: PeerSearch, answer: Any, expected: npt.ArrayLike | None
) -> str | None:
    """What is wrong with a peer's answer, in one line; without ``expected`` it is to be proved."""
    try:
        verify_answer(graph, source, search.distances(answer), expected=expected)
    except WrongAnswer as wrong:
        return str(wrong)
    return None

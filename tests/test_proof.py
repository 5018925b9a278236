"""Positive controls: seeded wrong answers of every kind, each of which the checker must refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from graphs import directed

from persistent_bfs import reference
from persistent_bfs.generate import generate
from persistent_bfs.graph import Graph
from persistent_bfs.reference import (
    WrongAnswer,
    bfs_serial,
    check_predecessors,
    prove_distances,
    verify,
)

SEEDS = range(12)


class Answer(NamedTuple):
    """All that a search returns; ``graph`` is what it was of."""

    graph: Graph
    source: int
    distances: npt.NDArray[np.int32]
    predecessors: npt.NDArray[np.int32]
    frontiers: npt.NDArray[np.int64]
    max_depth: int | None

    def check(self) -> None:
        verify(
            self.graph,
            self.source,
            self.distances,
            self.predecessors,
            self.frontiers,
            self.max_depth,
            enqueued=int(self.frontiers.sum()),
        )

    @property
    def reached(self) -> npt.NDArray[np.int64]:
        """All that is reached but the source."""
        return np.flatnonzero(self.distances > 0)


def random_directed(vertices: int, arcs: int) -> Graph:
    rng = np.random.default_rng(5)
    s, t = rng.integers(vertices, size=(2, arcs))
    return Graph.from_edges(s, t, vertices=vertices, directed=True)


def apart(graph: Graph) -> Graph:
    """``graph`` beside a triangle that nothing leads to, and a vertex without arcs."""
    n = graph.vertices
    sources, targets = graph.arc_sources(), graph.col_indices
    s, t = np.append(sources, [n, n + 1, n + 2]), np.append(targets, [n + 1, n + 2, n])
    if not graph.directed:
        s, t = np.append(s, [n + 1, n + 2, n]), np.append(t, [n, n + 1, n + 2])
    return Graph.from_edges(s, t, vertices=n + 4, directed=graph.directed)


GRAPHS = {
    "grid": apart(generate("grid:14x9")),
    "tree": apart(generate("tree:3:4")),
    "kron": apart(generate("kron:7:4")),
    "path": apart(generate("path:300")),
    "directed": apart(random_directed(120, 260)),
    "several": Graph.from_arrays(
        [0, 4, 8, 11, 12, 12, 13], [0, 1, 1, 2, 0, 0, 1, 2, 0, 1, 3, 2, 5]
    ),
}


def right_answer(graph: Graph, max_depth: int | None = None) -> Answer:
    """By the queue of the textbooks, which shares nothing with the checker."""
    source = int(graph.degrees[:-4].argmax()) if graph.vertices > 10 else 0
    distances, predecessors, _ = bfs_serial(graph, source)
    if max_depth is not None:
        predecessors[distances > max_depth] = -1
        distances[distances > max_depth] = -1
    frontiers = np.bincount(distances[distances >= 0])
    return Answer(graph, source, distances, predecessors, frontiers, max_depth)


ANSWERS = {
    f"{name}{'' if bound is None else f', depth {bound}'}": right_answer(graph, bound)
    for name, graph in GRAPHS.items()
    for bound in (None, 2)
}

Fault = Callable[[Answer, np.random.Generator], Answer]


def with_distance(answer: Answer, vertices: npt.ArrayLike, values: npt.ArrayLike) -> Answer:
    """The answer with other distances, and frontier sizes that agree with them."""
    distances = answer.distances.copy()
    distances[vertices] = values
    return answer._replace(
        distances=distances, frontiers=np.bincount(distances[distances >= 0], minlength=1)
    )


def one_too_large(answer: Answer, rng: np.random.Generator) -> Answer:
    v = rng.choice(answer.reached)
    return with_distance(answer, v, answer.distances[v] + 1)


def one_too_small(answer: Answer, rng: np.random.Generator) -> Answer:
    v = rng.choice(answer.reached)
    return with_distance(answer, v, answer.distances[v] - 1)


def one_at_random(answer: Answer, rng: np.random.Generator) -> Answer:
    v = rng.integers(answer.graph.vertices)
    others = np.setdiff1d(np.arange(-2, answer.graph.vertices + 2), answer.distances[v])
    return with_distance(answer, v, rng.choice(others))


def a_branch_shifted(answer: Answer, rng: np.random.Generator) -> Answer:
    """A vertex and all that were discovered by way of it, farther or nearer by some levels."""
    branch = np.zeros(answer.graph.vertices, np.bool_)
    branch[rng.choice(answer.reached)] = True
    for v in np.argsort(answer.distances, kind="stable"):
        if answer.predecessors[v] >= 0:
            branch[v] |= branch[answer.predecessors[v]]
    shift = rng.choice([-2, -1, 1, 2])
    return with_distance(answer, branch, answer.distances[branch] + shift)


def everything_beyond_a_level_shifted(answer: Answer, rng: np.random.Generator) -> Answer:
    level = rng.integers(1, answer.distances.max() + 1)
    beyond = answer.distances >= level
    return with_distance(answer, beyond, answer.distances[beyond] + rng.choice([-1, 1]))


def a_reached_one_marked_unreached(answer: Answer, rng: np.random.Generator) -> Answer:
    v = rng.choice(answer.reached)
    answer.predecessors[v] = -1
    return with_distance(answer, v, -1)


def a_level_and_all_beyond_marked_unreached(answer: Answer, rng: np.random.Generator) -> Answer:
    beyond = answer.distances >= rng.integers(1, answer.distances.max() + 1)
    answer.predecessors[beyond] = -1
    return with_distance(answer, beyond, -1)


def the_unreached_marked_reached(answer: Answer, rng: np.random.Generator) -> Answer:
    """One of those that nothing leads to, or a ring of them in which each has a parent."""
    apart = np.flatnonzero(answer.distances < 0)
    if rng.random() < 0.5:
        return with_distance(answer, rng.choice(apart), rng.integers(0, answer.distances.max() + 2))
    return with_distance(answer, apart, rng.integers(1, 4, size=apart.size))


def a_second_source(answer: Answer, rng: np.random.Generator) -> Answer:
    return with_distance(answer, rng.choice(answer.reached), 0)


def no_source(answer: Answer, rng: np.random.Generator) -> Answer:
    return with_distance(answer, answer.source, rng.choice([-1, 1, 2]))


def of_another_source(answer: Answer, rng: np.random.Generator) -> Answer:
    other = int(rng.choice(answer.reached))
    return with_distance(answer, slice(None), bfs_serial(answer.graph, other).distances)


def two_exchanged(answer: Answer, rng: np.random.Generator) -> Answer:
    v = rng.integers(answer.graph.vertices)
    others = np.flatnonzero(answer.distances != answer.distances[v])
    pair = [v, rng.choice(others)]
    return with_distance(answer, pair, answer.distances[pair[::-1]])


def another_depth_limit(answer: Answer, rng: np.random.Generator) -> Answer:
    """A level too many, or too few, where that makes a difference."""
    limit = int(answer.distances.max())
    deeper = bfs_serial(answer.graph, answer.source).distances
    if rng.random() < 0.5 or deeper.max() == limit:
        return with_distance(answer, answer.distances == limit, -1)
    deeper[deeper > limit + 1] = -1
    return with_distance(answer, slice(None), deeper)


def one_twice_in_the_frontiers(answer: Answer, rng: np.random.Generator) -> Answer:
    sizes = answer.frontiers.copy()
    sizes[rng.integers(sizes.size)] += 1
    return answer._replace(frontiers=sizes)


def one_in_no_frontier(answer: Answer, rng: np.random.Generator) -> Answer:
    sizes = answer.frontiers.copy()
    sizes[rng.integers(sizes.size)] -= 1
    return answer._replace(frontiers=sizes)


def one_in_another_frontier(answer: Answer, rng: np.random.Generator) -> Answer:
    sizes = np.append(answer.frontiers, 0)
    gives, takes = rng.permutation(sizes.size - 1)[:2] if sizes.size > 2 else (0, 1)
    sizes[gives] -= 1
    sizes[takes] += 1
    return answer._replace(frontiers=sizes if takes == sizes.size - 1 else sizes[:-1])


def with_parent(answer: Answer, vertex: int, parent: int) -> Answer:
    predecessors = answer.predecessors.copy()
    predecessors[vertex] = parent
    return answer._replace(predecessors=predecessors)


def a_parent_without_an_arc(answer: Answer, rng: np.random.Generator) -> Answer:
    """At the right distance."""
    arcs = set(zip(answer.graph.arc_sources(), answer.graph.col_indices, strict=True))
    for v in rng.permutation(answer.reached):
        level = np.flatnonzero(answer.distances == answer.distances[v] - 1)
        strangers = [u for u in level if (u, v) not in arcs]
        if strangers:
            return with_parent(answer, v, rng.choice(strangers))
    return no_parent(answer, rng)


def a_parent_of_another_level(answer: Answer, rng: np.random.Generator) -> Answer:
    """At the end of an arc, where one is."""
    v = rng.choice(answer.reached)
    graph = answer.graph
    into = graph.arc_sources()[graph.col_indices == v]
    wrong = into[answer.distances[into] != answer.distances[v] - 1]
    return with_parent(answer, v, rng.choice(wrong) if wrong.size else v)


def no_parent(answer: Answer, rng: np.random.Generator) -> Answer:
    return with_parent(answer, rng.choice(answer.reached), rng.choice([-1, -2]))


def a_parent_that_is_no_vertex(answer: Answer, rng: np.random.Generator) -> Answer:
    return with_parent(answer, rng.choice(answer.reached), answer.graph.vertices)


def a_parent_where_none_may_be(answer: Answer, rng: np.random.Generator) -> Answer:
    none = np.flatnonzero(answer.distances <= 0)
    return with_parent(answer, rng.choice(none), answer.source)


FAULTS: tuple[Fault, ...] = (
    one_too_large,
    one_too_small,
    one_at_random,
    a_branch_shifted,
    everything_beyond_a_level_shifted,
    a_reached_one_marked_unreached,
    a_level_and_all_beyond_marked_unreached,
    the_unreached_marked_reached,
    a_second_source,
    no_source,
    of_another_source,
    two_exchanged,
    another_depth_limit,
    one_twice_in_the_frontiers,
    one_in_no_frontier,
    one_in_another_frontier,
    a_parent_without_an_arc,
    a_parent_of_another_level,
    no_parent,
    a_parent_that_is_no_vertex,
    a_parent_where_none_may_be,
)


def copied(answer: Answer) -> Answer:
    return answer._replace(
        distances=answer.distances.copy(), predecessors=answer.predecessors.copy()
    )


@pytest.fixture(params=[7, 1 << 18], ids=["arcs in parts", "arcs together"])
def arcs_checked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(reference, "ARCS_CHECKED", request.param)
    return request.param


@pytest.mark.usefixtures("arcs_checked")
@pytest.mark.parametrize("name", ANSWERS)
def test_the_right_answer_passes(name: str) -> None:
    ANSWERS[name].check()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("name", ANSWERS)
def test_every_kind_of_wrong_answer_is_refused(name: str, fault: Fault) -> None:
    right = ANSWERS[name]
    for seed in SEEDS:
        wrong = fault(copied(right), np.random.default_rng(seed))
        assert any(
            not np.array_equal(getattr(wrong, part), getattr(right, part))
            for part in ("distances", "predecessors", "frontiers")
        )
        with pytest.raises(WrongAnswer):
            wrong.check()
        if not np.array_equal(wrong.distances, right.distances):
            # By the distances alone, too: no predecessors or sizes are always there.
            with pytest.raises(WrongAnswer):
                prove_distances(wrong.graph, wrong.source, wrong.distances, wrong.max_depth)


@pytest.mark.usefixtures("arcs_checked")
@pytest.mark.parametrize("name", ["grid", "directed, depth 2"])
def test_the_same_where_arcs_are_checked_in_parts(name: str) -> None:
    for fault in FAULTS:
        with pytest.raises(WrongAnswer):
            fault(copied(ANSWERS[name]), np.random.default_rng(1)).check()


def test_a_proof_needs_no_opposite_arcs() -> None:
    """A graph that says it is undirected and is not is proved along the arcs that it has."""
    one_way = directed(4, (0, 1), (1, 2), (3, 2))
    promised = Graph(one_way.row_offsets, one_way.col_indices, directed=False)
    for graph in (one_way, promised):
        prove_distances(graph, 0, [0, 1, 2, -1])
        for wrong in ([0, 1, 2, 3], [0, 1, -1, -1], [0, 1, 1, -1]):
            with pytest.raises(WrongAnswer):
                prove_distances(graph, 0, wrong)


def test_no_directed_graph_is_transposed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Graph, "transpose", lambda _: pytest.fail("transposed"))
    ANSWERS["directed"].check()


@pytest.mark.parametrize("arcs_checked", [3, 1 << 18])
def test_the_first_wrong_vertex_is_named(
    arcs_checked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "ARCS_CHECKED", arcs_checked)
    graph = generate("star:9")
    distances = np.array([0, 1, 1, 2, 1, -1, 1, 3, 1])
    with pytest.raises(
        WrongAnswer, match=r"^vertex 3: distance 2, but its nearest neighbour has 0$"
    ):
        prove_distances(graph, 0, distances)
    distances[3] = 1
    with pytest.raises(WrongAnswer, match=r"^vertex 5: distance -1, but its nearest neighbour"):
        prove_distances(graph, 0, distances)
    lonely = directed(3, (0, 1), (2, 1))
    with pytest.raises(
        WrongAnswer, match=r"^vertex 2: distance 1, but no neighbour of it is reach"
    ):
        prove_distances(lonely, 0, [0, 1, 1])


def test_a_row_longer_than_a_part_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub's arcs are not looked at together, whose number nothing bounds."""
    longest = 0
    plain = reference.ArcPart.spread

    def spread(self: reference.ArcPart, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        nonlocal longest
        made = plain(self, values)
        longest = max(longest, made.size)
        return made

    monkeypatch.setattr(reference.ArcPart, "spread", spread)
    monkeypatch.setattr(reference, "ARCS_CHECKED", 10)
    star = generate("star:200")
    predecessors = np.zeros(200, np.int32)
    predecessors[0] = -1
    distances = np.ones(200, np.int32)
    distances[0] = 0
    prove_distances(star, 0, distances)
    check_predecessors(star, 0, distances, predecessors)
    assert longest == 10
    predecessors[150] = 149
    with pytest.raises(WrongAnswer):
        check_predecessors(star, 0, distances, predecessors)

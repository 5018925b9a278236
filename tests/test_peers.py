"""Other libraries' searches: right answers, wrong ones, and those that are not there."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from graphs import SMALL, SmallGraph, directed, searches
from hypothesis import given, settings

from persistent_bfs import Graph, bfs, cli, peers, read_graph
from persistent_bfs.cli.compare import describe_peer
from persistent_bfs.device import emulated_problem
from persistent_bfs.measure import Timing
from persistent_bfs.peers import PEERS, Peer, PeerMissing
from persistent_bfs.peers.measure import PeerMeasurement, find_problem, measure_peer
from persistent_bfs.peers.search import PeerSearch
from persistent_bfs.queue_order import distances_of_order
from persistent_bfs.reference import bfs_reference

emulated = pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))

ON_THE_HOST = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(not peer.installed, reason=f"{peer.package} is not installed"),
    )
    for name, peer in PEERS.items()
    if peer.runs_on == "host"
]


@pytest.mark.parametrize("name", ON_THE_HOST)
@pytest.mark.parametrize("small", SMALL, ids=str)
def test_small_graphs_are_answered_as_ours_are(name: str, small: SmallGraph) -> None:
    expected = np.array(small.distances, np.int32)
    told: list[int] = []
    found = measure_peer(
        PEERS[name], small.graph, small.source, repeat=3, expected=expected, progress=told.append
    )
    assert found.problem is None
    assert found.wall is not None
    assert len(found.wall.samples) == 3
    assert found.wall.min > 0
    assert told == [1, 2, 3]
    assert found.version == sys.modules[PEERS[name].modules[0]].__version__


@pytest.mark.parametrize("name", ON_THE_HOST)
def test_random_graphs_are_answered_as_ours_are(name: str) -> None:
    @given(searches())
    @settings(max_examples=60, deadline=None)
    def agrees(search: tuple[Graph, int]) -> None:
        graph, source = search
        other = PEERS[name].prepare(graph)
        answer = other.run(source)
        expected = bfs_reference(graph, source).distances
        assert find_problem(graph, source, other, answer, expected) is None

    agrees()


def test_distances_of_an_order() -> None:
    # 3 -> 1, 4; 1 -> 0; 4 -> 5; 5 -> 2; 6 is not reached.
    order, parents = np.array([3, 1, 4, 0, 5, 2]), np.array([1, 3, 5, -9, 3, 4, -9])
    assert distances_of_order(7, order, parents).tolist() == [2, 1, 3, 0, 1, 2, -1]
    assert distances_of_order(2, np.array([1]), np.array([-9, -9])).tolist() == [-1, 0]


def _fake(monkeypatch: pytest.MonkeyPatch, answer: Any) -> Peer:
    """A row whose library, ``json``, answers what it is told to."""
    row = Peer("fake", "fake.bfs", "host", ("json",), "fake")
    prepared = PeerSearch(lambda _: answer, lambda given: given)
    monkeypatch.setitem(
        sys.modules, "persistent_bfs.peers.by_fake", SimpleNamespace(prepare=lambda _: prepared)
    )
    monkeypatch.setitem(PEERS, "fake", row)  # type: ignore[arg-type]
    return row


def test_a_wrong_answer_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, expected = read_graph("path:4"), np.arange(4)
    right = measure_peer(_fake(monkeypatch, expected), graph, 0, repeat=2, expected=expected)
    assert right.wall is not None
    assert right.version == json.__version__
    wrong = np.array([0, 1, 2, 2])
    found = measure_peer(_fake(monkeypatch, wrong), graph, 0, repeat=2, expected=expected)
    assert found.wall is None
    assert found.problem == "vertex 3: distance 2, expected 3 (1 of 4 vertices differ)"


def test_an_answer_that_turns_wrong_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [np.arange(4), np.arange(4), np.zeros(4, int)]
    row = _fake(monkeypatch, None)
    prepared = PeerSearch(lambda _: answers.pop(0), lambda given: given)
    module = SimpleNamespace(prepare=lambda _: prepared)
    monkeypatch.setitem(sys.modules, "persistent_bfs.peers.by_fake", module)
    found = measure_peer(row, read_graph("path:4"), 0, repeat=2, expected=np.arange(4))
    assert found.wall is None
    assert found.problem is not None
    assert not answers


def _compare(*more: str) -> Any:
    how = ("--device", "emulated", "--engines", "host_loop", "--advances", "thread")
    return CliRunner().invoke(cli.main, ["compare", "path:4", *how, *more])


@emulated
def test_they_stand_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _compare("--with", "scipy", "--repeat", "2")
    assert shown.exit_code == 0
    assert "scipy.sparse.csgraph.breadth_first_order" in shown.stdout
    report = json.loads(_compare("--with", "scipy", "--repeat", "2", "--json").stdout)
    (peer,) = report["peers"]
    assert (peer["name"], peer["verified"], peer["times_ours"]) == ("scipy", True, None)
    assert peer["wall_ms"]["min"] > 0
    assert json.loads(_compare("--json").stdout)["peers"] == []
    _fake(monkeypatch, np.zeros(4, int))
    for name, row in PEERS.items():
        if name not in ("scipy", "fake"):
            absent = dataclasses.replace(row, modules=("no_such_module",))
            monkeypatch.setitem(PEERS, name, absent)  # type: ignore[arg-type]
    wrong = _compare("--with", "all", "--json")
    assert wrong.exit_code == 1
    assert "wrong answer: fake" in wrong.stderr
    found = json.loads(wrong.stdout)["peers"]
    assert [(each["name"], each["verified"]) for each in found] == [
        ("scipy", True),
        ("fake", False),
    ]
    assert found[1]["wall_ms"] is None
    assert "WRONG" in _compare("--with", "fake").stdout


@emulated
def test_one_that_is_not_there_is_refused_before_anything_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = dataclasses.replace(PEERS["igraph"], modules=("no_such_module",))
    monkeypatch.setitem(PEERS, "igraph", row)  # type: ignore[arg-type]
    with pytest.raises(PeerMissing, match="install igraph"):
        row.require()
    assert not row.installed
    refused = _compare("--with", "scipy,igraph")
    assert (refused.exit_code, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert "no igraph to compare with: No module named 'no_such_module'; install igraph" in line
    found = json.loads(_compare("--with", "all", "--json").stdout)["peers"]
    assert "igraph" not in [each["name"] for each in found]
    listed = CliRunner().invoke(cli.main, ["list"]).stdout
    assert "igraph.Graph.bfs, on the host; needs igraph; not installed" in listed
    assert "unknown peer 'fast'" in _compare("--with", "fast").stderr


def test_how_much_longer_is_by_one_clock() -> None:
    found = PeerMeasurement(PEERS["scipy"], "1", 2.0, None, Timing((3.0, 4.0, 50.0)))
    walls = (5.0, 2.0, 1.0)
    rows = [{"verified": wall > 1, "wall_ms": {"median": wall}} for wall in walls]
    assert describe_peer(found, rows)["times_ours"] == 2.0
    assert describe_peer(found, [{"verified": True, "wall_ms": None}])["times_ours"] is None


def _modules_of_cugraph(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stand-ins for cuGraph's modules, which need a GPU: they answer by our reference."""
    asked: dict[str, Any] = {}

    def graph(handle: Any, properties: Any, offsets: Any, indices: Any, **how: Any) -> Graph:
        asked["graph"] = how | vars(properties)
        return Graph.from_arrays(offsets, indices, directed=not properties.is_symmetric)

    def search(
        handle: Any, made: Graph, sources: Any, both: bool, limit: int, parents: bool, check: bool
    ) -> tuple[Any, ...]:
        asked["search"] = (both, limit, parents, check)
        levels = bfs_reference(made, int(sources[0])).distances
        order = np.arange(made.vertices)[::-1]
        levels = np.where(levels < 0, np.iinfo(np.int32).max, levels)
        return levels[order], np.full(made.vertices, -1), order

    device = SimpleNamespace(synchronize=lambda: asked.update(waited=True))
    cupy = SimpleNamespace(
        asarray=np.asarray,
        asnumpy=np.asarray,
        int32=np.int32,
        cuda=SimpleNamespace(Device=lambda: device),
    )
    pylibcugraph = SimpleNamespace(
        __version__="26.10",
        ResourceHandle=object,
        GraphProperties=lambda **how: SimpleNamespace(**how),
        SGGraph=graph,
        bfs=search,
    )
    for name, module in (("cupy", cupy), ("pylibcugraph", pylibcugraph)):
        monkeypatch.setitem(sys.modules, name, module)
    return asked


@pytest.mark.parametrize("is_directed", [False, True])
def test_cugraph_is_called_as_its_documentation_says(
    is_directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _modules_of_cugraph(monkeypatch)
    graph = directed(5, (0, 1), (1, 2), (2, 0), (3, 4))
    graph = graph if is_directed else graph.symmetrized()
    expected = bfs(graph, 0, device="reference").distances
    found = measure_peer(PEERS["cugraph"], graph, 0, repeat=2, expected=expected)
    assert (found.problem, found.version) == (None, "26.10")
    assert asked["graph"]["input_array_format"] == "CSR"
    assert asked["graph"]["is_symmetric"] is not is_directed
    assert asked["graph"]["renumber"] is False
    assert asked["search"] == (not is_directed, -1, False, False)
    assert asked["waited"]


def test_every_row_has_a_file_and_needs_no_import_to_be_listed() -> None:
    for name, peer in PEERS.items():
        assert importlib.util.find_spec(f"{peers.__name__}.by_{name}") is not None
        assert peer.function in peer.trade_off

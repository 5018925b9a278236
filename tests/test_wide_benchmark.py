"""The benchmark of wide graphs: what it counts, that it checks every search, what it writes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from test_benchmarks import emulated, load

from persistent_bfs import BFS, Graph, read_graph
from persistent_bfs.answer import Answer
from persistent_bfs.device import open_device
from persistent_bfs.measure import Timing
from persistent_bfs.reference import WrongAnswer, bfs_reference

wide = load("wide")

# Five vertices of eleven are reached: 0 to 1, 2 and 3, and 3 to 4; six edges lie elsewhere.
APART = Graph.from_edges(
    [0, 0, 0, 3, 5, 6, 7, 8, 9, 5], [1, 2, 3, 4, 6, 7, 8, 9, 10, 10], vertices=11, name="apart"
)


class Timed:
    """A session of the reference whose every search takes two milliseconds more than the last."""

    def __init__(self, graph: Graph) -> None:
        self.session = BFS(graph, device="reference")
        self.graph = graph
        self.runs = 0

    def run(self, source: int) -> Any:
        self.runs += 1
        return replace(self.session.run(source), device_ms=2.0 * self.runs)


class Faulty(Timed):
    """The same, but one distance of the third search is wrong."""

    def run(self, source: int) -> Any:
        result = super().run(source)
        if self.runs != 3:
            return result
        distances = result.distances.copy()
        distances[int(distances.argmax())] += 1
        return replace(result, answer=Answer({"distances": distances}))


def test_teps_are_counted_both_ways() -> None:
    answers = wide.Answers(APART)
    found = wide.from_many(Timed(APART), [0, 5], 1, answers)
    # 4 edges, stored as 8 arcs, in 2 ms; 6 edges in 4 ms.
    assert found["arcs"] == [8, 12]
    assert (found["reached"], found["levels"]) == ([5, 6], [3, 4])
    assert found["ms"] == [2.0, 4.0]
    assert found["harmonic_mean_teps_edges"] == pytest.approx(2 / (1 / 2000 + 1 / 1500))
    assert found["harmonic_mean_teps_arcs"] == pytest.approx(2 / (1 / 4000 + 1 / 3000))
    assert found["widest_component"] == {
        "sources": 1,
        "harmonic_mean_teps_edges": pytest.approx(1500),
        "harmonic_mean_teps_arcs": pytest.approx(3000),
    }
    assert wide.rates(8, 2.0) == {"teps_edges": 2000.0, "teps_arcs": 4000.0}


def test_of_several_searches_the_median_counts() -> None:
    found = wide.from_many(Timed(APART), [0, 5], 3, wide.Answers(APART))
    assert found["ms"] == [4.0, 10.0]
    assert found["runs_each"] == 3


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (1, "from vertex 2: vertex 4: distance 4, but its nearest neighbour has 2"),
        (2, "two searches from vertex 1 have different answers"),
        (3, "two searches from vertex 0 have different answers"),
    ],
)
def test_a_wrong_search_has_no_time(runs: int, message: str) -> None:
    with pytest.raises(WrongAnswer, match=message):
        wide.from_many(Faulty(APART), [0, 1, 2], runs, wide.Answers(APART))


def test_a_wrong_answer_is_found_against_a_proven_one_too() -> None:
    answers, session = wide.Answers(APART), Faulty(APART)
    assert answers.problem(session.run(0)) is None
    assert answers[0].tolist() == bfs_reference(APART, 0).distances.tolist()
    assert answers.problem(session.run(0)) is None
    assert "vertex 4: distance 3, expected 2" in answers.problem(session.run(0))
    assert 0 in answers
    assert 1 not in answers


def test_a_vertex_that_entered_twice_is_found() -> None:
    result = replace(BFS(APART, device="reference").run(0), enqueued=6)
    assert "entered more than once" in wide.Answers(APART).problem(result)


def test_sources_have_arcs_and_are_distinct() -> None:
    graph = read_graph("kron:8")
    drawn = wide.draw_sources(graph, 64, 1)
    assert len(set(drawn)) == 64
    assert graph.degrees[drawn].min() > 0
    assert drawn == wide.draw_sources(graph, 64, 1) != wide.draw_sources(graph, 64, 2)
    alone = Graph.from_edges([2], [4], vertices=9)
    assert sorted(wide.draw_sources(alone, 64, 1)) == [2, 4]


def test_bars_are_found_by_file_or_name() -> None:
    assert wide.bar_of("kron:20") == (0.075, 0.045)
    assert wide.bar_of("web-cnr-2000") == wide.bar_of("web-cnr-2000.txt.xz") == (0.33, 0.20)
    assert wide.bar_of("kron:21") is None
    assert all(bar.reach_for < bar.at_most for bar in wide.BARS.values())


def test_numbers_are_written_on_one_line() -> None:
    written = {"ms": [1.5, 2e-07, -3], "rows": [{"name": "a, [b]"}], "none": []}
    assert json.loads(wide.text(written)) == written
    assert '"ms": [1.5, 2e-07, -3]' in wide.text(written)


def test_a_row_says_what_was_met() -> None:
    row = {
        "choice": "auto",
        "verified": True,
        "ms": wide.spread(Timing((1.0, 2.0, 4.0))),
        "teps_edges": 5e9,
        "memory": {"bytes": 3e9},
        "from_many": None,
        "at_most": True,
        "reach_for": False,
    }
    assert row["ms"] == {"min": 1.0, "median": 2.0, "max": 4.0, "quartiles": [1.5, 3.0]}
    line = wide.describe(row)
    assert "2.0000 ms (1.0000 - 4.0000)" in line
    assert line.endswith("at most: met, reach for: missed")
    assert "WRONG: vertex 3" in wide.describe(
        {"choice": "auto", "verified": False, "problem": "vertex 3"}
    )


@emulated
def test_the_memory_held_is_counted_by_arcs_and_vertices() -> None:
    graph = read_graph("kron:8")
    with open_device("emulated").device as device, BFS(graph, device=device) as session:
        held = wide.memory_held(session)
    assert held["buffers"]["col_indices"] == 4 * graph.arcs
    assert held["buffers"]["distances"] == 4 * graph.vertices
    assert held["bytes"] == sum(held["buffers"].values())
    assert held["bytes_an_arc"] == 4
    assert held["bytes_a_vertex"] * graph.vertices == held["bytes"] - 4 * graph.arcs


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run on the emulated device writes."""
    file = tmp_path_factory.mktemp("wide") / "wide.json"
    graphs = ("--graph", "kron:8", "--graph", "random:500:4000", "--graph", "not-here.txt")
    how = ("--device", "emulated", "--repeat", "2", "--sources", "3", "--source-runs", "2")
    answer = CliRunner().invoke(wide.main, [str(file), *graphs, *how])
    assert answer.exit_code == 0, answer.output
    assert "passed over: no not-here.txt" in answer.output
    assert answer.output.count("this device tells no time") == 2 * len(wide.CHOICES)
    found: dict[str, Any] = json.loads(file.read_text())
    return found


@emulated
def test_every_choice_is_measured_and_traced(report: dict[str, Any]) -> None:
    assert [graph["graph"] for graph in report["graphs"]] == ["kron:8", "random:500:4000"]
    for found in report["graphs"]:
        graph = read_graph(found["graph"])
        assert found["source"] == int(np.argmax(graph.degrees))
        sizes = bfs_reference(graph, found["source"]).frontier_sizes.tolist()
        assert [row["choice"] for row in found["rows"]] == list(wide.CHOICES)
        for row in found["rows"]:
            assert row["verified"] is True
            assert row["ms"] is row["at_most"] is None
            assert re.search(r"\bblocks? of ", row["shape"]) or row["engine"] != "persistent"
            assert row["predecessors"] == ("predecessors" in row["choice"])
            if row["predecessors"]:
                assert row["from_many"] is None
                continue
            assert [level["frontier"] for level in row["trace"]] == sizes
            many = row["from_many"]
            assert len(many["sources"]) == len(many["arcs"]) == 3
            for source, reached in zip(many["sources"], many["reached"], strict=True):
                assert reached == bfs_reference(graph, source).frontier_sizes.sum()


@emulated
def test_a_wrong_answer_fails_the_run_and_has_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(BFS):
        """Loses the farthest vertex of each search."""

        def run(self, source: int, **how: Any) -> Any:
            result = super().run(source, **how)
            distances = result.distances.copy()
            distances[int(distances.argmax())] = -1
            return replace(result, answer=Answer({"distances": distances}))

    monkeypatch.setattr(wide, "BFS", Wrong)
    file = tmp_path / "wide.json"
    how = ("--graph", "kron:6", "--choice", "auto", "--device", "emulated", "--repeat", "1")
    answer = CliRunner().invoke(wide.main, [str(file), *how])
    assert answer.exit_code == 1
    assert "wrong answers: kron:6, auto" in answer.output
    (row,) = json.loads(file.read_text())["graphs"][0]["rows"]
    assert row["verified"] is False
    assert "ms" not in row
    assert "nearest neighbour" in row["problem"]


def test_a_choice_that_is_refused_says_why() -> None:
    lines: list[str] = []
    found = wide.measure_graph(
        APART, None, {"no such": {"engine": "no such"}}, sources=2, say=lines.append
    )
    assert found["rows"][0]["verified"] is None
    assert "no such" in found["rows"][0]["problem"]
    assert "ms" not in found["rows"][0]
    assert len(lines) == 1


def test_the_table_holds_what_was_recorded(tmp_path: Path) -> None:
    summary = load("summary")
    ms = {"min": 0.25, "median": 0.5, "max": 1.0}
    row = {
        "choice": "auto",
        "verified": True,
        "levels": 6,
        "ms": ms,
        "teps_edges": 5e9,
        "teps_arcs": 1e10,
        "memory": {"bytes_an_arc": 4.0, "bytes_a_vertex": 12.25},
        "from_many": {"harmonic_mean_teps_edges": 3e9, "harmonic_mean_teps_arcs": 6e9},
    }
    wrong = {"choice": "wrong", "verified": False, "problem": "vertex 3"}
    rows = [row, row | {"choice": "other", "from_many": None}, wrong]
    graph = {"graph": "kron:8", "at_most_ms": 0.6, "reach_for_ms": None, "rows": rows}
    report = {"device": "a GPU", "driver": "1.2", "repeat": 30, "graphs": [graph]}
    (tmp_path / "wide.json").write_text(json.dumps(report))
    lines = summary.wide_table(tmp_path).splitlines()
    assert lines[2] == (
        "| kron:8 | 6 | 0.6 | - | auto | 0.5000 | 0.2500 - 1.0000 | 5.0 | 10.0 | 3.0 | 6.0 "
        "| 4.0 | 12.2 |"
    )
    assert lines[3].endswith("| - | - | 4.0 | 12.2 |")
    assert len({line.count("|") for line in lines[:4]}) == 1
    assert "vertex 3" not in "".join(lines)
    page = "a\n<!-- wide -->\nold\n<!-- end of wide -->\nz"
    assert summary.fill(page, tmp_path).splitlines()[2:6] == lines[:4]


def test_the_reference_device_is_refused(tmp_path: Path) -> None:
    answer = CliRunner().invoke(wide.main, [str(tmp_path / "x.json"), "--device", "reference"])
    assert answer.exit_code == 2
    assert "runs no kernels" in answer.output

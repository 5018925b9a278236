"""``persistent-bfs expand``: levels and mappings as asked, costs, ratios, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from graphs import undirected
from test_cli import WORDS, answer, call, emulated

from persistent_bfs import display
from persistent_bfs.cli.expand import with_ratios
from persistent_bfs.cli.searches import describe_graph
from persistent_bfs.device import cuda_problem

QUICK = ("--device", "emulated", "--repeat", "2")


@emulated
def test_a_star_walked_by_thread_and_warp() -> None:
    report = answer("expand", "star:40", *QUICK, "--levels", "0", "--advances", "warp,thread")
    assert (report["graph"], report["vertices"], report["arcs"]) == ("star:40", 40, 78)
    assert (report["device"], report["repeat"], report["verified"]) == ("emulated", 2, True)
    assert {"python", "driver", "architecture"} <= set(report["environment"])
    thread, warp = report["rows"]
    assert (thread["advance"], warp["advance"]) == ("thread", "warp")
    for row in (thread, warp):
        walked = ("level", "frontier", "edges", "max_degree", "verified", "problem")
        assert [row[name] for name in walked] == [0, 1, 39, 39, True, None]
        assert row["ms"] is row["edges_per_second"] is None
    # 39 steps of a warp with one lane busy; two strides of a warp.
    assert (thread["lane_slots"], warp["lane_slots"]) == (39 * 32, 64)
    assert (thread["ratio_to_best"], warp["ratio_to_best"]) == (19.5, 1.0)
    assert [row["advance"] for row in report["searches"]] == ["thread", "warp"]
    for row in report["searches"]:
        assert row["verified"]
        assert row["ms"] is None
        assert row["lane_slots"] > 0
        assert row["atomics"] > 0


@emulated
def test_by_default_the_levels_of_most_edges_are_walked() -> None:
    report = answer("expand", *WORDS, *QUICK, "--advances", "warp")
    assert [(row["level"], row["frontier"], row["edges"]) for row in report["rows"]] == [
        (2, 98, 10_584),
        (3, 1_986, 51_413),
        (4, 3_394, 8_817),
    ]
    assert report["label"] == "faithless"
    assert [row["ratio_to_best"] for row in report["rows"]] == [1.0] * 3


@emulated
def test_levels_come_in_order_each_once(tmp_path: Path) -> None:
    file = tmp_path / "walks.json"
    how = ("--levels", "3, 1,3", "--advances", "thread", "--output", str(file))
    report = answer("expand", "path:6", *QUICK, *how)
    assert [(row["level"], row["edges"]) for row in report["rows"]] == [(1, 2), (3, 2)]
    assert json.loads(file.read_text()) == report


@emulated
def test_a_walk_for_people_is_grouped_by_level() -> None:
    how = ("--levels", "0,1", "--advances", "thread,warp")
    result = call("expand", "star:40", *QUICK, *how)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.split() for line in result.stdout.splitlines()]
    titles = [" ".join(line) for line in lines if line[:1] == ["level"]]
    assert titles == [
        "level 0: frontier 1, 39 edges, max degree 39",
        "level 1: frontier 39, 39 edges, max degree 1",
    ]
    rows = [(line[0], line[1], line[3], line[-1]) for line in lines if line[-1:] == ["right"]]
    assert rows[:2] == [("thread", "1,248", "19.50x", "right"), ("warp", "64", "1.00x", "right")]
    assert "tells no time" in result.stdout


@emulated
def test_a_walk_that_differs_from_the_prediction_is_wrong(monkeypatch: Any) -> None:
    from persistent_bfs import expand

    predicted = expand.predicted_sums
    monkeypatch.setattr(expand, "predicted_sums", lambda *given: predicted(*given) + 1)
    how = ("expand", "star:40", *QUICK, "--levels", "0", "--advances", "warp")
    report = answer(*how, code=1)
    (row,) = report["rows"]
    assert report["verified"] is row["verified"] is False
    assert row["lane_slots"] is row["ratio_to_best"] is None
    assert "vertex 0: accumulator" in row["problem"]
    result = call(*how)
    assert result.exit_code == 1
    assert "walk WRONG" in result.stdout
    assert result.stderr.startswith("wrong answer: level 0, warp: vertex 0: accumulator")


def timed(level: int, advance: str, *times: float) -> dict[str, Any]:
    low, median, high = times
    return {
        "level": level,
        "frontier": 98,
        "edges": 10_584,
        "max_degree": 896,
        "advance": advance,
        "verified": True,
        "problem": None,
        "ms": {"min": low, "median": median, "max": high},
        "edges_per_second": 10_584 / (median / 1e3),
        "lane_slots": None,
        "atomics": None,
    }


def test_times_are_compared_with_the_best_of_their_level() -> None:
    rows = [timed(2, "thread", 0.03, 0.04, 0.05), timed(2, "warp", 0.004, 0.005, 0.007)]
    rows += [timed(3, "thread", 0.1, 0.2, 0.3), timed(3, "warp", 0.2, 0.3, 0.4)]
    rows = list(with_ratios(rows))
    assert [row["ratio_to_best"] for row in rows] == pytest.approx([8, 1, 1, 1.5])
    search = {"verified": True, "ms": {"min": 0.1, "median": 0.125, "max": 0.2}}
    report = {
        **describe_graph(undirected(2, (0, 1)), 0),
        "device": "cuda",
        "device_name": "a GPU",
        "environment": {"driver": "13.0"},
        "reason": "asked for",
        "repeat": 64,
        "samples": 10,
        "rows": rows,
        "searches": [search | {"advance": name} for name in ("thread", "warp")],
    }
    console = display.Console(width=80, record=True, file=io.StringIO())
    console.print(display.expansion(report))
    lines = [line.split() for line in console.export_text().splitlines() if "right" in line]
    assert lines[:2] == [
        ["thread", "0.0400", "0.0300", "-", "0.0500", "0.26", "8.00x", "0.1250", "right"],
        ["warp", "0.0050", "0.0040", "-", "0.0070", "2.12", "1.00x", "0.1250", "right"],
    ]


@pytest.mark.cuda
def test_a_walk_on_a_gpu_has_times() -> None:
    report = answer("expand", *WORDS, "--device", "cuda", "--levels", "2,3", "--samples", "3")
    assert report["verified"]
    for row in [*report["rows"], *report["searches"]]:
        assert 0 < row["ms"]["min"] <= row["ms"]["median"] <= row["ms"]["max"]
    for level in (2, 3):
        ratios = [row["ratio_to_best"] for row in report["rows"] if row["level"] == level]
        assert min(ratios) == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--levels", "5"], "there is no level 5: the search has 0 to 4"),
        (["--levels", "1,-1"], "'-1' is no integer of at least 0"),
        (["--levels", "two"], "'two' is no integer of at least 0"),
        (["--levels", ""], "'' is no integer of at least 0"),
        (["--advances", "fast"], "unknown advance 'fast'"),
        (["--repeat", "0"], "--repeat"),
        (["--samples", "0"], "--samples"),
        (["--device", "gpu"], "unknown device 'gpu'"),
        (["--device", "reference"], "expand needs a device that runs kernels, and the reference"),
        (["--output", "walks.txt"], "must end in .json"),
        (["--repeat", "65537"], "repeat is 65537; it must be 1 to 65,536"),
    ],
    ids=" ".join,
)
def test_bad_input(options: list[str], why: str) -> None:
    result = call("expand", "path:5", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert why in line


@pytest.mark.skipif(cuda_problem() is None, reason="a GPU can be used here")
def test_a_gpu_asked_for_where_none_is() -> None:
    result = call("expand", "path:5", "--device", "cuda", "--json")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == f"error: {cuda_problem()}\n"

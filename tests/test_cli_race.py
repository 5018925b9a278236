"""``persistent-bfs race``: which schedules duplicate, one of them told, and its replay."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from graphs import FRONTIER_MODEL
from test_cli import answer, call, emulated, six

from persistent_bfs.config import ADVANCES, ENGINES
from persistent_bfs.race import explore

__all__ = ["six"]


@pytest.fixture
def how(six: str) -> tuple[str, ...]:
    return ("race", six, "--directed")


@emulated
def test_the_naive_claim_makes_three_discoveries_of_two_vertices(how: tuple[str, ...]) -> None:
    report = answer(*how, "--schedules", "40", code=1)
    assert (report["vertices"], report["reached"], report["schedules"]) == (6, 6, 40)
    assert (report["claim"], report["engine"], report["append"]) == ("naive", "persistent", "warp")
    assert 0 < report["duplicating"] < 40
    assert (report["first_seed"], report["overflowed"], report["wrong"]) == (0, 0, 0)
    sums = {row["enqueued"]: row["schedules"] for row in report["sums"]}
    assert sum(sums.values()) == 40
    assert 40 - sums[6] == report["duplicating"]
    told = report["interleaving"]
    assert (told["seed"], told["vertex"], told["level"]) == (0, 3, 2)
    assert (told["discoveries"], told["discovered"]) == (3, 2)
    assert told["frontiers"][:3] == [1, 2, 3]
    assert told["duplicated"] == [3, 5]
    assert told["enqueued"] == sum(told["frontiers"])


@emulated
def test_the_interleaving_shows_two_looks_before_two_writes(how: tuple[str, ...]) -> None:
    report = answer(*how, "--schedules", "1", code=1)
    accesses = report["interleaving"]["accesses"]
    claims = [each for each in accesses if each["file"] == "claim/naive.cuh"]
    assert [(each["access"], each["before"], each["after"]) for each in claims] == [
        ("read", -1, -1),
        ("read", -1, -1),
        ("write", -1, 2),
        ("write", 2, 2),
    ]
    assert {each["place"] for each in claims} == {"distances[3]"}
    assert {each["code"] for each in claims} == {
        "return distances[v] == UNVISITED;",
        "distances[v] = distance;",
    }
    assert len({(each["block"], each["thread"]) for each in claims}) == 2
    (race,) = report["data_races"]
    assert {race[which]["file"] for which in ("first", "second")} == {"claim/naive.cuh"}
    assert {race[which]["access"] for which in ("first", "second")} == {"read", "write"}
    assert all(race[which]["line"] > 0 for which in ("first", "second"))
    assert (race["place"], race["kernel"]) == ("distances[3]", "search_persistent")


@emulated
@pytest.mark.parametrize("claim", ["cas", "min"])
def test_an_exact_claim_ends_well(how: tuple[str, ...], claim: str) -> None:
    report = answer(*how, "--claim", claim, "--schedules", "30")
    assert (report["duplicating"], report["first_seed"], report["data_races"]) == (0, None, [])
    assert report["sums"] == [{"enqueued": 6, "schedules": 30}]
    told = report["interleaving"]
    assert (told["discoveries"], told["discovered"], told["duplicated"]) == (2, 2, [])
    atomics = [each for each in told["accesses"] if each["access"] == "atomic"]
    assert [(each["before"], each["after"]) for each in atomics] == [(-1, 2), (2, 2)]


@emulated
@pytest.mark.parametrize("engine", ["persistent", "host_loop"])
def test_a_seed_replays_what_the_exploration_saw(how: tuple[str, ...], engine: str) -> None:
    found = explore(FRONTIER_MODEL, 0, engine=engine, schedules=30, check=False)
    quiet = next(run for run in found.runs if not run.duplicates)
    for run in (found.duplicating[0], found.duplicating[-1], quiet):
        options = ("--engine", engine, "--seed", str(run.seed), "--no-check")
        report = answer(*how, *options, code=int(run.duplicates))
        assert (report["schedules"], report["duplicating"]) == (1, int(run.duplicates))
        assert report["data_races"] is None
        told = report["interleaving"]
        assert (told["seed"], told["enqueued"]) == (run.seed, run.enqueued)
        assert told["duplicated"] == list(run.duplicated)
        expected = [(each.step, each.thread) for each in found.replay(run.seed, told["vertex"])]
        assert [(each["step"], each["thread"]) for each in told["accesses"]] == expected


@emulated
@pytest.mark.parametrize(("graph", "reached"), [("path:50", 50), ("grid:12x3", 36)])
def test_a_seed_of_a_deep_graph_runs_without_a_tier(graph: str, reached: int) -> None:
    """Narrow levels that a tier runs leave nothing in the queue to tell of."""
    for which in ("--schedules", "2"), ("--seed", "1"):
        report = answer("race", graph, "--claim", "cas", *which, "--no-check")
        assert (report["duplicating"], report["wrong"]) == (0, 0)
        assert report["sums"] == [{"enqueued": reached, "schedules": report["schedules"]}]


@emulated
def test_the_command_that_replays_an_interleaving_shows_the_same(how: tuple[str, ...]) -> None:
    options = ("--engine", "host_loop", "--append", "atomic", "--source", "0", "--no-check")
    report = answer(*how, *options, "--schedules", "9", code=1)
    program, *arguments = shlex.split(report["replay"])
    assert program == "persistent-bfs"
    assert arguments[:3] == [how[0], how[1], "--source"]
    assert "--directed" in arguments
    assert "--no-check" in arguments
    assert "--schedules" not in arguments
    assert "--json" not in arguments
    again = answer(*arguments, code=1)
    assert again["interleaving"] == report["interleaving"]
    assert again["replay"] == report["replay"]


@emulated
def test_a_race_for_people(how: tuple[str, ...]) -> None:
    result = call(*how, "--schedules", "20")
    assert result.exit_code == 1
    assert "seed 0, vertex 3: level 2 has 3 discoveries of 2 vertices" in result.stdout
    assert f"  persistent-bfs race {how[1]} --directed --seed 0" in result.stdout.splitlines()[-1]
    assert "data race on distances[3] in kernel search_persistent" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines() if "claim/naive.cuh" in line]
    assert sum("distances[3]" in row for row in rows) == 2 + 4
    (line,) = result.stderr.splitlines()
    assert line.startswith("race found: ")
    assert line.endswith(
        "of 20 schedules discover a vertex more than once; data races on distances"
    )


@emulated
def test_without_rivals_there_is_nothing_to_tell() -> None:
    report = answer("race", "path:5", "--schedules", "2")
    assert (report["interleaving"], report["replay"], report["data_races"]) == (None, None, [])
    result = call("race", "path:5", "--schedules", "2")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "No vertex has two rivals" in result.stdout
    assert "vertices in all: 5 (2 schedules)" in result.stdout


@emulated
def test_a_queue_that_overflows_is_a_race(tmp_path: Path) -> None:
    # Twenty vertices all lead to one, at once: more than the queue's two entries a vertex.
    arcs = [(0, v) for v in range(1, 21)] + [(u, v) for u in range(1, 21) for v in range(21, 24)]
    file = tmp_path / "ladder.txt"
    file.write_text("".join(f"{u} {v}\n" for u, v in arcs))
    for only in ("--schedules", "1"), ("--seed", "0"):
        report = answer("race", str(file), *only, "--no-check", code=1)
        assert (report["duplicating"], report["overflowed"], report["sums"]) == (1, 1, [])
        assert report["interleaving"]["overflowed"] is True
    shown = call("race", str(file), "--seed", "0", "--no-check").stdout
    assert "more than the queue holds (1 schedule)" in shown
    assert "its level overflows the queue" in shown


def test_without_the_emulated_device_the_exit_code_is_3(monkeypatch: Any) -> None:
    monkeypatch.setattr("persistent_bfs.device.emulated_problem", lambda: "no g++; install it")
    result = call("race", "path:5", "--json")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == "error: no g++; install it\n"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--claim", "hope"], "'hope' is not one of"),
        (["--schedules", "0"], "--schedules"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "1", "--schedules", "2"], "--seed tries one schedule"),
        (["--source", "9"], "ids are 0 to 4"),
        pytest.param(
            ["--direction", "pull", "--advance", "warp"],
            "pull does not combine with the warp mapping",
            marks=emulated,
        ),
    ],
    ids=" ".join,
)
def test_bad_input(options: list[str], why: str) -> None:
    result = call("race", "path:5", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert why in line


def test_every_engine_and_mapping_is_offered() -> None:
    text = "".join(call("race", "--help").stdout.split())
    assert f"[{'|'.join(ENGINES)}]" in text
    assert f"[{'|'.join(ADVANCES)}]" in text

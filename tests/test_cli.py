from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import graphs
import numpy as np
import pytest
from click.testing import CliRunner, Result

from persistent_bfs import ADVANCES, ENGINES, FRONTIERS, __version__, cli
from persistent_bfs.device import cuda_problem, emulated_problem
from persistent_bfs.device.base import RepeatedDiscovery

emulated = pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))

WORDS = ("words-kjv", "--source", "faithless")

RUN_KEYS = {
    *("graph", "vertices", "arcs", "source", "engine", "advance", "device", "levels", "depth"),
    *("reached", "launches", "host_syncs", "barriers", "verified", "device_ms", "wall_ms"),
}


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(cli.main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answer(*arguments: str, code: int = 0) -> dict[str, Any]:
    """What a command prints with --json: one object, in which nothing is NaN."""
    result = call(*arguments, "--json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout, parse_constant=pytest.fail)
    return found


@pytest.fixture
def six(tmp_path: Path) -> str:
    """The 6-vertex graph on which two threads race to discover vertex 3, as a file."""
    graph = graphs.FRONTIER_MODEL
    path = tmp_path / "six.txt"
    np.savetxt(path, np.stack([graph.arc_sources(), graph.col_indices]).T, fmt="%d")
    return str(path)


def test_the_level_table_of_the_word_graph() -> None:
    report = answer("levels", *WORDS)
    columns = ("level", "frontier", "edges", "max_degree", "busiest", "warps")
    assert [tuple(row[name] for name in columns) for row in report["rows"]] == [
        (0, 1, 1, 1, "faithless", 1),
        (1, 1, 99, 99, "o", 1),
        (2, 98, 10_584, 896, "that", 4),
        (3, 1_986, 51_413, 3_218, "and", 63),
        (4, 3_394, 8_817, 30, "cubits", 107),
        (5, 38, 48, 7, "duke", 2),
        (6, 2, 2, 1, "timnah", 1),
    ]
    assert report["rows"][1]["lane_slots"] == {"thread": 32 * 99, "warp": 128, "edge": 99}
    assert report["totals"]["frontier"] == 5_520
    assert report["totals"]["edges"] == report["totals"]["lane_slots"]["edge"] == 70_964
    shares = {m: 70_964 / slots for m, slots in report["totals"]["lane_slots"].items()}
    assert report["useful_share"] == pytest.approx(shares)
    assert report["label"] == "faithless"


def test_the_level_table_for_people_shows_the_ends_of_a_deep_search() -> None:
    lines = call("levels", "path:5000").stdout.splitlines()
    assert len(lines) < 50
    assert any("4,968 more" in line for line in lines)
    last = next(line for line in lines if line.split()[:1] == ["4999"])
    assert last.split()[1:6] == ["1", "1", "1", "4999", "1"]


def test_a_search_by_the_reference() -> None:
    report = answer("run", *WORDS, "--device", "reference", "--trace")
    assert set(report) >= RUN_KEYS
    expected = {
        "graph": "words-kjv",
        "vertices": 5_522,
        "arcs": 70_966,
        "label": "faithless",
        "engine": "reference",
        "device": "reference",
        "levels": 7,
        "depth": 6,
        "reached": 5_520,
        "enqueued": 5_520,
        "launches": 0,
        "verified": True,
        "problem": None,
        "device_ms": None,
        "frontier_sizes": [1, 1, 98, 1_986, 3_394, 38, 2],
    }
    assert {name: report[name] for name in expected} == expected
    assert report["wall_ms"] > 0
    assert [row["edges"] for row in report["trace"]] == [1, 99, 10_584, 51_413, 8_817, 48, 2]


@emulated
def test_a_search_on_the_emulated_device_has_counts_and_no_time() -> None:
    report = answer("run", *WORDS, "--device", "emulated", "--engine", "persistent")
    assert set(report) >= RUN_KEYS
    assert (report["levels"], report["depth"], report["reached"]) == (7, 6, 5_520)
    assert (report["launches"], report["host_syncs"], report["verified"]) == (1, 1, True)
    assert report["device_ms"] is None
    assert report["wall_ms"] is None
    assert report["counts"]["atomics"] > 0
    assert (report["schedule"], report["seed"]) == ("roundrobin", 0)


@emulated
def test_a_frontier_may_be_dense() -> None:
    how = ("--device", "emulated", "--direction", "auto", "--frontier", "dense")
    report = answer("run", *WORDS, *how)
    assert (report["frontier"], report["direction"]) == ("dense", "auto")
    assert (report["levels"], report["reached"], report["verified"]) == (7, 5_520, True)
    assert "warp append, dense frontier" in call("run", *WORDS, *how).stdout


@emulated
def test_max_depth_stops_the_search() -> None:
    report = answer("run", "path:100", "--max-depth", "4", "--device", "emulated", "--trace")
    assert (report["depth"], report["reached"], report["verified"]) == (4, 5, True)
    assert report["frontier_sizes"] == [1] * 5


@emulated
@pytest.mark.parametrize("threads", ["32", "256"])
def test_the_naive_claim_is_caught(six: str, threads: str) -> None:
    how = ("--directed", "--device", "emulated", "--schedule", "adversarial", "--seed", "0")
    how += ("--block-threads", threads)
    naive = ("run", six, *how, "--claim", "naive", "--trace")
    report = answer(*naive, code=1)
    assert report["verified"] is False
    assert report["reached"] == 6
    assert report["enqueued"] == sum(report["frontier_sizes"]) > 6
    assert f"add up to {report['enqueued']}, but 6 vertices are reached" in report["problem"]
    assert report["device_ms"] is report["wall_ms"] is None
    assert answer("run", six, *how, "--claim", "cas", "--trace")["frontier_sizes"] == [1, 2, 2, 1]
    told = call(*naive)
    assert told.exit_code == 1
    assert "6 reached: WRONG" in told.stdout
    assert told.stderr.startswith("wrong answer: ")


@emulated
def test_some_seed_lets_the_naive_claim_discover_one_vertex_twice(six: str) -> None:
    # Which one depends on every access of the kernel, so it is looked for and not stated here.
    how = ("--directed", "--device", "emulated", "--engine", "host_loop", "--claim", "naive")
    for seed in map(str, range(1, 100)):
        result = call("run", six, *how, "--schedule", "adversarial", "--seed", seed, "--json")
        report = json.loads(result.stdout)
        assert result.exit_code == (0 if report["enqueued"] == 6 else 1)
        assert report["verified"] == (report["enqueued"] == report["reached"] == 6)
        if report["enqueued"] == 7:
            assert re.search(r"\b7\b.*\b6\b", report["problem"])
            return
    pytest.fail("no seed did")


@emulated
def test_every_engine_compared_on_the_word_graph() -> None:
    report = answer("compare", *WORDS, "--device", "emulated", "--advances", "thread,warp")
    assert (report["levels"], report["reached"], report["device"]) == (7, 5_520, "emulated")
    rows = {(row["engine"], row["advance"]): row for row in report["rows"]}
    assert list(rows) == [(engine, advance) for engine in ENGINES for advance in ("thread", "warp")]
    for (engine, _), row in rows.items():
        assert set(row) >= RUN_KEYS
        assert (row["verified"], row["levels"], row["reached"]) == (True, 7, 5_520)
        untimed = ("ms", "device_ms", "wall_ms", "us_per_level", "speedup_vs_host_loop")
        assert [row[name] for name in untimed] == [None] * len(untimed)
        assert row["lane_slots"] > 0
        assert row["atomics"] > 0
        if engine == "host_loop":
            assert row["launches"] == row["host_syncs"]
            assert row["launches"] in (7, 8)
        if engine in ("graph_while", "persistent"):
            assert (row["launches"], row["host_syncs"]) == (1, 1)
        if engine == "persistent":
            assert 7 <= row["barriers"] <= 8
    assert {"python", "numpy", "driver", "architecture"} <= set(report["environment"])


@emulated
def test_a_comparison_for_people_tells_no_time_on_the_emulated_device(tmp_path: Path) -> None:
    file = tmp_path / "comparison.json"
    result = call(
        *("compare", "path:40", "--device", "emulated", "--engines", "persistent,host_loop"),
        *("--advances", "thread", "--output", str(file)),
    )
    assert result.exit_code == 0
    assert "tells no time" in result.stdout
    assert "speedup" not in result.stdout
    rows = [line.split() for line in result.stdout.splitlines() if "right" in line]
    assert [(" ".join(row[:-6]), row[-6:-3]) for row in rows] == [
        ("host_loop thread", ["40", "40", "0"]),
        ("persistent + block thread", ["1", "1", "1"]),
        ("persistent thread", ["1", "1", "41"]),
    ]
    written = json.loads(file.read_text())["rows"]
    costs = ("engine", "tier", "launches", "host_syncs", "barriers")
    assert [tuple(row[name] for name in costs) for row in written] == [
        ("host_loop", "none", 40, 40, 0),
        ("persistent", "block", 1, 1, 1),
        ("persistent", "none", 1, 1, 41),
    ]
    assert os.listdir(tmp_path) == ["comparison.json"]


@emulated
def test_a_seed_shows_seven_vertices_in_the_frontiers_against_six_reached(six: str) -> None:
    how = ("--directed", "--device", "emulated", "--claim", "naive", "--schedule", "adversarial")
    how += ("--engine", "host_loop", "--advance", "thread", "--block-threads", "32", "--trace")
    for seed in range(40):
        result = call("run", six, *how, "--seed", str(seed), "--json")
        report = json.loads(result.stdout)
        if report["frontier_sizes"] == [1, 2, 3, 1]:
            break
    # Vertex 3 twice beside 4 at level 2, and nobody twice after that.
    assert (report["enqueued"], report["reached"], result.exit_code) == (7, 6, 1)
    assert "add up to 7, but 6 vertices are reached" in result.stderr


@emulated
def test_a_comparison_of_wrong_answers_fails(six: str) -> None:
    result = call(
        *("compare", six, "--directed", "--device", "emulated", "--claim", "naive"),
        *("--schedule", "adversarial", "--engines", "persistent", "--advances", "thread"),
    )
    assert result.exit_code == 1
    assert "WRONG" in result.stdout
    assert result.stderr.startswith("wrong answer: persistent, thread: ")


@emulated
def test_times_become_a_speedup_over_the_host_loop_of_the_same_mapping(monkeypatch: Any) -> None:
    from persistent_bfs import display, measure

    milliseconds = {"host_loop": (3.0, 4.0, 8.0), "persistent": (0.4, 0.5, 0.6)}
    plain = measure.measure

    def timed(session: Any, *arguments: Any, **options: Any) -> measure.Measurement:
        found = plain(session, *arguments, **options)
        times = measure.Timing(milliseconds[session.config.engine])
        return measure.Measurement(found.result, None, times, times)

    monkeypatch.setattr(measure, "measure", timed)
    how = ("--engines", "host_loop,persistent", "--advances", "warp", "--device", "emulated")
    report = answer("compare", "path:10", *how)
    slow, tier, fast = report["rows"]
    assert [row["tier"] for row in report["rows"]] == ["none", "block", "none"]
    assert (tier["us_per_level"], tier["speedup_vs_host_loop"]) == (50.0, 8.0)
    assert slow["ms"] == {"min": 3.0, "median": 4.0, "max": 8.0}
    assert (slow["us_per_level"], slow["speedup_vs_host_loop"]) == (400.0, 1.0)
    assert (fast["us_per_level"], fast["speedup_vs_host_loop"]) == (50.0, 8.0)
    console = display.Console(width=200, record=True, file=io.StringIO())
    console.print(display.comparison(report | {"device": "cuda"}))
    rows = [line.split() for line in console.export_text().splitlines() if "right" in line]
    assert [row[-7:] for row in rows] == [
        ["4.000", "3.000", "-", "8.000", "400.00", "1.00x", "right"],
        *[["0.500", "0.400", "-", "0.600", "50.00", "8.00x", "right"]] * 2,
    ]


@pytest.mark.cuda
def test_a_comparison_on_a_gpu_has_times() -> None:
    report = answer("compare", *WORDS, "--device", "cuda", "--repeat", "3", "--advances", "all")
    assert len(report["rows"]) == len(ENGINES) * len(ADVANCES)
    for row in report["rows"]:
        assert row["verified"]
        assert 0 < row["ms"]["min"] <= row["ms"]["median"] <= row["ms"]["max"]
        assert row["us_per_level"] == pytest.approx(1e3 * row["ms"]["median"] / 7)
        assert row["speedup_vs_host_loop"] > 0
    assert report["environment"]["architecture"].startswith("sm_")


def test_the_answer_as_a_table(tmp_path: Path) -> None:
    file = tmp_path / "answer.tsv"
    call("run", "path:4", "--source", "1", "--device", "reference", "--output", str(file))
    assert file.read_text() == "# vertex\tdistance\n0\t1\n1\t0\n2\t1\n3\t2\n"


def test_the_answer_with_labels_and_predecessors(tmp_path: Path) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("b a\nb c\nd e\n")
    file = tmp_path / "answer.tsv"
    how = ("--device", "reference", "--predecessors", "--output", str(file))
    call("run", str(edges), "--source", "b", *how)
    assert [line.split("\t") for line in file.read_text().splitlines()] == [
        ["# vertex", "distance", "predecessor"],
        ["a", "1", "1"],
        ["b", "0", "-1"],
        ["c", "1", "1"],
        ["d", "-1", "-1"],
        ["e", "-1", "-1"],
    ]


@emulated
def test_the_answer_as_arrays(tmp_path: Path) -> None:
    file = tmp_path / "answer.npz"
    call("run", "star:5", "--device", "emulated", "--predecessors", "--output", str(file))
    with np.load(file) as arrays:
        assert arrays["source"] == 0
        assert arrays["distances"].tolist() == [0, 1, 1, 1, 1]
        assert arrays["predecessors"].tolist() == [-1, 0, 0, 0, 0]
        assert arrays["distances"].dtype == np.int32


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "answer.npz"
    file.write_bytes(b"old")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", str(file))

    monkeypatch.setattr(np, "savez_compressed", full)
    result = call("run", "path:4", "--device", "reference", "--output", str(file))
    assert result.exit_code == 4
    assert result.stderr == f"error: cannot write {file}: No space left on device\n"
    assert "4 reached: verified" in result.stdout
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["answer.npz"]


@emulated
def test_a_wrong_answer_is_not_written(six: str, tmp_path: Path) -> None:
    file = tmp_path / "answer.tsv"
    result = call(
        *("run", six, "--directed", "--device", "emulated", "--claim", "naive"),
        *("--schedule", "adversarial", "--output", str(file)),
    )
    assert result.exit_code == 1
    assert not file.exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["run"], "Missing argument 'GRAPH'"),
        (["walk"], "No such command 'walk'"),
        (["run", "nowhere.mtx"], "no file 'nowhere.mtx'"),
        (["run", "path:0"], "N must be at least 1"),
        (["run", "path:x"], "not of the form path:N"),
        (["run", "."], "is a folder"),
        (["run", "words-kjv", "--source", "faithles"], "did you mean 'faithless'"),
        (["run", "path:5", "--source", "5"], "ids are 0 to 4"),
        (["run", "path:5", "--source", "-1"], "ids are 0 to 4"),
        (["run", "path:5", "--source", "1.5"], "'1.5' is no vertex"),
        (["run", "path:5", "--engine", "fast"], "'fast' is not one of"),
        (["run", "path:5", "--advance", "fast"], "'fast' is not one of"),
        (["run", "path:5", "--claim", "fast"], "'fast' is not one of"),
        (["run", "path:5", "--frontier", "dense"], "would be written and never read"),
        (["run", "path:5", "--device", "gpu"], "unknown device 'gpu'"),
        (["run", "path:5", "--device", "cuda:x"], "unknown device 'cuda:x'"),
        (["run", "path:5", "--max-depth", "-1"], "--max-depth"),
        (["run", "path:5", "--seed", "-1"], "--seed"),
        (["run", "path:5", "--block-threads", "33"], "multiple of 32"),
        (["run", "path:5", "--output", "answer.txt"], "must end in .npz or .tsv"),
        (["run", "words-kjv", "--format", "graphml"], "no format 'graphml'"),
        (["run", "words-kjv", "--graph-seed", "3"], "a seed is for generated graphs"),
        (["compare", "path:5", "--device", "reference"], "needs a device that runs kernels"),
        (["compare", "path:5", "--engines", "host_loop,fast"], "unknown engine 'fast'"),
        (["compare", "path:5", "--advances", "fast"], "unknown advance 'fast'"),
        (["compare", "path:5", "--repeat", "0"], "--repeat"),
        (["levels", "path:5", "--source", "x"], "'x' is no vertex"),
        (["list", "--wrong"], "No such option"),
    ],
    ids=" ".join,
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: list[str], why: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert why in line


def test_a_damaged_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("0 1\n1 2\n2 three\n")
    result = call("run", str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {file}:3: ")


@pytest.mark.skipif(cuda_problem() is None, reason="a GPU can be used here")
@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_gpu_asked_for_where_none_is(command: str) -> None:
    result = call(command, "path:5", "--device", "cuda", "--json")
    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr == f"error: {cuda_problem()}\n"


def test_a_compiler_that_refuses_shows_its_output_on_request(monkeypatch: Any) -> None:
    from persistent_bfs.compiler import CompileError

    def refuse(*_: Any, **__: Any) -> None:
        raise CompileError("g++ refused it", command="g++ -O2 x.cpp", output="line 1\nline 2")

    monkeypatch.setattr(sys.modules["persistent_bfs.session"], "open_device", refuse)
    short = call("run", "path:5")
    assert (short.exit_code, short.stderr) == (3, "error: g++ refused it\n")
    full = call("run", "path:5", "--verbose")
    assert full.exit_code == 3
    assert full.stderr == "error: g++ refused it\ng++ -O2 x.cpp\nline 1\nline 2\n"


def test_an_interrupt_ends_in_one_line(monkeypatch: Any) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("persistent_bfs.reference.level_table", interrupt)
    result = call("levels", "path:5")
    assert result.exit_code == 130
    assert result.stderr.strip() == "error: interrupted"


def test_a_plot_needs_matplotlib(tmp_path: Path) -> None:
    if importlib.util.find_spec("matplotlib") is not None:
        pytest.skip("matplotlib is installed")
    result = call("compare", "path:5", "--plot", str(tmp_path / "x.svg"))
    assert result.exit_code == 2
    assert "pip install matplotlib" in result.stderr


def test_generated_graphs_have_their_own_seed() -> None:
    default = answer("levels", "random:60:90")
    assert answer("levels", "random:60:90", "--graph-seed", "1")["rows"] == default["rows"]
    assert answer("levels", "random:60:90", "--graph-seed", "2")["rows"] != default["rows"]


def test_direction_is_as_asked(tmp_path: Path) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("0 1\n1 2\n")
    how = ("run", str(file), "--source", "1", "--device", "reference")
    for option, arcs, reached in (
        ((), 4, 3),
        (("--directed",), 2, 2),
        (("--undirected",), 4, 3),
        (("--directed", "--symmetrize"), 4, 3),
    ):
        report = answer(*how, *option)
        assert (report["arcs"], report["reached"]) == (arcs, reached)


def test_schedules_are_no_use_but_on_the_emulated_device() -> None:
    result = call("run", "path:5", "--device", "reference", "--seed", "3", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["seed"] is None
    assert result.stderr.startswith("note: --schedule and --seed are for the emulated device")


def test_the_list_follows_the_tables() -> None:
    report = answer("list")
    assert [row["name"] for row in report["engines"]] == list(ENGINES)
    assert [row["name"] for row in report["advances"]] == list(ADVANCES)
    assert [row["name"] for row in report["frontiers"]] == list(FRONTIERS)
    assert all(row["trade_off"] for what in ("engines", "claims") for row in report[what])
    assert [row["name"] for row in report["graphs"]] == ["words-kjv"]
    assert "kron:SCALE[:EDGEFACTOR]" in [row["usage"] for row in report["generators"]]
    devices = {row["name"]: row["usable"] for row in report["devices"]}
    assert devices["reference"]
    assert devices["emulated"] == (emulated_problem() is None)
    shown = call("list").stdout
    assert all(name in shown for name in (*ENGINES, *ADVANCES, "kron:SCALE[:EDGEFACTOR]"))


@emulated
def test_the_doctor_finds_a_device() -> None:
    report = answer("doctor")
    assert "emulated" in report["usable"]
    checks = {check["name"]: check for check in report["checks"]}
    assert checks["Python"]["ok"]
    assert checks["g++"]["ok"]
    assert checks["search on emulated"]["ok"]


def test_the_doctor_says_what_to_do_where_nothing_works(monkeypatch: Any) -> None:
    monkeypatch.setattr("persistent_bfs.doctor.cuda_problem", lambda: "no [GPU]")
    monkeypatch.setattr("persistent_bfs.doctor.emulated_problem", lambda: "no g++; install it")
    result = call("doctor")
    assert result.exit_code == 3
    assert "no [GPU]" in result.stdout
    assert "no g++; install it" in result.stdout
    assert result.stderr == "error: no device that runs kernels can be used here\n"


def test_version_and_help() -> None:
    assert __version__ in call("--version").stdout
    assert "Commands:" in call().stdout
    assert "--levels-per-launch" in call("run", "--help").stdout


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys\n"
        "from persistent_bfs.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "slow = {'scipy', 'rich', 'persistent_bfs.graph'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    for command in ("run", "compare", "levels", "expand", "race", "list", "doctor"):
        assert f"\n  {command} " in found.stdout


def module(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "persistent_bfs", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        cwd=graphs.REPOSITORY,
        timeout=120,
    )


@emulated
def test_a_warning_does_not_disturb_the_json() -> None:
    result = module(
        *("run", "path:5", "--device", "emulated", "--json"),
        PERSISTENT_BFS_CACHE_DIR=str(Path(__file__) / "cache"),
    )
    assert result.returncode == 0
    assert json.loads(result.stdout)["reached"] == 5
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: kernels will be compiled anew each time")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_reader_that_leaves_is_no_error() -> None:
    command = f"{sys.executable} -m persistent_bfs levels path:20000 --json | head -n 1"
    result = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=graphs.REPOSITORY,
        timeout=120,
    )
    assert (result.stdout, result.stderr, result.returncode) == ("{\n", "", 141)


def test_a_search_may_start_at_the_vertex_of_largest_degree() -> None:
    report = answer("run", "words-kjv", "--source", "max-degree", "--device", "reference")
    assert (report["label"], report["levels"]) == ("and", 4)


@emulated
def test_a_queue_that_overflows_is_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow(*_: object, **__: object) -> None:
        raise RepeatedDiscovery("too many")

    monkeypatch.setattr("persistent_bfs.engines.persistent.Persistent.search", overflow)
    result = call(
        "run", "path:9", "--device", "emulated", "--claim", "naive", "--engine", "persistent"
    )
    assert (result.exit_code, result.stderr) == (1, "error: too many\n")


@emulated
def test_a_cooperative_grid_that_cannot_be_resident_is_bad_usage() -> None:
    result = call("run", "path:9", "--device", "emulated", "--blocks", "1000000")
    assert result.exit_code == 2
    assert "1000000 blocks" in result.stderr


@pytest.mark.parametrize("on", ["reference", pytest.param("emulated", marks=emulated)])
def test_an_unverified_search_says_so_and_has_no_time(on: str) -> None:
    how = ("run", *WORDS, "--device", on, "--trace")
    report = answer(*how, "--no-verify")
    assert report["verified"] is report["problem"] is None
    assert (
        report["device_ms"] is report["wall_ms"] is report["reorder_ms"] is report["teps"] is None
    )
    assert (report["levels"], report["reached"]) == (7, 5_520)
    told = call(*how, "--no-verify").stdout
    assert "5,520 reached: unverified" in told
    assert "time       none, for an unverified answer" in told
    assert not re.search(r"\d ms|verified$", told.replace("unverified", ""), re.MULTILINE)
    assert "5,520 reached: verified" in call(*how).stdout


def test_nothing_is_proved_where_that_is_not_wanted(monkeypatch: Any, tmp_path: Path) -> None:
    from persistent_bfs import measure

    monkeypatch.setattr(measure, "verify", lambda *_, **__: pytest.fail("verified"))
    file = tmp_path / "answer.tsv"
    how = ("run", "path:4", "--device", "reference", "--output", str(file))
    assert call(*how, "--no-verify").exit_code == 0
    assert file.read_text() == "# vertex\tdistance\n0\t0\n1\t1\n2\t2\n3\t3\n"
    with pytest.raises(pytest.fail.Exception, match="verified"):
        call(*how)


def test_levels_of_an_unverified_answer_have_no_times() -> None:
    from persistent_bfs import BFS, measure
    from persistent_bfs.cli.run import describe_trace

    with BFS(graphs.path(3), device="reference", trace=True) as search:
        found = measure.measure(search, 0, repeat=1).result
    timed = [replace(row, begin_ns=1_000 * row.level, ns=1_000) for row in found.trace or ()]
    found = replace(found, trace=timed)
    right = measure.Measurement(found, None, None, None)
    assert [row["ns"] for row in describe_trace(right) or ()] == [1_000] * 3
    for problem, checked in ((None, False), ("vertex 1", True)):
        rows = (
            describe_trace(measure.Measurement(found, problem, None, None, checked=checked)) or []
        )
        assert [(row["level"], row["begin_ns"], row["ns"]) for row in rows] == [
            (level, None, None) for level in range(3)
        ]


@emulated
def test_an_unverified_comparison_says_so_and_has_no_times(monkeypatch: Any) -> None:
    from persistent_bfs import display, measure
    from persistent_bfs.peers import measure as peers

    for module, name in ((measure, "verify"), (peers, "verify_answer")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("verified"))
    how = ("compare", "path:20", "--device", "emulated", "--engines", "persistent")
    report = answer(*how, "--with", "scipy", "--reorder", "bfs", "--no-verify")
    assert (report["levels"], report["reached"]) == (20, 20)
    assert report["reorder_ms"] is None
    assert len(report["rows"]) > 1
    for row in [*report["rows"], *report["peers"]]:
        assert row["verified"] is row["problem"] is row["wall_ms"] is None
    assert {row["device_ms"] for row in report["rows"]} == {None}
    assert {peer["times_ours"] for peer in report["peers"]} == {None}
    console = display.Console(width=200, record=True, file=io.StringIO())
    console.print(display.comparison(report | {"device": "cuda"}))
    shown = console.export_text()
    assert shown.count("unverified") == len(report["rows"]) + 1
    assert "right" not in shown
    assert "No times: no answer was verified." in shown


@emulated
def test_a_comparison_proves_one_answer_and_compares_the_rest_with_it(monkeypatch: Any) -> None:
    from persistent_bfs import reference

    proofs: list[int] = []
    plain = reference.prove_distances
    monkeypatch.setattr(
        reference, "prove_distances", lambda *given: (proofs.append(1), plain(*given))
    )
    monkeypatch.setattr(
        reference, "bfs_reference", lambda *_, **__: pytest.fail("searched on the host")
    )
    report = answer("compare", "grid:5x5", "--device", "emulated", "--engines", "persistent")
    assert [row["verified"] for row in report["rows"]] == [True] * len(report["rows"])
    assert (report["levels"], report["reached"], proofs) == (9, 25, [1])


@emulated
@pytest.mark.parametrize("plural", ["", "s"])
def test_run_and_compare_understand_each_others_spelling(plural: str) -> None:
    how = ("path:9", "--device", "emulated", f"--engine{plural}", "host_loop")
    how += (f"--advance{plural}", "warp")
    searched = answer("run", *how)
    (row,) = answer("compare", *how)["rows"]
    for name in ("engine", "advance", "direction", "claim", "append", "frontier", "tier", "counts"):
        assert searched[name] == row[name]
    assert (searched["engine"], searched["advance"]) == ("host_loop", "warp")


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [
        ("expand", "--advance", "warp"),
        ("study", "--engine", "persistent"),
        ("compare", "--engine", "persistent"),
    ],
)
def test_one_name_is_a_list_of_names(command: str, option: str, name: str) -> None:
    graph = () if command == "study" else ("path:3",)
    what = option.strip("-")
    assert f"unknown {what} 'fast'" in call(command, *graph, option, f"{name},fast").stderr


@emulated
def test_a_comparison_may_be_limited_in_depth() -> None:
    how = ("compare", "path:50", "--device", "emulated", "--engines", "host_loop,persistent")
    report = answer(*how, "--max-depth", "4", "--source", "10")
    assert (report["levels"], report["reached"], report["max_depth"]) == (5, 9, 4)
    assert len(report["rows"]) > 3
    for row in report["rows"]:
        assert (row["depth"], row["reached"], row["verified"]) == (4, 9, True)
    assert answer(*how, "--tiers", "none", "--advances", "warp")["max_depth"] is None


def test_other_libraries_have_no_depth_limit() -> None:
    result = call("compare", "path:5", "--with", "scipy", "--max-depth", "2")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --max-depth is for our searches: leave it out")


COMMANDS_ON_AUTO = (
    ("run", "path:3"),
    pytest.param(
        ("compare", "path:3", "--engines", "host_loop", "--advances", "warp"), marks=emulated
    ),
    pytest.param(("expand", "path:3", "--advances", "warp", "--repeat", "1"), marks=emulated),
)


@pytest.mark.skipif(cuda_problem() is None, reason="a GPU can be used here")
@pytest.mark.parametrize("command", COMMANDS_ON_AUTO)
def test_a_gpu_that_is_not_used_is_said_once(command: tuple[str, ...], monkeypatch: Any) -> None:
    from persistent_bfs import doctor

    asked: list[str] = []

    def unused(device: str) -> str:
        asked.append(device)
        return f"a GPU was not used,\nthe {device} device was"

    monkeypatch.setattr(doctor, "unused_gpu", unused, raising=False)
    result = call(*command)
    assert result.exit_code == 0
    (device,) = asked
    assert device in ("emulated", "reference")
    warning = f"warning: a GPU was not used, the {device} device was"
    assert result.stderr.splitlines().count(warning) == 1


@pytest.mark.parametrize("said", [None, "a GPU was not used"])
def test_nothing_is_said_of_a_gpu_that_was_not_asked_for(
    said: str | None, monkeypatch: Any
) -> None:
    from persistent_bfs import doctor

    monkeypatch.setattr(doctor, "unused_gpu", lambda _: said, raising=False)
    assert call("run", "path:3", "--device", "reference").stderr == ""
    if said is None and cuda_problem() is not None:
        assert call("run", "path:3").stderr == ""

"""The benchmarks run, count, and compare only what may be compared."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from clocked import ClockedDevice
from pytest_benchmark.utils import PercentageRegressionCheck

from persistent_bfs import BFS, ORDERS, Graph, read_graph
from persistent_bfs.device import cuda, emulated_problem
from persistent_bfs.measure import Measurement, find_problem
from persistent_bfs.reorder import reorder

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"

emulated = pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where python looks first when the file is run.
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


ratios = load("ratios")
sweep = load("sweep")


def bench(*arguments: str, code: int = 0) -> str:
    """Run one benchmark file on the emulated device in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--device=emulated"]
    # Inside a worker of xdist the benchmarks would think that they are one, too.
    environment = {key: v for key, v in os.environ.items() if not key.startswith("PYTEST_XDIST")}
    environment["PYTHONPATH"] = str(ROOT)
    answer = subprocess.run(
        [*command, "--benchmark-disable-gc", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    output = answer.stdout + answer.stderr
    assert answer.returncode == code, output
    return output


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run on the emulated device keeps."""
    file = tmp_path_factory.mktemp("benchmarks") / "kept.json"
    output = bench(
        "benchmarks/bench_depth.py", "-k", "path:4 or path:1-", f"--benchmark-json={file}"
    )
    assert "its times mean nothing" in output
    assert "medians over" not in output
    found: dict[str, Any] = json.loads(file.read_text())
    return found


@emulated
def test_what_is_kept_says_what_was_asked_and_of_which_device(kept: dict[str, Any]) -> None:
    assert kept["machine_info"]["device"]["kind"] == "emulated"
    assert "no clocks" in kept["machine_info"]["clocks"]["problem"]
    found = {row["name"]: row for row in kept["benchmarks"]}
    assert set(found) == {
        f"test_depth[{graph}-{loop}]" for graph in ("path:1", "path:4") for loop in ratios.LOOPS
    }
    row = found["test_depth[path:4-host_loop]"]
    assert row["group"] == "path:4"
    told = row["extra_info"]
    assert (told["levels"], told["reached"]) == (4, 4)
    assert (told["launches"], told["host_syncs"]) == (4, 4)
    assert told["device_ms"] is told["wall_over_device"] is told["teps"] is None
    assert told["counts"]["atomics"] > 0
    assert told["l2"] == "warm"


def written(folder: Path, kept: dict[str, Any], factors: dict[str, float], **device: Any) -> Path:
    """A kept run whose times are scaled by the end of a benchmark's id."""
    run = json.loads(json.dumps(kept))
    run["machine_info"]["device"] |= device
    for row in run["benchmarks"]:
        for end, factor in factors.items():
            if row["name"].endswith(end):
                row["stats"] = {
                    name: value * factor if isinstance(value, float) else value
                    for name, value in row["stats"].items()
                }
    file = folder / "0001_kept.json"
    file.write_text(json.dumps(run))
    return file


COMPARED = ("benchmarks/bench_depth.py", "-k", "path:4 or path:1-")


@emulated
@pytest.mark.parametrize(
    ("factors", "options", "fails"),
    [
        # A machine ever so much faster: slower now by the clock, by the ratios the same but for
        # the noise of a busy machine.
        ({"]": 1e-7}, (), True),
        ({"]": 1e-7}, ("--compare-ratios",), False),
        # One engine alone was faster: that is what the ratios are for.
        ({"-persistent]": 1e-7}, ("--compare-ratios",), True),
    ],
)
def test_ratios_are_compared_in_place_of_times(
    tmp_path: Path,
    kept: dict[str, Any],
    factors: dict[str, float],
    options: tuple[str, ...],
    fails: bool,
) -> None:
    file = written(tmp_path, kept, factors)
    how = (f"--benchmark-compare={file}", "--benchmark-compare-fail=min:1000000%", *options)
    output = bench(*COMPARED, *how, code=1 if fails else 0)
    assert ("Performance has regressed" in output) == fails
    if fails and options:
        assert "ratio to host_loop" in output
        assert "host_batched" not in output.partition("Performance has regressed")[2]


@emulated
def test_a_run_of_another_gpu_is_refused_unless_asked_for(
    tmp_path: Path, kept: dict[str, Any]
) -> None:
    file = written(tmp_path, kept, {}, name="another GPU")
    how = (*COMPARED, f"--benchmark-compare={file}")
    output = bench(*how, code=4)
    assert "are of another GPU" in output
    assert "--compare-devices" in output
    bench(*how, "--compare-devices")


def compared_as_the_readme_says(folder: Path, before: Path, after: Path) -> str:
    """What the README's command says of two kept runs that lie where it looks for them."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^\$ pytest-benchmark (compare .*)$", readme, flags=re.M)
    command, *names = shlex.split(line)
    for name, file in zip(names[:2], (before, after), strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / name)
    answer = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", command, *names],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@emulated
def test_kept_runs_are_compared_as_the_readme_says(tmp_path: Path, kept: dict[str, Any]) -> None:
    before = written(tmp_path, kept, {"]": 4.0}).rename(tmp_path / "quarter.json")
    output = compared_as_the_readme_says(tmp_path / "here", before, written(tmp_path, kept, {}))
    for row in kept["benchmarks"]:
        assert f"benchmark '{row['fullname']}': 2 tests" in output
    assert output.count("(4.00)") >= len(kept["benchmarks"])


def test_the_run_that_is_kept_can_be_compared_with(tmp_path: Path) -> None:
    file = BENCHMARKS / "results" / "h200" / "benchmarks.json"
    rows = json.loads(file.read_text(encoding="utf-8"))["benchmarks"]
    files = {row["fullname"].split("::")[0] for row in rows}
    assert files == {path.relative_to(ROOT).as_posix() for path in BENCHMARKS.glob("bench_*.py")}
    assert {row["extra_info"]["device_name"] for row in rows} == {"NVIDIA H200"}
    output = compared_as_the_readme_says(tmp_path, file, file)
    for row in rows:
        assert f"benchmark '{row['fullname']}': 2 tests" in output


def test_a_baseline_is_that_of_the_same_test_and_graph() -> None:
    names = ["f::t[g-host_loop]", "f::t[g-persistent]", "f::t[g-persistent-no-tier]"]
    assert [ratios.baseline_of(name, names) for name in names] == ["f::t[g-host_loop]"] * 3
    assert ratios.baseline_of("f::u[g-persistent]", names) is None
    assert ratios.baseline_of("f::t[h]", names) is None
    assert ratios.ratios({"t[g-host_loop]": 2.0, "t[g-persistent]": 1.0, "t[h]": 5.0}) == {
        "t[g-host_loop]": 1.0,
        "t[g-persistent]": 0.5,
    }


class Row(dict[str, Any]):
    def __init__(self, fullname: str, median: float) -> None:
        super().__init__(median=median)
        self.fullname = fullname
        self.group = "g"
        self.stats = SimpleNamespace(data=[median])


@pytest.mark.parametrize(("before", "told"), [(0.25, False), (0.2, True)])
def test_a_ratio_fails_by_as_much_as_the_check_allows(before: float, told: bool) -> None:
    rows = [Row("t[g-host_loop]", 40.0), Row("t[g-persistent]", 10.0)]
    kept = {
        "t[g-host_loop]": {"stats": {"median": 1.0}},
        "t[g-persistent]": {"stats": {"median": before}},
    }
    session = SimpleNamespace(benchmarks=rows, compared_mapping={Path("kept"): kept})
    check = ratios.RatioCheck(PercentageRegressionCheck("median", 10), session)
    found = check.fails(rows[1], {"path": "kept"})
    assert (found is not None) == told
    assert check.fails(rows[0], {"path": "kept"}) is None


def test_the_ratios_are_shown_smallest_first() -> None:
    lines: list[str] = []
    terminal = SimpleNamespace(
        section=lambda title, **_: lines.append(title),
        write_line=lambda line, **_: lines.append(line),
    )
    rows = [
        *(Row("f::t[g-host_loop]", 4.0), Row("f::t[g-host_batched]", 3.0)),
        Row("f::t[g-persistent]", 1.0),
    ]
    ratios.show(terminal, rows)
    assert lines == [
        "medians over host_loop of the same run",
        "g",
        "     0.2500  t[g-persistent]",
        "     0.7500  t[g-host_batched]",
        "     1.0000  t[g-host_loop]",
    ]


def test_every_benchmark_file_says_what_it_measures() -> None:
    files = {path.stem for path in BENCHMARKS.glob("bench_*.py")}
    assert files == {
        *("bench_engines", "bench_advance", "bench_depth"),
        *("bench_primitives", "bench_python_call"),
    }


def test_the_orders_are_swept_over_deep_and_wide_graphs() -> None:
    choices = dict(sweep.SWEEPS["orders"]())
    assert list(choices) == list(ORDERS)
    graph = read_graph("road:12x12")
    for name, how in choices.items():
        with BFS(graph, device="reference", **how) as search:
            assert search.reorder == name
            assert find_problem(graph, search.run(5)) is None
    assert set(sweep.GRAPHS_OF["orders"]) & set(sweep.WIDE) == {"kron:20"}


def test_without_a_gpu_a_sweep_says_in_one_line_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "cuda_problem", lambda: "the driver sees no GPU")
    answer = CliRunner().invoke(sweep.main, ["orders", str(tmp_path / "x.json")])
    assert answer.exit_code == 3
    assert answer.output == "Error: the driver sees no GPU\n"
    assert not list(tmp_path.iterdir())


@emulated
def test_deep_graphs_are_searched_with_a_cold_l2_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "opened", lambda _: ClockedDevice())
    measure = sweep.measure
    states: list[tuple[str, str]] = []

    def noted(search: BFS, *arguments: Any, l2: str, **options: Any) -> Measurement:
        states.append((search.config.engine, l2))
        return measure(search, *arguments, l2=l2, **options)

    monkeypatch.setattr(sweep, "measure", noted)
    output = tmp_path / "deep.json"
    how = ("--graph", "path:5", "--repeat", "2", "--passes", "1")
    answer = CliRunner().invoke(sweep.main, ["deep", str(output), *how])
    assert answer.exit_code == 0, answer.output
    rows = json.loads(output.read_text())["rows"]
    assert [row["choice"] for row in rows] == list(dict(sweep.deep()))
    assert [state for _, state in states] == ["warm", "warm", "warm", "cold"]
    assert rows[2]["choice"] == "auto"
    assert rows[3]["choice"] == "auto, cold L2"
    assert [rows[3][key] for key in ("engine", "tier")] == [
        rows[2][key] for key in ("engine", "tier")
    ]


@emulated
def test_a_sweep_keeps_the_graphs_before_one_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "opened", lambda _: ClockedDevice())
    measure = sweep.measure

    searched: list[str] = []

    def wrong_on_the_cycle(search: BFS, *arguments: Any, **options: Any) -> Measurement:
        searched.append(f"{search.graph.name} {search.reorder}")
        found = measure(search, *arguments, **options)
        if search.graph.name == "cycle:6":
            return replace(found, device=None, problem="vertex 3 differs")
        return found

    monkeypatch.setattr(sweep, "measure", wrong_on_the_cycle)
    reordered: list[str] = []

    def once(graph: Graph, name: str) -> Any:
        reordered.append(f"{graph.name} {name}")
        return reorder(graph, name)

    monkeypatch.setattr(sweep, "reorder", once)
    graphs, counts = ("--graph", "path:5", "--graph", "cycle:6"), ("--repeat", "2", "--passes", "2")
    output = tmp_path / "x.json"
    answer = CliRunner().invoke(sweep.main, ["orders", str(output), *graphs, *counts])
    assert answer.exit_code == 1
    assert answer.output.endswith("Error: cycle:6, none: vertex 3 differs\n")
    rows = json.loads(output.read_text())["rows"]
    assert [(row["graph"], row["choice"]) for row in rows] == [("path:5", name) for name in ORDERS]
    assert all(row["levels"] == 5 and row["ms"]["median"] > 0 for row in rows)
    assert reordered == [f"{graph} {name}" for graph in ("path:5", "cycle:6") for name in ORDERS]
    # Each pass begins with another choice.
    one, other, *rest = ORDERS
    turns = [f"path:5 {name}" for name in (one, other, *rest, *rest, one, other)]
    assert searched == [*turns, "cycle:6 none"]
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]

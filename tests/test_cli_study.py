from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from study_data import made_study

from persistent_bfs import ENGINES, cli
from persistent_bfs.device import cuda_problem, emulated_problem
from persistent_bfs.device.base import DeviceError
from persistent_bfs.device.emulated import EmulatedDevice
from persistent_bfs.study import run
from persistent_bfs.study.plan import VARIANTS, Plan, depth_specs, width_specs
from persistent_bfs.study.primitives import PRIMITIVES
from persistent_bfs.study.suite import SUITE, prepare

emulated = pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))

KEPT = Path(__file__).parent / "study-emulated.json"
HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(cli.main, ["study", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A whole quick study of the emulated device, and what it printed."""
    folder = tmp_path_factory.mktemp("study") / "made" / "here"
    plots = () if HAS_MATPLOTLIB else ("--no-plots",)
    result = call("--quick", "--device", "emulated", "--out", str(folder), "--json", *plots)
    assert result.exit_code == 0, result.output
    assert "the emulated device tells no time" in result.stderr
    return folder, json.loads(result.stdout)


@emulated
def test_a_quick_study_from_one_end_to_the_other(taken: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = taken
    files = {path.name for path in folder.iterdir()}
    plots = {"depth.svg", "width.svg", "frontiers.svg"} if HAS_MATPLOTLIB else set()
    assert files == {"report.html", "report.md", "study.json"} | plots
    study = run.read(folder / "study.json")
    plan = Plan.from_summary(study["plan"])
    assert plan == Plan.of("emulated", quick=True)
    assert summary["models"] is summary["levels"] is summary["best"] is None
    assert summary["refused"] == []
    names = [*plan.depths, *plan.widths, *plan.graphs]
    assert [(row["name"], row["engine"]) for row in study["searches"]] == [
        (name, engine) for name in names for engine in VARIANTS
    ]
    for row in study["searches"]:
        assert row["device_ms"] is row["wall_ms"] is None
        assert sum(part["levels"] for part in row["regimes"].values()) == row["levels"]
        assert sum(part["edges"] for part in row["regimes"].values()) == row["edges"]
    assert not (folder.parent / "here.part").exists()


@emulated
def test_what_grows_with_the_levels_is_what_each_engine_pays(
    taken: tuple[Path, dict[str, Any]],
) -> None:
    study = run.read(taken[0] / "study.json")
    for row in study["searches"]:
        if row["sweep"] == "graphs":
            continue
        levels = row["levels"]
        if row["engine"] == "host_loop":
            assert (row["launches"], row["host_syncs"], row["barriers"]) == (levels, levels, 0)
        if ENGINES[VARIANTS[row["engine"]]["engine"]].cooperative:
            assert (row["launches"], row["host_syncs"]) == (1, 1)
        if row["sweep"] == "depth":
            # Every arc of a path is looked at once, from both ends.
            assert (row["levels"], row["edges"]) == (row["vertices"], 2 * (row["vertices"] - 1))


@emulated
def test_the_same_machine_counts_the_same(
    taken: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    kept = taken[0] / "study.json"
    how = ("--from", str(kept), "--against", str(kept), "--out", str(tmp_path), "--no-plots")
    assert call(*how).exit_code == 0
    assert "all counts are equal" in (tmp_path / "report.md").read_text()


@pytest.mark.skipif(not HAS_MATPLOTLIB, reason="Matplotlib is not installed")
def test_telling_anew_changes_nothing(tmp_path: Path) -> None:
    kept = tmp_path / "study.json"
    kept.write_text(KEPT.read_text())
    texts = []
    for _ in range(2):
        result = call("--from", str(kept))
        assert result.exit_code == 0, result.output
        texts.append({path.name: path.read_bytes() for path in tmp_path.iterdir()})
    assert texts[0] == texts[1]
    assert {"report.html", "report.md", "depth.svg"} <= texts[0].keys()
    assert kept.read_text() == KEPT.read_text()


def test_a_gpus_study_is_summed_up(tmp_path: Path) -> None:
    kept = tmp_path / "study.json"
    kept.write_text(run.dump(made_study()))
    result = call("--from", str(kept), "--no-plots", "--json")
    summary = json.loads(result.stdout)
    assert [row["engine"] for row in summary["models"]] == list(VARIANTS)
    assert all(row["worst"] < 0.05 for row in summary["models"])
    assert [row["engine"] for row in summary["paths"]] == list(VARIANTS)
    assert all(row["r_squared"] > 0.98 for row in summary["paths"])
    assert summary["incomplete"] is None
    table = call("--from", str(kept), "--no-plots").stdout
    assert "made GPU" in table
    assert "µs a level" in table


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--from", "nowhere.json"), "nowhere.json"),
        (("--from", str(KEPT), "--quick"), "--from measures nothing: leave out --quick"),
        (("--from", str(KEPT), "--repeat", "3"), "leave out --repeat"),
        (("--from", str(KEPT), "--engines", "persistent"), "leave out --engines"),
        (("--from", str(KEPT), "--graphs", "maze"), "leave out --graphs"),
        (("--engines", "warp_drive"), "unknown engine 'warp_drive'; choose from host_loop"),
        (("--graphs", "maze,atlantis", "--no-plots"), "the suite's graphs are path-100"),
        (("--from", str(KEPT), "--l2", "cold"), "leave out --l2"),
        (("--from", str(KEPT), "--device", "emulated"), "leave out --device"),
        (("--repeat", "0"), "0 is not in the range x>=1"),
        (("--l2", "hot"), "'hot' is not one of 'warm', 'cold'"),
        (("--device", "reference", "--no-plots"), "study needs a device that runs kernels"),
        (("--device", "tpu", "--no-plots"), "unknown device 'tpu'"),
        (("--from", __file__), "is not a study: line 1"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


@emulated
def test_a_study_that_could_not_be_compared_is_not_even_begun(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run, "take", lambda *_, **__: pytest.fail("it was measured"))
    how = ("--device", "emulated", "--against", str(KEPT), "--no-plots", "--out", str(tmp_path))
    result = call(*how)
    assert result.exit_code == 2
    assert "these studies cannot be compared: quick: no and yes" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("persistent_bfs.study.report.plots_problem", lambda: "no Matplotlib")
    result = call("--quick", "--device", "emulated")
    assert (result.exit_code, result.stderr) == (2, "error: no Matplotlib\n")


@pytest.mark.skipif(cuda_problem() is None, reason="a GPU can be used here")
def test_a_gpu_that_is_not_there_is_one_line() -> None:
    result = call("--device", "cuda", "--no-plots")
    assert (result.exit_code, result.stderr) == (3, f"error: {cuda_problem()}\n")


@emulated
def test_a_wrong_answer_has_no_time_and_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sweeps = sys.modules["persistent_bfs.study.sweeps"]
    right = sweeps.measure

    def wrong_once(session: Any, *arguments: Any, **how: Any) -> Any:
        found = right(session, *arguments, **how)
        is_it = session.graph.vertices == 4 and session.config.tier != "none"
        return replace(found, problem="vertex 3 differs") if is_it else found

    monkeypatch.setattr(sweeps, "measure", wrong_once)
    small = Plan("emulated", True, "warm", 1, 1, tuple(VARIANTS), depth_specs(2), (), ())
    monkeypatch.setattr(Plan, "of", lambda *_, **__: small)
    result = call("--device", "emulated", "--no-plots", "--out", str(tmp_path))
    assert result.exit_code == 1
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("wrong answer")]
    assert line == "wrong answer: persistent on path:4: vertex 3 differs"


@pytest.fixture(name="small")
def small_fixture(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A plan of three paths for whatever engines and graphs are asked for; how to take it."""
    of = Plan.of

    def smaller(kind: str, **how: Any) -> Plan:
        return replace(of(kind, **how), depths=depth_specs(2), widths=())

    monkeypatch.setattr(Plan, "of", smaller)
    return ("--device", "emulated", "--quick", "--no-plots")


@emulated
def test_engines_and_graphs_are_those_asked_for(small: tuple[str, ...], tmp_path: Path) -> None:
    edges = tmp_path / "star.txt"
    edges.write_text("0 1\n0 2\n0 3\n")
    graphs = f"words-kjv,grid:3x2,{edges}"
    how = ("--engines", "persistent,host_loop", "--graphs", graphs, "--out", str(tmp_path / "a"))
    assert call(*small, *how).exit_code == 0
    study = run.read(tmp_path / "a" / "study.json")
    names = ["host_loop", "persistent, no tier", "persistent"]
    assert study["plan"]["engines"] == list(study["engines"]) == names
    rows = [row for row in study["searches"] if row["sweep"] == "graphs"]
    found = {row["name"]: (row["vertices"], row["source"], row["levels"]) for row in rows}
    assert len(rows) == 3 * len(names)
    assert found["grid:3x2"] == (6, 1, 3)  # from the first of the largest degree
    assert found[str(edges)] == (4, 0, 2)
    assert found["words-kjv"][0] == 5522
    assert "grid:3x2" in (tmp_path / "a" / "report.md").read_text()
    assert call(*small, "--graphs", "none", "--out", str(tmp_path / "b")).exit_code == 0
    assert "None was searched." in (tmp_path / "b" / "report.md").read_text()


@emulated
def test_an_interrupted_study_keeps_what_was_measured(
    small: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sweeps = sys.modules["persistent_bfs.study.sweeps"]
    right, done = sweeps.measure, []

    def impatient(*arguments: Any, **how: Any) -> Any:
        done.append(arguments)
        if len(done) == 4:
            raise KeyboardInterrupt
        return right(*arguments, **how)

    monkeypatch.setattr(sweeps, "measure", impatient)
    result = call(*small, "--out", str(tmp_path))
    assert result.exit_code == 130
    study = run.read(tmp_path / "study.json")
    total = len(PRIMITIVES) + len(VARIANTS) * (3 + len(study["plan"]["graphs"]))
    missing = total - len(PRIMITIVES) - 3
    assert len(study["primitives"]) == len(PRIMITIVES)
    assert len(study["searches"]) == 3
    assert study["incomplete"] == {
        "reason": "interrupted",
        "interrupted": True,
        "missing": missing,
        "of": total,
    }
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("incomplete: ")]
    assert line == f"incomplete: {missing} of {total} measurements missing: interrupted"
    assert "This study is not complete" in (tmp_path / "report.md").read_text()
    # Told anew it says the same, and is as incomplete.
    kept = (tmp_path / "report.md").read_text()
    again = call("--from", str(tmp_path / "study.json"), "--no-plots")
    assert again.exit_code == 130
    assert (tmp_path / "report.md").read_text() == kept


@emulated
def test_before_anything_is_measured_an_interrupt_is_one(
    small: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(run.primitives, "measure_primitive", interrupted)
    result = call(*small, "--out", str(tmp_path))
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "error: interrupted"
    assert list(tmp_path.iterdir()) == []


@emulated
@pytest.mark.parametrize("alive", [True, False])
def test_an_engine_that_fails_does_not_end_the_study_unless_the_device_does(
    small: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, alive: bool
) -> None:
    sweeps = sys.modules["persistent_bfs.study.sweeps"]
    right = sweeps.measure

    def failing(session: Any, *arguments: Any, **how: Any) -> Any:
        if session.config.engine == "graph_while" and session.graph.vertices == 2:
            if not alive:
                monkeypatch.setattr(EmulatedDevice, "stream", gone)
            raise DeviceError("the graph fell apart")
        return right(session, *arguments, **how)

    def gone(_: Any) -> Any:
        raise DeviceError("the device is gone")

    monkeypatch.setattr(sweeps, "measure", failing)
    result = call(*small, "--graphs", "none", "--out", str(tmp_path))
    assert result.exit_code == 3
    study = run.read(tmp_path / "study.json")
    refused = [row for row in study["searches"] if row["refused"]]
    if alive:
        assert [(row["engine"], row["refused"]) for row in refused] == [
            ("graph_while", "failed: the graph fell apart")
        ]
        assert len(study["searches"]) == 3 * len(VARIANTS)
        assert study["incomplete"] is None
        assert "failed: graph_while on path:2: the graph fell apart" in result.stderr
    else:
        assert refused == []
        assert len(study["searches"]) == len(VARIANTS) + list(VARIANTS).index("graph_while")
        assert study["incomplete"]["reason"] == "the graph fell apart"
        assert "measurements missing: the graph fell apart" in result.stderr


@pytest.mark.parametrize("kind", ["cuda", "emulated"])
@pytest.mark.parametrize("quick", [False, True])
def test_plans_have_what_the_study_promises(kind: str, quick: bool) -> None:
    plan = Plan.of(kind, quick=quick)
    assert plan.engines == tuple(VARIANTS)
    assert plan.depths[0] == "path:1"
    assert Plan.from_summary(json.loads(json.dumps(plan.summary()))) == plan
    if (kind, quick) == ("cuda", False):
        assert plan.depths[-1] == "path:16384"
        assert plan.widths[0] == "grid:1x8192"
        assert plan.widths[-1] == "grid:4096x4097"


def test_every_engine_is_compared_and_those_with_tiers_without_them_too() -> None:
    engines = [how["engine"] for how in VARIANTS.values()]
    assert set(engines) == set(ENGINES)
    for name, row in ENGINES.items():
        assert VARIANTS[name] == {"engine": name}
        assert engines.count(name) == (2 if row.tiers else 1)


def test_widths_that_do_not_fit_their_levels_are_refused() -> None:
    with pytest.raises(ValueError, match="it takes 7"):
        width_specs(4, 6)


def test_a_file_of_the_suite_is_found_or_another_graph_stands_in(tmp_path: Path) -> None:
    (case,) = (case for case in SUITE if case.name == "maze")
    small = case._replace(graph="maze.txt", stand_in="maze:4x4")
    missing = prepare(small, tmp_path)
    assert (missing.stands_in, missing.graph.vertices) == (True, 16)
    (tmp_path / "maze.txt").write_text("0 1\n1 2\n")
    prepare.cache_clear()
    found = prepare(small, tmp_path)
    assert (found.stands_in, found.graph.vertices) == (False, 3)
    assert found.expected.distances.tolist() == [0, 1, 2]


@pytest.mark.parametrize("case", [case for case in SUITE if case.small], ids=str)
def test_small_cases_are_small(case: Any) -> None:
    prepared = prepare(case)
    assert prepared.graph.vertices <= 6_000
    assert not prepared.stands_in
    deep = len(prepared.expected.frontier_sizes) > 20
    assert deep == case.deep

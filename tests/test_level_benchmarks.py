"""The benchmarks of single levels: what the trace costs, and what the levels move."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from click.testing import CliRunner
from test_benchmarks import BENCHMARKS, ROOT, emulated, load

from persistent_bfs import BFS, BFSResult, Graph, read_graph
from persistent_bfs.answer import Answer
from persistent_bfs.device import cuda
from persistent_bfs.reference import WrongAnswer, bfs_reference

trace_cost = load("trace_cost")
bytes_moved = load("bytes_moved")
summary = load("summary")

GRID = read_graph("grid:3x3")  # from a corner: frontiers of 1, 2, 3, 2 and 1

LEVELS = [(0, 100), (100, 200), (300, 100), (400, 300), (700, 200)]  # begin and length, ns


def traced(
    graph: Graph = GRID,
    times: list[tuple[int, int]] = LEVELS,
    mappings: list[str] | None = None,
    **changed: Any,
) -> BFSResult:
    """A search by the reference, with a trace as the persistent engine would leave it."""
    with BFS(graph, device="reference", trace=True) as session:
        result = session.run(0)
    assert result.trace is not None
    names = mappings or ["warp"] * len(times)
    trace = [
        replace(level, begin_ns=begin, ns=length, mapping=mapping)
        for level, (begin, length), mapping in zip(result.trace, times, names, strict=True)
    ]
    return replace(result, **({"trace": trace, "device_ms": 0.001, "tier": "none"} | changed))


def problem(result: BFSResult) -> str | None:
    found: str | None = trace_cost.find_trace_problem(
        GRID, result, bfs_reference(GRID, 0).distances
    )
    return found


def test_a_right_trace_has_no_problem() -> None:
    assert problem(traced()) is None
    # The narrow levels are a tier's: there may be time before and after them.
    gaps = [(0, 90), (100, 200), (300, 90), (400, 300), (700, 200)]
    mappings = ["warp", "one block", "one block", "warp", "warp"]
    assert problem(traced(times=gaps, mappings=mappings, tier="block")) is None
    # Without a clock there are no times to check.
    result = traced()
    untimed = [replace(level, begin_ns=None, ns=None) for level in result.trace or []]
    assert problem(replace(result, trace=untimed, device_ms=None)) is None


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (traced(times=[(0, 100), (110, 190), *LEVELS[2:]]), "levels 0 and 1 are 10 ns apart"),
        (traced(times=[(0, 110), *LEVELS[1:]]), "levels 0 and 1 are -10 ns apart"),
        (traced(times=[*LEVELS[:4], (700, 0)]), "level 4 has no duration"),
        (traced(device_ms=0.0008), "the levels take 0.0009 ms of 0.0008"),
        (traced(trace=(traced().trace or [])[:4]), "the frontiers' sizes are not those"),
        (
            traced(trace=[replace(level, edges=4) for level in traced().trace or []]),
            "level 0 has 2 arcs, not 4",
        ),
    ],
)
def test_a_wrong_trace_is_found(result: BFSResult, told: str) -> None:
    found = problem(result)
    assert found is not None
    assert told in found


class Timed:
    """Sessions that take 2 ms, and 2.1 with a trace; which ones searched is written down."""

    searched: list[bool]

    def __init__(self, _: Graph, *, trace: bool = False, **how: Any) -> None:
        assert how["engine"] == "persistent"
        self.trace = trace
        self.shape = "1 block"
        self.runs = 0

    def __enter__(self) -> Timed:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        pass

    def run(self, source: int) -> BFSResult:
        assert source == 0
        self.runs += 1
        self.searched.append(self.trace)
        warm = 50.0 if self.runs <= 3 else 0.0
        return traced(device_ms=warm + (2.1 if self.trace else 2.0))


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each search of `Timed`, in order, whether it was traced."""
    found: list[bool] = []
    monkeypatch.setattr(Timed, "searched", found, raising=False)
    monkeypatch.setattr(trace_cost, "BFS", Timed)
    return found


def test_both_are_timed_in_turn_and_warm_ups_are_not(searched: list[bool]) -> None:
    row = trace_cost.measure_case(GRID, None, trace_cost.Case("grid:3x3", "none"), 0, 3)
    # Each after one of a session that has no trace, in two passes.
    assert searched == [False, True, False, False, False, False, False, True] * 6
    assert row["untraced_ms"]["quartiles"] == [2.0, 2.0]
    assert row["traced_ms"]["median"] == 2.1
    assert row["samples"] == {"untraced": [2.0] * 6, "traced": [2.1] * 6}
    assert row["percent"] == pytest.approx(5)
    assert row["percent_error"] is None  # of two passes there is none
    assert row["ns_a_level"] == pytest.approx(20_000)  # 0.1 ms over five levels
    assert (row["levels"], row["mappings"]) == (5, {"warp": 5})
    line = trace_cost.describe({"graph": "grid:3x3", "tiers": "none"} | row)
    assert line.endswith("2.0000 ms, traced 2.1000: +5.0 %, +20000.0 ns a level")


def test_each_pass_opens_its_sessions_anew(
    searched: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[bool] = []
    begin = Timed.__init__

    def noted(self: Timed, graph: Graph, **how: Any) -> None:
        opened.append(how["trace"])
        begin(self, graph, **how)

    monkeypatch.setattr(Timed, "__init__", noted)
    row = trace_cost.measure_case(GRID, None, trace_cost.Case("grid:3x3", "none"), 0, 3, 4)
    # The one before both, then the two.
    assert opened == [False, False, True, False, True, False] * 2
    assert len(searched) == 4 * 24
    assert row["samples"] == {"untraced": [2.0] * 12, "traced": [2.1] * 12}
    assert row["sessions_ms"] == {"untraced": [2.0] * 4, "traced": [2.1] * 4}
    assert row["percent"] == pytest.approx(5)
    assert row["percent_error"] == 0


def test_what_is_opened_second_is_slower_and_that_is_no_cost_of_the_trace() -> None:
    # By 6 %, traced or not; each pass has a sample that is far off.
    off = [1.0, 1.0, 9.0, 1.06, 1.06, 1.06, 1.0, 1.0, 1.0, 1.06, 0.1, 1.06]
    on = [1.06, 1.06, 1.06, 1.0, 1.0, 5.0, 1.06, 1.06, 1.06, 1.0, 1.0, 1.0]
    row = trace_cost.compared({"untraced": off, "traced": on}, 4, 5)
    assert row["sessions_ms"]["untraced"] == [1.0, 1.06, 1.0, 1.06]
    assert row["percent"] == pytest.approx(0.0)
    assert row["percent_error"] == pytest.approx(0.0)
    # What does cost is told, and how much it differs: 1 % and 3 % are 2, give or take 1.
    more = [t * (1.01 if i < 6 else 1.03) for i, t in enumerate(on)]
    row = trace_cost.compared({"untraced": off, "traced": more}, 4, 5)
    assert row["percent"] == pytest.approx(2.0)
    assert row["percent_error"] == pytest.approx(1.0)
    assert row["ns_a_level"] == pytest.approx(0.02 * 1.03 * 1e6 / 5)


def test_an_odd_number_of_passes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "trace-cost.json"
    answer = CliRunner().invoke(trace_cost.main, [str(file), "--passes", "5"])
    assert answer.exit_code == 2
    assert "--passes 5: an even number" in answer.output
    assert not file.exists()


def test_a_search_that_is_wrong_is_not_timed(
    searched: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = traced(times=[(0, 110), *LEVELS[1:]])
    monkeypatch.setattr(Timed, "run", lambda self, _: wrong if self.trace else traced())
    with pytest.raises(WrongAnswer, match=r"^traced: levels 0 and 1 are -10 ns apart"):
        trace_cost.measure_case(GRID, None, trace_cost.Case("grid:3x3"), 0, 3)
    off = bfs_reference(GRID, 0).distances.copy()
    off[8] = 5
    lost = replace(traced(), answer=Answer({"distances": off}))
    monkeypatch.setattr(Timed, "run", lambda self, _: traced() if self.trace else lost)
    with pytest.raises(WrongAnswer, match=r"^untraced: vertex 8: distance 5, expected 4"):
        trace_cost.measure_case(GRID, None, trace_cost.Case("grid:3x3"), 0, 3)


@emulated
def test_the_cost_of_the_trace_is_written(tmp_path: Path) -> None:
    file = tmp_path / "trace-cost.json"
    graphs = ("--graph", "path:12", "--graph", "kron:5", "--graph", "not-here.txt")
    how = ("--device", "emulated", "--repeat", "1")
    answer = CliRunner().invoke(trace_cost.main, [str(file), *graphs, *how])
    assert answer.exit_code == 0, answer.output
    assert "passed over: no not-here.txt" in answer.output
    assert answer.output.count("this device tells no time") == 2
    found = json.loads(file.read_text())
    assert found["environment"]["architecture"]
    assert [row["graph"] for row in found["rows"]] == ["path:12", "kron:5"]
    for row in found["rows"]:
        graph = read_graph(row["graph"])
        sizes = bfs_reference(graph, row["source"]).frontier_sizes
        assert row["verified"] is True
        assert row["levels"] == sum(row["mappings"].values()) == len(sizes)
        assert row["percent"] is row["traced_ms"] is None
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@emulated
def test_a_wrong_trace_fails_the_run_and_has_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_cost, "find_trace_problem", lambda *_: "a gap")
    file = tmp_path / "trace-cost.json"
    how = ("--graph", "path:6", "--device", "emulated", "--repeat", "1")
    answer = CliRunner().invoke(trace_cost.main, [str(file), *how])
    assert answer.exit_code == 1
    assert "wrong: path:6, auto" in answer.output
    (row,) = json.loads(file.read_text())["rows"]
    assert (row["verified"], row["problem"]) == (False, "traced: a gap")
    assert "percent" not in row
    assert "traced_ms" not in row


def test_graphs_are_those_of_the_cases_or_others() -> None:
    assert trace_cost.cases_of(()) == list(trace_cost.CASES)
    found = trace_cost.cases_of(("path:10000", "kron:7"))
    assert [(case.graph, case.tiers, case.source) for case in found] == [
        ("path:10000", "auto", 0),
        ("path:10000", "cluster", 0),
        ("kron:7", "auto", None),
    ]


@pytest.mark.parametrize("module", [trace_cost, bytes_moved], ids=["trace_cost", "bytes_moved"])
def test_without_a_gpu_one_line_says_what_is_missing(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "cuda_problem", lambda: "the driver sees no GPU")
    for where, code, told in (
        ("cuda", 3, "Error: the driver sees no GPU\n"),
        ("reference", 2, "the reference device runs no kernels\n"),
        ("abacus", 2, "unknown device 'abacus'"),
    ):
        answer = CliRunner().invoke(module.main, [str(tmp_path / "x.json"), "--device", where])
        assert answer.exit_code == code, answer.output
        assert told in answer.output
    assert not list(tmp_path.iterdir())


# Made up, in the form of ``ncu --csv --page raw``: a line of names, one of units, one a kernel.
HEAD = (
    '"ID","Kernel Name","Block Size","Grid Size","dram__bytes_read.sum",'
    '"dram__bytes_write.sum","gpu__time_duration.sum","lts__t_bytes.sum"'
)
LOG = f"""\
==PROF== Connected to process 77 (/usr/bin/python3)
==PROF== Profiling "search_level_host" - 0: 0%....50%....100% - 1 pass
==PROF== Profiling "search_level_host" - 1: 0%....50%....100% - 2 passes
{HEAD}
"","","","","Mbyte","kbyte","usecond","byte"
"0","search_level_host","(256, 1, 1)","(8, 1, 1)","1.5","12.25","3.5","1,234,567"
"1","search_level_host","(256, 1, 1)","(1,024, 1, 1)","2,048","n/a","1,250.5","0"
==PROF== Disconnected from process 77
"""


def test_what_ncu_writes_is_read_in_bytes_and_nanoseconds() -> None:
    first, second = bytes_moved.parse(LOG)
    assert first == {
        "kernel": "search_level_host",
        "grid": "(8, 1, 1)",
        "block": "(256, 1, 1)",
        "dram_read": 1_500_000,
        "dram_written": 12_250,
        "l2_bytes": 1_234_567,
        "profiled_ns": 3_500,
    }
    assert second["grid"] == "(1,024, 1, 1)"
    assert (second["dram_read"], second["profiled_ns"]) == (2_048_000_000, 1_250_500)
    assert second["dram_written"] is None
    assert bytes_moved.passes(LOG) == 2
    assert bytes_moved.passes("nothing") is None


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("==PROF== Connected\n", "ncu wrote of no kernel"),
        ("\n".join(LOG.splitlines()[:5]), "ncu wrote of no kernel"),
        (LOG.replace("usecond", "fortnight"), "gives gpu__time_duration.sum in 'fortnight'"),
    ],
)
def test_what_ncu_should_not_write_is_refused(log: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bytes_moved.parse(log)


def level(number: int, **changed: Any) -> dict[str, Any]:
    row = {"level": number, "frontier": 5, "edges": 9, "direction": "push", "mapping": "warp"}
    return row | {"ns": 1000.0} | changed


def kernel(**changed: Any) -> dict[str, Any]:
    row = {"kernel": "search_level_host", "dram_read": 3e6, "dram_written": 1e6, "l2_bytes": 7e6}
    return row | {"profiled_ns": 2500.0} | changed


def test_a_level_has_its_share_of_the_copy_rate() -> None:
    # 4 MB in 1,000 ns are 4,000 GB/s, of 5,000.
    (row,) = bytes_moved.join([kernel()], [level(0, ns=9e9)], [level(0)], 5000.0)
    assert (row["dram_bytes"], row["persistent_ns"]) == (4_000_000, 1000)
    assert row["share_of_copy_rate"] == pytest.approx(0.8)
    assert bytes_moved.describe(row).endswith("1.00 us, 80 % of the copy rate")
    for other, rate in ((level(0, direction="pull"), 5000.0), (level(0, ns=None), None)):
        (row,) = bytes_moved.join([kernel()], [level(0)], [other], rate)
        assert row["persistent_ns"] is row["share_of_copy_rate"] is None


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ([kernel()], "ncu saw 1 kernels of 2 levels"),
        ([kernel(), kernel(dram_written=None)], "ncu did not count the bytes of level 1"),
    ],
)
def test_levels_that_ncu_did_not_count_are_refused(
    kernels: list[dict[str, Any]], message: str
) -> None:
    levels = [level(0), level(1)]
    with pytest.raises(ValueError, match=message):
        bytes_moved.join(kernels, levels, levels, None)


FAKE = """\
#!{python}
# Runs what it is given as ncu would, and writes a kernel for each of {levels} levels.
import subprocess, sys

at = sys.argv.index("--log-file")
answer = subprocess.run(sys.argv[at + 2 :])
with open(sys.argv[at + 1], "w") as log:
    print('''{head}\\n"","","","","byte","byte","ns","byte"''', file=log)
    for level in range({levels}):
        print(f'"{{level}}","search_level_host","(256,1,1)","(4,1,1)",'
              f'"{{level + 1}},000","500","10","9"', file=log)
    print("{tail}", file=log)
sys.exit(answer.returncode or {code})
"""


@pytest.fixture
def fake_ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a program in the place of ncu that runs what it is given and makes its figures up."""

    def make(levels: int, code: int = 0, tail: str = "") -> None:
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / "ncu"
        program.write_text(
            FAKE.format(python=sys.executable, levels=levels, head=HEAD, code=code, tail=tail)
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        monkeypatch.setenv("PYTHONPATH", str(ROOT))

    return make


ON_KRON = ("kron:6", "--device", "emulated", "--repeat", "1")


@emulated
def test_every_level_is_counted_beside_its_time(
    tmp_path: Path, fake_ncu: Callable[..., None]
) -> None:
    graph = read_graph("kron:6")
    sizes = bfs_reference(graph, int(graph.degrees.argmax())).frontier_sizes.tolist()
    fake_ncu(len(sizes))
    file = tmp_path / "bytes-moved.json"
    answer = CliRunner().invoke(bytes_moved.main, [str(file), *ON_KRON])
    assert answer.exit_code == 0, answer.output
    found = json.loads(file.read_text())
    assert found["copy_gb_per_second"] is found["passes"] is None
    assert found["environment"]["architecture"]
    assert found["ncu"].startswith("ncu --clock-control none --cache-control none")
    assert [row["frontier"] for row in found["levels"]] == sizes
    for number, row in enumerate(found["levels"]):
        assert row["level"] == number
        assert row["dram_bytes"] == 1000 * (number + 1) + 500
        assert row["persistent_ns"] is row["share_of_copy_rate"] is None
    assert f"level {len(sizes) - 1}: " in answer.output
    (line,) = [
        line for line in summary.levels_table(tmp_path).splitlines() if line.startswith("| 0 |")
    ]
    assert line == f"| 0 | push | 1 | {graph.max_degree} | 0.00 | 0.00 | - | - |"


@emulated
@pytest.mark.parametrize(
    ("levels", "code", "tail", "told"),
    [
        (1, 0, "", "Error: ncu saw 1 kernels of "),
        (3, 1, "==ERROR== no counters for you", "Error: ncu ends with 1: ==ERROR== no counters"),
        (3, 9, "the end", "Error: ncu ends with 9: "),
    ],
)
def test_where_ncu_does_not_count_one_line_says_why(
    tmp_path: Path,
    fake_ncu: Callable[..., None],
    levels: int,
    code: int,
    tail: str,
    told: str,
) -> None:
    fake_ncu(levels, code, tail)
    file = tmp_path / "bytes-moved.json"
    answer = CliRunner().invoke(bytes_moved.main, [str(file), *ON_KRON])
    assert answer.exit_code == 1
    assert told in answer.output
    assert answer.output.count("Error") == 1
    assert not file.exists()


@emulated
def test_a_missing_ncu_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytes_moved.shutil, "which", lambda _: None)
    answer = CliRunner().invoke(bytes_moved.main, [str(tmp_path / "x.json"), *ON_KRON])
    assert answer.exit_code == 1
    assert answer.output == ("Error: ncu is not installed: Nsight Compute is what counts bytes\n")


@emulated
@pytest.mark.parametrize(
    ("graph", "told"), [("not-here.txt", "there is no not-here.txt"), ("kron:x", "Error: ")]
)
def test_a_graph_that_is_not_to_be_had_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: str, told: str
) -> None:
    monkeypatch.setattr(bytes_moved.shutil, "which", lambda name: name)
    arguments = [str(tmp_path / "x.json"), graph, *ON_KRON[1:]]
    answer = CliRunner().invoke(bytes_moved.main, arguments)
    assert answer.exit_code == 1
    assert told in answer.output
    assert answer.output.count("\n") == 1


@emulated
def test_what_ncu_looks_at_is_a_proven_search(monkeypatch: pytest.MonkeyPatch) -> None:
    how = ["--profiled", "nowhere", *ON_KRON]
    answer = CliRunner().invoke(bytes_moved.main, how)
    assert (answer.exit_code, answer.output) == (0, f"{bytes_moved.RIGHT}\n")

    class Wrong(BFS):
        """Loses the farthest vertex of each search."""

        def run(self, source: int, **how: Any) -> Any:
            result = super().run(source, **how)
            distances = result.distances.copy()
            distances[int(distances.argmax())] = -1
            return replace(result, answer=Answer({"distances": distances}))

    monkeypatch.setattr(bytes_moved, "BFS", Wrong)
    for arguments in (how, ["nowhere", *ON_KRON]):
        monkeypatch.setattr(bytes_moved.shutil, "which", lambda name: name)
        answer = CliRunner().invoke(bytes_moved.main, arguments)
        assert answer.exit_code == 1
        assert "nearest neighbour" in answer.output
        assert bytes_moved.RIGHT not in answer.output


def test_the_table_of_levels_holds_what_was_recorded(tmp_path: Path) -> None:
    row = {
        "level": 2,
        "direction": "pull",
        "frontier": 1_234_567,
        "edges": 89_000_000,
        "dram_bytes": 45_678_000.0,
        "l2_bytes": 123_456_000.0,
        "persistent_ns": 34_560.0,
        "share_of_copy_rate": 0.3304,
    }
    untimed = row | {"level": 3, "persistent_ns": None, "share_of_copy_rate": None}
    report = {
        "graph": "kron:22",
        "device": "a GPU",
        "driver": "1.2",
        "repeat": 10,
        "copy_gb_per_second": {"min": 3990.0, "median": 4000.0, "max": 4010.0},
        "levels": [row, untimed],
    }
    (tmp_path / "bytes-moved.json").write_text(json.dumps(report))
    text = summary.levels_table(tmp_path)
    lines = text.splitlines()
    assert lines[2] == "| 2 | pull | 1,234,567 | 89,000,000 | 45.68 | 123.46 | 34.6 | 33 % |"
    assert lines[3].endswith("| - | - |")
    assert len({line.count("|") for line in lines[:4]}) == 1
    assert "4,000 GB/s" in lines[-1]
    assert "a GPU, driver 1.2" in lines[-1]


@pytest.mark.parametrize("old", ["", "old\nlines\n"])
def test_the_summary_fills_the_page(tmp_path: Path, old: str) -> None:
    kept = BENCHMARKS / "results" / "h200"
    for path in kept.glob("*.json"):
        (tmp_path / path.name).symlink_to(path)
    # A backslash and a digit are no reference to a group.
    report = {"graph": "\\1", "device": "d", "driver": "v", "repeat": 1, "levels": []}
    moved = tmp_path / "bytes-moved.json"
    moved.unlink(missing_ok=True)
    moved.write_text(json.dumps(report | {"copy_gb_per_second": None}))
    page = tmp_path / "page.md"
    page.write_text(f"a\n<!-- levels -->\n{old}<!-- end of levels -->\nz\n")
    for _ in range(2):
        answer = CliRunner().invoke(summary.main, [str(tmp_path), "--page", str(page)])
        assert answer.exit_code == 0, answer.output
        text = summary.levels_table(tmp_path)
        assert page.read_text() == f"a\n<!-- levels -->\n{text}\n<!-- end of levels -->\nz\n"
    assert "a copy, read and written: not timed" in text
    assert "\\1 from the vertex" in text

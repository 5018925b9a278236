"""The README is kept true: its Python runs, its commands are the CLI's, its table is recorded."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from persistent_bfs import ENGINES, cli, read_graph
from persistent_bfs.device import emulated_problem
from persistent_bfs.peers import PEERS
from persistent_bfs.reference import bfs_reference

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
RESULTS = ROOT / "benchmarks" / "results" / "h200"


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


def _summary() -> ModuleType:
    spec = importlib.util.spec_from_file_location("summary", ROOT / "benchmarks" / "summary.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_first_block_is_two_commands() -> None:
    lines = _blocks("bash")[0].splitlines()
    assert len(lines) == 2
    assert "persistent-bfs compare words-kjv" in lines[0]
    assert "python -m pytest" in lines[1]


def test_the_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for code in _blocks("python"):  # each goes on where the one before ended
        exec(compile(code, "README.md", "exec"), names)
    first, depths, *others = capsys.readouterr().out.splitlines()
    graph = read_graph("road:300x300")
    expected = bfs_reference(graph, 0)
    levels, reached = len(expected.frontier_sizes), int(expected.frontier_sizes.sum())
    assert first.startswith(f"{levels} {reached} {expected.distances[:5]} ")
    assert json.loads(depths) == [
        len(bfs_reference(graph, source).frontier_sizes) - 1 for source in (0, 5, 17)
    ]
    # The corner of a grid is 39 + 29 edges from the opposite one.
    assert others == [
        "{'Rome': 1, 'Milan': 0, 'Turin': 1, 'Naples': 2}",
        "[-1  0  1] [0 1]",
        "[3, 3, 4, 4]",
        "[68, 67, 66, 65, 64, 63, 62, 61] True",
        "persistent, push, warp mapping, min claim, warp append, sparse frontier",
    ]


def _shown_commands() -> list[list[str]]:
    """The persistent-bfs commands of the README, split into words."""
    lines = [line for block in _blocks("console") for line in block.splitlines()]
    lines = [line[2:] for line in lines if line.startswith("$ ")] + _blocks("bash")[0].splitlines()
    words = [shlex.split(line) for line in lines]
    return [line[line.index("persistent-bfs") :] for line in words if "persistent-bfs" in line]


def test_every_option_shown_is_one_the_command_has() -> None:
    commands = _shown_commands()
    assert {command[1] for command in commands} >= {"compare", "run", "expand", "race", "doctor"}
    for _, name, *words in commands:
        known: set[str] = set()
        for parameter in cli.main.commands[name].params:
            known.update(parameter.opts, parameter.secondary_opts)
        assert {word for word in words if word.startswith("--")} <= known, name


@pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))
def test_the_libraries_shown_are_compared_with() -> None:
    (words,) = [command for command in _shown_commands() if "--with" in command]
    names = words[words.index("--with") + 1].split(",")
    absent = [name for name in names if not PEERS[name].installed]
    if absent:
        pytest.skip(f"not installed: {', '.join(absent)}")
    # By one engine, where the README's has all.
    how = ("--device", "emulated", "--engines", "persistent", "--advances", "warp", "--json")
    result = CliRunner().invoke(cli.main, [*words[1:], *how])
    assert result.exit_code == 0
    found = json.loads(result.stdout)["peers"]
    assert [peer["name"] for peer in found if peer["verified"]] == names


@pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))
def test_the_race_shown_is_caught() -> None:
    (line,) = [
        line for block in _blocks("console") for line in block.splitlines() if "--schedule " in line
    ]
    result = CliRunner().invoke(cli.main, shlex.split(line)[2:])
    assert result.exit_code == 1
    assert "wrong answer: frontier sizes add up to" in result.stderr


def test_the_engines_are_those_of_the_table() -> None:
    assert re.findall(r"^\| `(\w+)` \|", README, flags=re.M) == list(ENGINES)


@pytest.mark.parametrize(
    ("page", "tables"),
    [
        ("README.md", {"table", "wide_in_short"}),
        ("docs/performance.md", {"deep", "wide", "levels", "trace", "orders"}),
    ],
)
def test_the_tables_are_the_recorded_ones(
    page: str, tables: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    text = Path(page).read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- end of (\w+) -->", text)) == tables
    summary = _summary()
    assert summary.fill(text, RESULTS.relative_to(ROOT)) == text
    for table in tables:
        emptied = re.sub(
            rf"<!-- {table} -->\n.*?<!-- end", f"<!-- {table} -->\n<!-- end", text, flags=re.S
        )
        assert emptied != text
        assert summary.fill(emptied, RESULTS.relative_to(ROOT)) == text
    with pytest.raises(click.ClickException, match="to fill"):
        summary.fill("no table", RESULTS)

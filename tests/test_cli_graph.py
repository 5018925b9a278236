"""How commands take a graph: standard input, limits, labels, and a start that leads nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from persistent_bfs import cli


def call(*arguments: str, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(cli.main, arguments, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_graph_is_read_from_standard_input() -> None:
    result = call("levels", "-", "--json", stdin=b"0 1\n1 2\n")
    assert (result.exit_code, result.stderr) == (0, "")
    report = json.loads(result.stdout)
    assert [row["frontier"] for row in report["rows"]] == [1, 1, 1]


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        ("1 2\n", (), "vertex 0, which has no edges; --source max-degree begins where"),
        ("1 2\n2 0\n", ("--directed",), "vertex 0, which has no edges out; --source"),
        ("a b\nb c\n", ("--directed",), None),
        ("b a\nb c\n", ("--directed",), r"vertex 0 ('a'), which has no edges out"),
        ("1 2\n", ("--source", "0"), None),
        ("1 2\n", ("--source", "max-degree"), None),
        ("0 1\n", (), None),
        ("0 0\n", (), None),
    ],
)
def test_a_default_source_without_edges_is_said(content, options, told, tmp_path) -> None:
    file = tmp_path / "x.txt"
    file.write_text(content)
    result = call("levels", str(file), "--json", *options)
    assert result.exit_code == 0
    json.loads(result.stdout)
    if told is None:
        assert result.stderr == ""
    else:
        assert result.stderr.startswith("warning: no --source given: ")
        assert told in result.stderr
        assert result.stderr.count("\n") == 1


def test_a_missing_label_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text("10 20\n20 30\n")
    for source, code in (("10", 0), ("1", 2), ("40", 2)):
        result = call("levels", str(file), "--relabel", "--source", source, "--json")
        assert result.exit_code == code
        if code:
            assert result.stderr.startswith(f"error: '{source}' is no vertex label")


@pytest.mark.filterwarnings("default")
def test_a_header_is_said_on_stderr(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("source,target\n0,1\n")
    result = call("levels", str(file), "--json")
    assert result.exit_code == 0
    assert result.stderr == f"warning: {file}:1: the header 'source target' is passed over\n"


@pytest.mark.parametrize(
    ("limit", "code", "told"),
    [
        ("1K", 2, "419 bytes of content and copies of them need 2,514 bytes of memory"),
        ("10M", 2, "2,000,000 vertices and 1 edges need 64,0"),
        ("0.2G", 0, ""),
        ("200000000", 0, ""),
        ("1000MiB", 0, ""),
        ("0", 2, "'0' is no number of bytes"),
        ("much", 2, "'much' is no number of bytes, such as 500000000, 512M or 4G"),
        ("-1G", 2, "'-1G' is no number of bytes"),
    ],
)
def test_the_memory_limit_is_in_bytes_or_units(limit, code, told, tmp_path) -> None:
    file = tmp_path / "x.gr"
    file.write_text("p tw 2000000 1\n1 2\n" + "c\n" * 200)
    result = call("levels", str(file), "--json", "--memory-limit", limit)
    assert result.exit_code == code
    assert told in result.stderr
    assert (result.stderr == "") == (code == 0)

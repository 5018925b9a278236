"""``persistent-bfs cache``, and ``list --resources``, which reads what is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from persistent_bfs import cache, cli, compiler
from persistent_bfs.compiler import Compiler
from persistent_bfs.config import rows_by_loop


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(cli.main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    wanted = tmp_path / "cache"
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(wanted))
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "8")
    return wanted


@pytest.fixture
def filled(folder: Path) -> Path:
    for number, suffix in enumerate((".cubin", ".so", ".so")):
        with cache.work_folder("kernel") as work:
            (work / "made").write_bytes(bytes(2**20))
            cache.publish(f"kernel-{number:024x}{suffix}", work / "made", {})
    (folder / "notes.txt").write_text("mine")
    return folder


def test_a_cache_that_is_not_there_is_empty_and_stays_away(folder: Path) -> None:
    for option in ((), ("--clear",)):
        report = json.loads(call("cache", *option, "--json").stdout)
        assert (report["entries"], report["bytes"], report["kinds"]) == (0, 0, {})
        assert report["problem"] is None
        assert not folder.exists()


def test_the_cache_is_shown(filled: Path) -> None:
    report = json.loads(call("cache", "--json").stdout)
    size = sum(file.stat().st_size for file in filled.glob("kernel-*"))
    assert report == {
        "format": "persistent-bfs cache",
        "version": report["version"],
        "folder": str(filled),
        "entries": 3,
        "kinds": {"cubin": 1, "so": 2},
        "bytes": size,
        "limit_bytes": 8 * 2**20,
        "cleared": None,
        "cleared_bytes": None,
        "problem": None,
    }
    shown = call("cache").stdout
    assert f"{filled}\n" in shown
    assert "3 entries (1 cubin, 2 so)" in shown
    assert "3.0 MiB of at most 8.0 MiB" in shown


def test_the_cache_is_cleared(filled: Path) -> None:
    size = sum(file.stat().st_size for file in filled.glob("kernel-*"))
    report = json.loads(call("cache", "--clear", "--json").stdout)
    assert (report["entries"], report["cleared"], report["cleared_bytes"]) == (0, 3, size)
    assert [file.name for file in filled.iterdir()] == ["notes.txt"]
    assert "cleared  0 entries" in call("cache", "--clear").stdout


def test_a_folder_that_is_not_safe_is_said(filled: Path) -> None:
    filled.chmod(0o777)
    assert "is not safe, others than its owner can write to it" in call("cache").stdout


def test_a_bad_limit_is_one_line(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "much")
    result = call("cache")
    assert result.exit_code == 3
    assert result.stderr == (
        "error: PERSISTENT_BFS_CACHE_LIMIT is 'much'; it must be a number of MiB, such as 1024\n"
    )


def report_on(kernels: tuple[str, ...]) -> str:
    return "".join(
        f"ptxas info    : Compiling entry function '{kernel}' for 'sm_80'\n"
        f"    0 bytes stack frame\nptxas info    : Used {20 + number} registers, 64 bytes smem\n"
        for number, kernel in enumerate(kernels)
    )


def test_resources_come_from_the_cache_and_all_are_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {kernel for config in rows_by_loop() for kernel in config.kernels}
    compiled = []

    def compile_one(*asked: Any) -> str:
        compiled.append(asked)
        asked[-1].write_bytes(b"cubin")
        return report_on(tuple(name for name in sorted(names) if f" {name}(" in asked[1]))

    row = compiler.CUDA_COMPILERS["nvrtc"]._replace(
        find=lambda: Compiler(Path("nvrtc"), "NVRTC 13.0"),
        architectures=lambda _: (80,),
        compile=compile_one,
    )
    monkeypatch.setitem(compiler.CUDA_COMPILERS, "nvrtc", row)
    monkeypatch.delenv(compiler.COMPILER_VARIABLE, raising=False)

    def listed(*options: str) -> str:
        return call("list", "--resources", "--architecture", "sm_80", *options).stdout

    report = json.loads(listed("--json"))
    asked_for = len(compiled)
    assert 0 < asked_for <= len(list(rows_by_loop()))
    assert len(report["rows"]) == sum(len(config.kernels) for config in rows_by_loop())
    assert {row["shared_bytes"] for row in report["rows"]} == {64}

    lines = listed().splitlines()
    assert len(lines) == len(report["rows"]) + 3  # architecture, columns, rule
    assert all(line == line.rstrip() for line in lines)
    assert len(compiled) == asked_for

    next(folder.glob("*.cubin")).unlink()
    listed()
    assert len(compiled) == asked_for + 1

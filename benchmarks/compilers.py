"""Measure the same searches as NVRTC and as nvcc compile them, in one process, in turn.

    python benchmarks/compilers.py benchmarks/results/h200/compilers.json

A row a graph of the sweeps, deep and wide, as `BFS` searches it by default. Each compiler has a
device of its own on the one context; passes alternate between them, the first place too, and each
pass opens its session anew, for sessions differ by where in memory they lie.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from sweep import DEEP

from persistent_bfs import BFS, read_graph
from persistent_bfs.cli.output import print_json, published
from persistent_bfs.compiler import COMPILER_VARIABLE
from persistent_bfs.device.cuda import CudaDevice
from persistent_bfs.measure import Timing, describe_environment, measure
from persistent_bfs.reference import bfs_reference

COMPILERS = ("nvrtc", "nvcc")

WIDE = (
    "internet-as-22july06.txt.gz",
    "social-facebook-combined.txt.gz",
    "email-Enron.txt.gz",
    "social-Slashdot0902.txt.gz",
    "web-cnr-2000.txt.xz",
    "kron:20",
    "kron:22",
    "random:4194304:67108864",
)


def path_of(name: str) -> str:
    """A file of the folder that ``PERSISTENT_BFS_GRAPHS`` names, or a spec as it is."""
    file = Path(os.environ.get("PERSISTENT_BFS_GRAPHS", "")) / name
    return str(file) if file.is_file() else name


def row_of(devices: dict[str, CudaDevice], name: str, passes: int, repeat: int) -> dict[str, Any]:
    """One graph by either compiler: medians of all samples, and the ratio of the medians."""
    graph = read_graph(path_of(name))
    source = int(graph.degrees.argmax()) if name in WIDE else 0
    expected = bfs_reference(graph, source).distances
    samples: dict[str, list[float]] = {compiler: [] for compiler in COMPILERS}
    medians: dict[str, list[float]] = {compiler: [] for compiler in COMPILERS}
    for turn in range(passes):
        for compiler in COMPILERS if turn % 2 else COMPILERS[::-1]:
            os.environ[COMPILER_VARIABLE] = compiler
            with BFS(graph, device=devices[compiler]) as search:
                found = measure(search, source, repeat=repeat, expected=expected)
            assert found.device is not None, found.problem
            samples[compiler] += found.device.samples
            medians[compiler].append(found.device.median)
    timings = {compiler: Timing(tuple(samples[compiler])) for compiler in COMPILERS}
    return {
        "graph": name,
        "levels": int(expected.max()) + 1,
        **{compiler: timings[compiler].spread() for compiler in COMPILERS},
        "session_medians": medians,
        "ratio": timings["nvrtc"].median / timings["nvcc"].median,
    }


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--passes", default=6, show_default=True)
@click.option("--repeat", default=30, show_default=True)
def main(file: Path, passes: int, repeat: int) -> None:
    """Write the record to FILE."""
    devices = {compiler: CudaDevice() for compiler in COMPILERS}
    report: dict[str, Any] = {
        "environment": describe_environment(devices["nvcc"].info),
        "passes": passes,
        "repeat": repeat,
        "rows": [],
    }
    for name in (*DEEP, *WIDE):
        row = row_of(devices, name, passes, repeat)
        report["rows"].append(row)
        print(f"{name:36} {row['nvrtc']['median']:9.4f} {row['nvcc']['median']:9.4f}", end=" ")
        print(f"{row['ratio']:7.4f}", flush=True)
        with published(file) as out:
            print_json(report, "compilers", out)


if __name__ == "__main__":
    main()

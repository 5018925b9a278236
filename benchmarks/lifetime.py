"""Measure what sessions cost that come and go, and what they leave behind: nothing.

    python benchmarks/lifetime.py benchmarks/results/h200/lifetime.json

First one-call searches (`bfs`), each with its upload: what a call takes beyond the search and the
upload themselves. Then sessions on one device, opened, searched and closed, or dropped; with and
without other libraries at work between them. Free device memory, the process's resident memory,
threads, file descriptors and the depth of CUDA's context stack are written down after the first
hundred and at the end.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np

from persistent_bfs import BFS, Graph, bfs, read_graph
from persistent_bfs.cli.output import print_json, published
from persistent_bfs.device import open_device
from persistent_bfs.device.base import Device
from persistent_bfs.engines.base import uploads
from persistent_bfs.measure import Timing, describe_environment

Report = dict[str, Any]

WARM_UP = 100
GRAPHS = ("grid:64x64", "star:5000")
CALLED = "grid:512x512"


def context_depth(device: Any) -> int:
    """Contexts on this thread's stack of the driver's, which is as before afterwards."""
    cu, taken = device.cu, []
    while True:
        status, context = cu.cuCtxGetCurrent()
        if status.value or not int(context):
            break
        taken.append(cu.cuCtxPopCurrent()[1])
    for context in reversed(taken):
        cu.cuCtxPushCurrent(context)
    return len(taken)


def standing(device: Device) -> Report:
    """What this process holds now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    held: Report = {
        "resident_bytes": pages * os.sysconf("SC_PAGE_SIZE"),
        "threads": threading.active_count(),
        "file_descriptors": len(os.listdir("/proc/self/fd")),
        "free_device_bytes": device.free_bytes(),
    }
    if device.info.kind == "cuda":
        held |= {
            "contexts": context_depth(device),
            "allocated_bytes": device.allocated_bytes,  # type: ignore[attr-defined]
            "not_given_back": len(device.driver.problems),  # type: ignore[attr-defined]
        }
    return held


def growth(before: Report, after: Report) -> Report:
    """What has become more, and device memory that has become less."""
    grown = {name: after[name] - before[name] for name in before}
    grown["free_device_bytes"] *= -1
    return grown


def calls(device: Device, name: str, count: int) -> Report:
    """One-call searches of a grid from a corner, and what its parts take in a session."""
    graph = read_graph(name)
    depth = bfs(graph, 0, device=name_of(device)).depth
    with BFS(graph, device=device) as search:
        walls, copies = [], []
        for _ in range(20):
            began = time.perf_counter()
            search.run(0)
            walls.append((time.perf_counter() - began) * 1e3)
        for _ in range(20):
            began = time.perf_counter()
            arrays = uploads(graph, search.config)
            made = [device.upload(array, key) for key, array in arrays.items()]
            copies.append((time.perf_counter() - began) * 1e3)
            for buffer in made:
                buffer.free()
    took = []
    before: Report = {}
    for call in range(count):
        if call == WARM_UP:
            before = standing(device)
        began = time.perf_counter()
        result = bfs(graph, 0, device=name_of(device))
        took.append((time.perf_counter() - began) * 1e3)
        assert (result.depth, result.reached) == (depth, graph.vertices)
    search_ms, upload_ms = float(np.median(walls)), float(np.median(copies))
    call_ms = Timing(tuple(took[WARM_UP:]))
    return {
        "graph": graph.name,
        "calls": count,
        "call_ms": call_ms.spread(),
        "search_ms": search_ms,
        "upload_ms": upload_ms,
        "beyond_ms": call_ms.median - search_ms - upload_ms,
        "growth": growth(before, standing(device)),
    }


def name_of(device: Device) -> str:
    """The device's name, by which it is found again and not opened anew."""
    return device.info.kind


def sessions(device: Device, count: int, between: Callable[[], None]) -> Report:
    """Sessions of two graphs in turn: every third one is dropped, not closed."""
    graphs: list[Graph] = [read_graph(name) for name in GRAPHS]
    before: Report = {}
    began = time.perf_counter()
    for number in range(count):
        if number == WARM_UP:
            before = standing(device)
        graph = graphs[number % 2]
        search = BFS(graph, device=device, block_threads=64, predecessors=bool(number % 5))
        result = search.run(number % graph.vertices)
        assert result.reached == graph.vertices
        if number % 3:
            search.close()
        else:
            assert result.distances[number % graph.vertices] == 0
        del search, result
        if number % 500 == 0:
            between()
    seconds = time.perf_counter() - began
    return {
        "sessions": count,
        "ms": seconds * 1e3 / count,
        "growth": growth(before, standing(device)),
    }


@contextmanager
def others() -> Iterator[Callable[[], list[str]]]:
    """Let the other libraries that are there compute something on the GPU."""
    works: dict[str, Callable[[], int]] = {}
    if find_spec("torch") is not None:
        import torch

        works["torch"] = lambda: int(torch.arange(10, device="cuda").sum().item())
    if find_spec("cupy") is not None:
        import cupy

        works["cupy"] = lambda: int(cupy.arange(10).sum())

    def work() -> list[str]:
        for name, sum_up in works.items():
            assert sum_up() == 45, name
        return list(works)

    yield work


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--device", default="cuda")
@click.option("--sessions", "count", default=10_000, show_default=True)
@click.option("--calls", "call_count", default=2_000, show_default=True)
def main(file: Path, device: str, count: int, call_count: int) -> None:
    """Write the record to FILE."""
    opened = open_device(device).device
    assert opened is not None
    report: Report = {"environment": describe_environment(opened.info)}
    report["driver"] = getattr(getattr(opened, "driver", None), "name", None)
    report["calls"] = calls(opened, CALLED, call_count)
    report["sessions"] = sessions(opened, count, lambda: None)
    if device == "cuda":
        with others() as work:
            report["beside"] = work()
            work()
            report["sessions_beside"] = sessions(opened, count // 10, work)
            work()
    with published(file) as out:
        print_json(report, "lifetime", out)
    print_json({name: report[name] for name in report if name != "environment"}, "lifetime")


if __name__ == "__main__":
    main()

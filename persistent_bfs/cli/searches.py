"""What commands that search share: devices, sessions, and how both are described in a report."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from persistent_bfs.cli.output import Report
from persistent_bfs.cli.program import bad_input, say
from persistent_bfs.device import SCHEDULES, DeviceChoice, open_device
from persistent_bfs.device.base import Device, DeviceUnavailable
from persistent_bfs.tiers import AUTO

if TYPE_CHECKING:
    from persistent_bfs.config import Config
    from persistent_bfs.graph import Graph
    from persistent_bfs.io import Progress
    from persistent_bfs.measure import Measurement
    from persistent_bfs.session import BFS


@contextmanager
def session(
    graph: Graph,
    device: Any,
    *,
    blocks: int | None,
    levels_per_launch: int | None,
    tier_slots: int | None,
    **how: Any,
) -> Iterator[BFS]:
    """Open a search session; what it refuses is bad input."""
    from persistent_bfs.options import Options
    from persistent_bfs.session import BFS

    with bad_input():
        options = Options(levels_per_launch=levels_per_launch, blocks=blocks, tier_slots=tier_slots)
        search = BFS(graph, device=device, options=options, **how)
    with search:
        yield search


@contextmanager
def kernel_device(command: str, name: str, **how: Any) -> Iterator[tuple[Device, DeviceChoice]]:
    """Open the device for a command that needs one that runs kernels."""
    with bad_input():
        choice = open_device(name, **how)
    if choice.device is None:
        why = f"{command} needs a device that runs kernels"
        if name == "reference":
            raise click.ClickException(f"{why}, and the reference runs none")
        raise DeviceUnavailable(f"{why}: {choice.reason}")
    warn_of_unused_gpu(name, choice.kind)
    with choice.device as device:
        yield device, choice


def compile_ahead(device: Device, configs: Collection[Config], progress: Progress) -> None:
    """Compile what a command needs on all cores at once; most of its time, the first time."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, _ in enumerate(pool.map(device.compile, configs)):
            progress("compiling", done, len(configs))


def warn_of_unused_gpu(asked: str, taken: str) -> None:
    """Say so if a GPU is there and ``auto`` could not take it: an answer from the CPU may pass."""
    if asked != AUTO or taken == "cuda":
        return
    from persistent_bfs import doctor

    if (ask := getattr(doctor, "unused_gpu", None)) and (line := ask(taken)) is not None:
        say("warning", line)


def note_ignored(device: str, schedule: str, seed: int) -> None:
    """Say so if the schedule asked for means nothing on this device."""
    if device != "emulated" and (schedule != SCHEDULES[0] or seed):
        say("note", f"--schedule and --seed are for the emulated device, not for {device}")


def describe_graph(graph: Graph, source: int) -> Report:
    """Describe what is searched, and from where."""
    return {
        "graph": graph.name,
        "vertices": graph.vertices,
        "arcs": graph.arcs,
        "source": source,
        "label": graph.label_of(source),
    }


def describe_search(graph: Graph, search: BFS, measured: Measurement) -> Report:
    """Describe one measured search under the names of the JSON.

    No time for a wrong answer, nor for an unverified one.
    """
    result = measured.result
    counts = result.counters.device
    wall_ms = measured.wall.median if measured.wall else result.wall_ms
    return {
        **describe_graph(graph, result.source),
        **result.summary(),
        "verified": measured.verified,
        "problem": measured.problem,
        "device_ms": measured.device.median if measured.device else None,
        "wall_ms": wall_ms if measured.verified else None,
        "reorder_ms": result.reorder_ms if measured.verified else None,
        "shape": search.shape or None,
        "reason": result.reason,
        "counts": counts or None,
    }


def describe_device(device: Device, choice: DeviceChoice) -> Report:
    """Name the device, why it is this one, and what else a measurement depends on."""
    from persistent_bfs.measure import describe_environment

    return {
        "device": choice.kind,
        "device_name": device.info.name,
        "reason": choice.reason,
        "environment": describe_environment(device.info),
    }

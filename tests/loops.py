"""Who runs the level loop, as the tests name it: every engine, and some with a tier."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from persistent_bfs import BFS, Graph, Options
from persistent_bfs.config import ENGINES, TIERS
from persistent_bfs.device.emulated import EmulatedDevice

LOOPS = [
    *ENGINES,
    *(
        f"{engine.name}+{tier.name}"
        for engine in ENGINES.values()
        for tier in TIERS.values()
        if engine.tiers and tier.exists
    ),
]


def how(loop: str) -> dict[str, str]:
    """The engine and the tiers that ``loop`` names, as `BFS` takes them."""
    engine, _, tier = loop.partition("+")
    return {"engine": engine, "tiers": tier or "none"}


def narrow_mappings(loop: str) -> set[str]:
    """What the trace calls the mapping of a level that the loop's tier ran."""
    return set(TIERS[how(loop)["tiers"]].mappings)


@contextmanager
def open_beside_waiting_blocks(
    loop: str,
    graph: Graph,
    slots: int,
    *,
    schedule: str,
    seed: int,
    races: bool = False,
    **more: Any,
) -> Iterator[BFS]:
    """A session whose tier has four blocks at most of eight: the others wait for it.

    Its frontiers in the tier have ``slots`` a block; the device looks for ``races`` if asked to.
    """
    with (
        EmulatedDevice(
            schedule=schedule,
            seed=seed,
            check_races=races,
            multiprocessors=8,
            blocks_per_multiprocessor=1,
            clusters=4,
        ) as device,
        BFS(
            graph,
            device=device,
            **how(loop),
            advance="thread",
            predecessors=True,
            trace=True,
            block_threads=64,
            options=Options(tier_slots=slots),
            **more,
        ) as search,
    ):
        assert search.shape.startswith("8 blocks")
        yield search

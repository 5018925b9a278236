"""Who runs the level loop, as the tests name it: every engine, and some with a tier."""

from __future__ import annotations

from persistent_bfs.config import ENGINES, TIERS

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

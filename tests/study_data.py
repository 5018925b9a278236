"""Made studies: what a study of a GPU would keep if its engines cost exactly what is said here."""

from __future__ import annotations

import random
from typing import Any

from persistent_bfs.config import ENGINES
from persistent_bfs.study.plan import VARIANTS, Plan
from persistent_bfs.study.primitives import PRIMITIVES
from persistent_bfs.study.run import (
    FORMAT,
    VERSION,
    describe_engines,
    keep_two_timelines,
    rounded,
)

Row = dict[str, Any]

# Milliseconds: fixed, a level, an edge. The baseline is slow a level and begins at once.
COSTS = {
    "host_loop": (0.005, 0.020, 0.4e-6),
    "host_batched": (0.090, 0.005, 0.4e-6),
    "graph_unrolled": (0.120, 0.0035, 0.4e-6),
    "graph_while": (0.020, 0.0045, 0.4e-6),
    "persistent, no tier": (0.030, 0.0025, 0.5e-6),
    "persistent": (0.035, 0.001, 0.9e-6),
}
# Any engine that is not named there.
OTHER = (0.05, 0.003, 0.6e-6)

# Milliseconds: a level issued past the end, and a level of a grid's further block.
EMPTY_LEVELS = {"host_batched": 0.004, "graph_unrolled": 0.0015, "graph_while": 0.001}
FURTHER_BLOCKS = {"graph_while": 1e-6, "persistent, no tier": 4e-6}
BLOCKS = 132

POINTS: dict[str, list[tuple[Row, float]]] = {
    "launch_issue": [({"blocks": 1, "threads": 32}, 7.0)],
    "launch_completion": [({"blocks": 1, "threads": 32}, 12.0)],
    "launch_queued": [({"blocks": 1, "threads": 32}, 4.0)],
    "round_trip": [({"blocks": 1, "threads": 32}, 17.0)],
    "cooperative_issue": [({"blocks": 1, "threads": 32}, 8.0)],
    "cooperative_completion": [({"blocks": 1, "threads": 32}, 13.0)],
    "graph_issue": [({"nodes": n}, 3.0) for n in (1, 10, 100)],
    "graph_completion": [({"nodes": n}, 8.0 + 1.5 * n) for n in (1, 10, 100)],
    "graph_device": [({"nodes": n}, 2.0 + 1.5 * n) for n in (1, 10, 100)],
    "while_turn": [({"nodes": n}, 4.0 + n) for n in (1, 16)],
    "grid_sync": [({"blocks": b, "threads": 256}, 1.0) for b in (1, 33, 132)],
    "own_barrier": [({"blocks": b, "threads": 256}, 1.2) for b in (1, 33, 132)],
    "cluster_barrier": [({"blocks": b, "threads": 256}, 0.2 + 0.01 * b) for b in (2, 16)],
    "block_sync": [({"threads": t}, 15.0) for t in (32, 512)],
    "dependent_load": [
        ({"memory": "L1", "bytes": 4096}, 30.0),
        ({"memory": "L2", "bytes": 1 << 23}, 250.0),
    ],
    "dependent_atomic": [({}, 300.0)],
    "copy_rate": [({"bytes": 1 << 28}, 4000.0)],
}


def cost(engine: str) -> tuple[float, float, float]:
    return COSTS.get(engine, OTHER)


def batch_of(engine: str) -> int:
    """Levels that it issues at once, of a deep graph."""
    levels = ENGINES[VARIANTS[engine]["engine"]].levels_per_launch
    return levels[0] if levels else 1


def blocks_of(edges: int) -> int:
    """Blocks of the grid for a graph of so many arcs: as many as it has use for."""
    return min(max(BLOCKS, edges // 16_384), 5 * BLOCKS)


def true_time(shape: Row, engine: str) -> float:
    """What a search costs by what is said here, in milliseconds."""
    fixed, level, edge = cost(engine)
    levels, edges = shape["levels"], shape["edges"]
    further = FURTHER_BLOCKS.get(engine, 0.0) * (blocks_of(edges) - BLOCKS)
    batch = batch_of(engine)
    empty = EMPTY_LEVELS.get(engine, 0.0) * (-(-levels // batch) * batch - levels)
    return fixed + levels * (level + further) + empty + edges * edge


def path_row(vertices: int) -> Row:
    return {
        "sweep": "depth",
        "name": f"path:{vertices}",
        "levels": vertices,
        "reached": vertices,
        "edges": 2 * (vertices - 1),
    }


def grid_row(width: int, height: int) -> Row:
    return {
        "sweep": "width",
        "name": f"grid:{width}x{height}",
        "levels": width + height - 1,
        "reached": width * height,
        "edges": 2 * (width * (height - 1) + height * (width - 1)),
    }


def search(shape: Row, engine: str, noise: float, rng: random.Random, repeat: int = 7) -> Row:
    """A row as a study keeps it, whose time is the engine's cost and some noise."""
    levels, edges = shape["levels"], shape["edges"]
    time = true_time(shape, engine)
    # One factor a row, so that medians are off, too, and a little more for each sample.
    off = 1 + rng.uniform(-noise, noise)
    samples = [time * off * (1 + rng.uniform(-noise, noise) / 10) for _ in range(repeat)]
    choice = ENGINES[VARIANTS[engine]["engine"]]
    host = engine == "host_loop"
    begin = [int(1e6 * cost(engine)[1] * i) for i in range(levels)]
    return {
        **shape,
        "graph": shape["name"],
        "stands_in": False,
        "vertices": shape["reached"],
        "arcs": edges,
        "source": 0,
        "engine": engine,
        "refused": None,
        "ran": choice.name,
        "shape": "" if host else f"{blocks_of(edges)} blocks of 256 threads",
        "tier": "none",
        "block_threads": 256,
        "launches": levels if host else 1,
        "host_syncs": levels if host else 1,
        "barriers": levels + 1 if choice.cooperative else 0,
        "batch": batch_of(engine),
        "counts": None,
        "device_ms": samples,
        "wall_ms": [sample + 0.01 for sample in samples],
        "regimes": {"warp": {"levels": levels, "edges": edges}},
        "trace": {
            "frontier": [1] * levels,
            "edges": [2] * levels,
            "begin_ns": begin,
            "ns": [1000] * levels,
        }
        if shape["sweep"] == "graphs"
        else None,
    }


def made_study(*, noise: float = 0.02, seed: int = 1, **changes: Any) -> Row:
    """A whole study of a GPU that does not exist."""
    rng = random.Random(seed)
    shapes = [path_row(1 << k) for k in range(15)]
    shapes += [grid_row(1 << k, 8193 - (1 << k)) for k in range(13)]
    shapes += [grid_row(512, 512) | {"sweep": "graphs", "name": "grid-512x512"}]
    plan = Plan.of("cuda", quick=False).summary()
    plan |= {"graphs": ["grid-512x512"], "repeat": 7} | changes
    searches = [search(shape, engine, noise, rng) for shape in shapes for engine in plan["engines"]]
    keep_two_timelines(searches)
    primitives = [
        {
            "primitive": row.name,
            "title": row.title,
            "unit": row.unit,
            "clock": row.clock,
            "skipped": None if row.name in POINTS else "not made up",
            "points": [
                {
                    "point": point,
                    "repeats": 1,
                    "samples": [value * (1 + rng.uniform(-0.01, 0.01)) for _ in range(9)],
                    "launches": 1,
                    "host_syncs": 0,
                    "counts": None,
                }
                for point, value in POINTS.get(row.name, ())
            ],
        }
        for row in PRIMITIVES.values()
    ]
    clocks = {
        "clocks.sm": 1980.0,
        "clocks.mem": 3201.0,
        "clocks.max.sm": 1980.0,
        "clocks.max.mem": 3201.0,
        "temperature.gpu": 40.0,
        "problem": None,
    }
    names = ("persistent_bfs", "git_revision", "sources", "python", "numpy", "scipy", "platform")
    environment: Row = dict.fromkeys(names, "made")
    environment |= {
        "driver": "CUDA 13.0",
        "nvcc": "made",
        "architecture": "sm_90",
        "multiprocessors": 132,
        "memory_bytes": 1 << 37,
        "l2_bytes": 60 << 20,
    }
    study = {
        "format": FORMAT,
        "version": VERSION,
        "plan": plan,
        "engines": describe_engines(plan["engines"]),
        "device": {"kind": "cuda", "name": "made GPU", "architecture": "sm_90"},
        "environment": environment,
        "clocks": {"before": clocks, "after": clocks},
        "incomplete": None,
        "primitives": primitives,
        "searches": searches,
    }
    return rounded(study)

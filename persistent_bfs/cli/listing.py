"""``persistent-bfs list``: what there is to choose from, and what the compiler makes of it."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click

from persistent_bfs.cli.options import json_option, verbose_option
from persistent_bfs.cli.output import Report, present, progress_bar
from persistent_bfs.config import (
    ADVANCES,
    APPENDS,
    CLAIMS,
    DIRECTIONS,
    ENGINES,
    FRONTIERS,
    ORDERS,
    TIERS,
    rows_by_loop,
)
from persistent_bfs.peers import PEERS


@click.command("list")
@click.option(
    "--resources", is_flag=True, help="Show what the compiler gives each kernel, instead."
)
@click.option(
    "--architecture", default="sm_90", show_default=True, help="For --resources: sm_75 and newer."
)
@json_option
@verbose_option
def command(resources: bool, architecture: str, as_json: bool) -> None:
    """List engines, mappings and other choices, formats, graphs and devices."""
    if resources:
        list_resources(architecture, as_json)
        return
    from persistent_bfs.device import cuda_problem, emulated_problem
    from persistent_bfs.generate import GENERATORS
    from persistent_bfs.io import BUNDLED, FORMATS

    tables: dict[str, Mapping[str, Any]] = {
        "engines": ENGINES,
        "advances": ADVANCES,
        "directions": DIRECTIONS,
        "claims": CLAIMS,
        "appends": APPENDS,
        "tiers": TIERS,
        "frontiers": FRONTIERS,
        "orders": ORDERS,
    }
    problems = {"cuda": cuda_problem(), "emulated": emulated_problem(), "reference": None}
    report: dict[str, list[Report]] = {
        what: [{"name": row.name, "trade_off": row.trade_off} for row in table.values()]
        for what, table in tables.items()
    }
    report |= {
        "formats": [
            {"name": row.name, "title": row.title, "extensions": list(row.extensions)}
            for row in FORMATS.values()
        ],
        "generators": [
            {"usage": row.usage, "description": row.description, "seeded": row.seeded}
            for row in GENERATORS.values()
        ],
        "graphs": [{"name": name, "file": file} for name, file in BUNDLED.items()],
        "peers": [
            {"name": peer.name, "trade_off": peer.trade_off, "installed": peer.installed}
            for peer in PEERS.values()
        ],
        "devices": [
            {"name": name, "usable": problem is None, "problem": problem}
            for name, problem in problems.items()
        ],
    }
    present(report, as_json, "choices")


def list_resources(architecture: str, as_json: bool) -> None:
    """Show the registers and memory of every row's kernels, as compiled with each loop."""
    from persistent_bfs import compiler

    configs = list(rows_by_loop())
    rows: list[Report] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool, progress_bar() as progress:
        measure = functools.partial(compiler.resources, architecture=architecture)
        measured = zip(configs, pool.map(measure, configs), strict=True)
        for done, (config, kernels) in enumerate(measured):
            progress("compiling what is not in the cache", done, len(configs))
            rows += [
                {
                    "kernel": kernel,
                    "advance": config.advance,
                    "direction": config.direction,
                    "claim": config.claim,
                    "append": config.append,
                    "tier": config.tier,
                    "frontier": config.frontier,
                    "registers": used.registers,
                    "shared_bytes": used.shared_bytes,
                    "local_bytes": used.local_bytes,
                }
                for kernel, used in kernels.items()
            ]
    report = {"architecture": architecture, "rows": rows}
    present(report, as_json, "resources")

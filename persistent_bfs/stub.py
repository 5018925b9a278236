"""The C++ text of a `Config`: includes, policies by name, exported kernels."""

from __future__ import annotations

from pathlib import Path

from persistent_bfs.config import (
    ADVANCES,
    APPENDS,
    CLAIMS,
    DIRECTIONS,
    FRONTIERS,
    TIERS,
    Config,
)


def render_stub(config: Config) -> str:
    """The C++ text that composes and exports the kernels of ``config``.

    Examples
    --------
    >>> print(render_stub(Config("persistent")).splitlines()[1])
    #include "loop_persistent.cuh"
    """
    space = "persistent_bfs"
    offset = "int" if config.offset_bits == 32 else "long long"
    policy = ", ".join(
        (
            offset,
            f"{space}::{ADVANCES[config.advance].type}",
            f"{space}::{DIRECTIONS[config.direction].type}",
            f"{space}::{CLAIMS[config.claim].type}",
            f"{space}::{APPENDS[config.append].type}",
            f"{space}::{FRONTIERS[config.frontier].type}",
            f"{space}::{TIERS[config.tier].type}",
            *(
                str(value).lower()
                for value in (
                    config.counts_edges,
                    config.predecessors,
                    config.trace,
                    config.block_threads,
                    config.block_queue,
                    config.row_slots,
                    config.phases,
                    config.padded,
                )
            ),
        )
    )
    loop, arguments = Path(config.program.loop).stem, f"{space}::{config.program.arguments}"
    lines = [
        f"// {loop}, {config.advance} mapping, {config.claim} claim, {config.append} append, "
        f"{config.frontier} frontier"
    ]
    lines += [f'#include "{header}"' for header in config.headers]
    lines += ["", f"using Policy = {space}::SearchPolicy<{policy}>;"]
    bounds = f"{config.block_threads}, {config.resident_blocks}"
    for kernel in config.kernels:
        lines += [
            "",
            f'extern "C" __global__ void __launch_bounds__({bounds}) {kernel}(',
            f"    Policy::Parameters parameters, {arguments} launch) {{",
            f"  {space}::{kernel}<Policy>(parameters, launch);",
            "}",
            f"PERSISTENT_BFS_EMULATE({kernel}, Policy::Parameters, {arguments})",
        ]
    return "\n".join(lines) + "\n"


def stub_name(config: Config) -> str:
    """What files of ``config`` are called."""
    return f"{Path(config.program.loop).stem}-{config.advance}-{config.claim}"

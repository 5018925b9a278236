"""Compile every row of every table and the programs beside, for each promised architecture.

On sm_90 no kernel may need local memory, nor more registers than a block of its size can have.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

from persistent_bfs.compiler import ARCHITECTURES, CompileError, cubin, find_nvcc, resources
from persistent_bfs.config import PRIMITIVES, WALK, Config, rows_by_loop

LOOKED_AT = "sm_90"
REGISTERS = 65536  # of a multiprocessor


def compile_one(job: tuple[Config, str]) -> list[str]:
    """Compile a configuration; what is wrong with its kernels, a line each."""
    config, architecture = job
    if architecture != LOOKED_AT:
        cubin(config, architecture)
        return []
    return [
        f"{name} of {config}: {used.local_bytes} bytes of local memory, {used.registers} registers"
        for name, used in resources(config, architecture).items()
        if used.local_bytes or not 0 < used.registers * config.block_threads <= REGISTERS
    ]


def main() -> int:
    """Compile; the exit code says whether all went well."""
    try:
        find_nvcc()
    except CompileError as missing:
        print(f"skipped: {missing}")
        return 0
    started = time.monotonic()
    beside = (Config(row.name, block_threads=row.block_threads) for row in (WALK, PRIMITIVES))
    jobs = list(product([*rows_by_loop(), *beside], ARCHITECTURES))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [line for lines in pool.map(compile_one, jobs) for line in lines]
    seconds = time.monotonic() - started
    print(
        f"{len(jobs)} cubins for {', '.join(ARCHITECTURES)}: {seconds:.0f} s", *problems, sep="\n"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

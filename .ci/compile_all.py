"""Compile every row of every table and the programs beside, for each promised architecture."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

from persistent_bfs.compiler import ARCHITECTURES, CompileError, cubin, find_nvcc
from persistent_bfs.config import PRIMITIVES, WALK, Config, rows_by_loop


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
        made = set(pool.map(lambda job: cubin(*job), jobs))
    print(f"{len(made)} cubins for {', '.join(ARCHITECTURES)}: {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

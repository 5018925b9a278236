"""Compile every engine and mapping for every architecture that is promised, if nvcc is there."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

from persistent_bfs.compiler import ARCHITECTURES, CompileError, cubin, find_nvcc
from persistent_bfs.config import ADVANCES, ENGINES, Config


def main() -> int:
    """Compile; the exit code says whether all went well."""
    try:
        find_nvcc()
    except CompileError as missing:
        print(f"skipped: {missing}")
        return 0
    started = time.monotonic()
    configs = [
        Config(engine, advance=advance, predecessors=True, trace=True)
        for engine, advance in product(ENGINES, ADVANCES)
    ]
    jobs = list(product(configs, ARCHITECTURES))
    with ThreadPoolExecutor(2) as pool:
        made = set(pool.map(lambda job: cubin(*job), jobs))
    print(
        f"{len(jobs)} combinations, {len(made)} cubins, for {', '.join(ARCHITECTURES)}: "
        f"{time.monotonic() - started:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

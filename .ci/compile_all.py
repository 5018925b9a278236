"""Compile every row of every table, for each loop and promised architecture, if nvcc is here."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

from persistent_bfs.compiler import ARCHITECTURES, CompileError, cubin, find_nvcc
from persistent_bfs.config import rows_by_loop


def main() -> int:
    """Compile; the exit code says whether all went well."""
    try:
        find_nvcc()
    except CompileError as missing:
        print(f"skipped: {missing}")
        return 0
    started = time.monotonic()
    jobs = list(product(rows_by_loop(), ARCHITECTURES))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = set(pool.map(lambda job: cubin(*job), jobs))
    print(f"{len(made)} cubins for {', '.join(ARCHITECTURES)}: {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

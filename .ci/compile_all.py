"""Compile every row of every table and the programs beside, for each promised architecture.

By NVRTC for all of them; by nvcc, which takes several times as long, for one. What is not there is
said and passed over. On that one no kernel may need local memory, nor more registers than a block
of its size can have.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

from persistent_bfs.compiler import (
    ARCHITECTURES,
    COMPILER_VARIABLE,
    CompileError,
    cubin,
    find_cuda_compiler,
    resources,
)
from persistent_bfs.config import PRIMITIVES, WALK, Config, rows_by_loop

LOOKED_AT = "sm_90"
COMPILERS = {"nvrtc": ARCHITECTURES, "nvcc": (LOOKED_AT,)}
REGISTERS = 65536  # of a multiprocessor


def compile_one(job: tuple[Config, str]) -> list[str]:
    """Compile a configuration; what is wrong with its kernels, a line each."""
    config, architecture = job
    try:
        if architecture != LOOKED_AT:
            cubin(config, architecture)
            return []
        kernels = resources(config, architecture)
    except CompileError as error:
        return [f"{config} for {architecture}: {error}"]
    return [
        f"{name} of {config}: {used.local_bytes} bytes of local memory, {used.registers} registers"
        for name, used in kernels.items()
        if used.local_bytes or not 0 < used.registers * config.block_threads <= REGISTERS
    ]


def compile_by(kind: str, configs: list[Config], architectures: tuple[str, ...]) -> list[str]:
    """Compile all by one compiler, and say how long it took; what is wrong, a line each."""
    os.environ[COMPILER_VARIABLE] = kind
    try:
        _, found = find_cuda_compiler()
    except CompileError as missing:
        print(f"skipped: {missing}")
        return []
    started = time.monotonic()
    jobs = list(product(configs, architectures))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [line for lines in pool.map(compile_one, jobs) for line in lines]
    seconds = time.monotonic() - started
    names = ", ".join(architectures)
    print(
        f"{len(jobs)} cubins by {found.release} for {names}: {seconds:.0f} s", *problems, sep="\n"
    )
    return problems


def main() -> int:
    """Compile; the exit code says whether all went well."""
    beside = (Config(row.name, block_threads=row.block_threads) for row in (WALK, PRIMITIVES))
    configs = [*rows_by_loop(), *beside]
    problems = [
        line
        for kind, architectures in COMPILERS.items()
        for line in compile_by(kind, configs, architectures)
    ]
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

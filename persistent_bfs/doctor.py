"""What this machine offers a search: checks, each with what to do where something is missing.

Data only; the command line shows it. The driver is asked directly, so that a GPU is seen whether
or not the Python packages that use it are installed.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from persistent_bfs import compiler
from persistent_bfs.device import cuda_problem, emulated_problem
from persistent_bfs.device.base import DeviceError

OLDEST_PYTHON = (3, 10)
WHILE_NODES_DRIVER = 12040
KERNEL_DEVICES = ("cuda", "emulated")

REQUIRED = ("numpy", "scipy", "click", "rich", "platformdirs")
FOR_CUDA = ("pycuda", "cuda-bindings")

DRIVER_LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
# CUdevice_attribute
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR, COOPERATIVE_LAUNCH = 75, 76, 95


@dataclass(frozen=True)
class Check:
    """One thing looked at: ``ok`` is None for what is missing but not needed here."""

    name: str
    ok: bool | None
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class Gpu:
    """What the driver says of its first GPU."""

    name: str
    architecture: str
    cooperative_launch: bool


@dataclass(frozen=True)
class Driver:
    """What the NVIDIA driver says: ``version`` is that of CUDA, 1000 major + 10 minor."""

    version: int = 0
    gpu: Gpu | None = None
    problem: str = ""


@cache
def ask_driver() -> Driver:
    """Ask the NVIDIA driver for its version and first GPU, making no context."""
    library = None
    for name in DRIVER_LIBRARIES:
        with suppress(OSError):
            library = ctypes.CDLL(name)
            break
    if library is None:
        return Driver(problem="not installed")
    number, text = ctypes.c_int(), ctypes.create_string_buffer(256)

    def ask(function: str, *arguments: object) -> int:
        status: int = getattr(library, function)(ctypes.byref(number), *arguments)
        if status:
            raise OSError(f"{function} answers error {status}")
        return number.value

    cuda = 0
    try:
        cuda = ask("cuDriverGetVersion")
        if status := library.cuInit(0):
            raise OSError(f"cuInit answers error {status}")
        if not ask("cuDeviceGetCount"):
            return Driver(cuda)
        device = ask("cuDeviceGet", 0)
        major = ask("cuDeviceGetAttribute", COMPUTE_CAPABILITY_MAJOR, device)
        minor = ask("cuDeviceGetAttribute", COMPUTE_CAPABILITY_MINOR, device)
        cooperative = bool(ask("cuDeviceGetAttribute", COOPERATIVE_LAUNCH, device))
        library.cuDeviceGetName(text, len(text), device)
    except OSError as error:
        return Driver(cuda, problem=str(error))
    return Driver(cuda, Gpu(text.value.decode(), f"sm_{major}{minor}", cooperative))


def examine_python() -> list[Check]:
    """Check the interpreter."""
    return [
        Check(
            "Python",
            sys.version_info >= OLDEST_PYTHON,
            f"{platform.python_version()} on {platform.platform()}",
            "install Python 3.10 or newer",
        )
    ]


def examine_packages() -> list[Check]:
    """Check the packages needed everywhere, and those that a GPU needs."""

    def check(package: str, needed: bool, remedy: str) -> Check:
        try:
            return Check(package, True, version(package))
        except PackageNotFoundError:
            return Check(package, False if needed else None, "not installed", remedy)

    on_gpu = ask_driver().gpu is not None
    return [
        *(check(package, True, f"pip install {package}") for package in REQUIRED),
        *(check(package, on_gpu, "pip install 'persistent-bfs[cuda]'") for package in FOR_CUDA),
    ]


def examine_gpu() -> list[Check]:
    """Check the NVIDIA driver, its first GPU, and what engines ask of them."""
    driver = ask_driver()
    release = f"CUDA {driver.version // 1000}.{driver.version % 1000 // 10}"
    if driver.problem:
        detail = f"{release}: {driver.problem}" if driver.version else driver.problem
        broken = False if driver.version else None
        remedy = "for a GPU, install NVIDIA's driver, or give the container access to it"
        return [Check("NVIDIA driver", broken, detail, remedy)]
    checks = [Check("NVIDIA driver", True, release)]
    if driver.gpu is None:
        return [*checks, Check("GPU", None, "none visible", "check CUDA_VISIBLE_DEVICES")]
    return [
        *checks,
        Check("GPU", True, f"{driver.gpu.name}, {driver.gpu.architecture}"),
        Check(
            "cooperative launch",
            driver.gpu.cooperative_launch,
            "persistent can run" if driver.gpu.cooperative_launch else "persistent cannot run",
            "use engine graph_while or graph_unrolled",
        ),
        Check(
            "WHILE nodes",
            driver.version >= WHILE_NODES_DRIVER,
            f"since CUDA 12.4, the driver has {release}",
            "update the driver; until then graph_while runs as graph_unrolled",
        ),
    ]


def examine_compilers() -> list[Check]:
    """Check nvcc, for the GPU's own architecture, and g++ for the emulated device."""
    gpu = ask_driver().gpu
    checks = []
    try:
        nvcc = compiler.find_nvcc()
        release = next((x for x in nvcc.version.splitlines() if "release" in x), nvcc.version)
        checks.append(Check("nvcc", True, f"{nvcc.path}: {release}"))
        if gpu is not None:
            known = subprocess.run(
                [nvcc.path, "--list-gpu-code"], capture_output=True, text=True, check=False
            ).stdout.split()
            checks.append(
                Check(
                    f"nvcc for {gpu.architecture}",
                    gpu.architecture in known,
                    "known" if gpu.architecture in known else "not known to this toolkit",
                    f"install a CUDA toolkit that knows {gpu.architecture}",
                )
            )
    except compiler.CompileError as error:
        remedy = "for a GPU, install the CUDA toolkit, or set CUDA_HOME to where it is"
        checks.append(Check("nvcc", False if gpu else None, str(error).split(":")[0], remedy))
    try:
        host = compiler.find_host_compiler()
        checks.append(Check("g++", True, f"{host.path}: {host.version.splitlines()[0]}"))
    except compiler.CompileError as error:
        remedy = "for the emulated device, install GCC's C++ compiler, or set CXX to it"
        checks.append(Check("g++", None, str(error).split(":")[0], remedy))
    return checks


def examine_cache() -> list[Check]:
    """Check the folder of compiled kernels."""
    asked = compiler.wanted_cache_folder()
    if compiler.cache_folder() != asked:
        remedy = f"set {compiler.CACHE_VARIABLE} to a folder that can be written"
        return [Check("cache", False, f"cannot write to {asked}", remedy)]
    sizes = [entry.stat().st_size for entry in os.scandir(asked) if entry.is_file()]
    files = f"{len(sizes)} file{'' if len(sizes) == 1 else 's'}"
    return [Check("cache", True, f"{asked}: {files}, {sum(sizes) / 2**20:.1f} MiB")]


def examine_devices() -> list[Check]:
    """Check each device that runs kernels by a search whose answer is checked."""
    checks = []
    for device, problem in (("cuda", cuda_problem()), ("emulated", emulated_problem())):
        if problem is not None:
            checks.append(Check(_search_on(device), None, problem))
        else:
            checks.append(search_on(device))
    return checks


def search_on(device: str) -> Check:
    """Search two small graphs on ``device`` and check the answers."""
    from persistent_bfs.io import read_graph
    from persistent_bfs.measure import find_problem
    from persistent_bfs.session import BFS

    done = []
    try:
        for name in ("path:100", "words-kjv"):
            graph = read_graph(name)
            with BFS(graph, device=device, trace=True) as search:
                result = search.run(0)
                if problem := find_problem(graph, result):
                    return Check(
                        _search_on(device), False, f"{name}: wrong answer: {problem}", "report this"
                    )
            done.append(f"{name} {result.reached:,} reached in {result.levels} levels")
    except (DeviceError, compiler.CompileError) as error:
        return Check(_search_on(device), False, str(error), "see the lines above")
    return Check(_search_on(device), True, f"{result.engine}: {', '.join(done)}")


def _search_on(device: str) -> str:
    return f"search on {device}"


EXAMINATIONS: dict[str, Callable[[], list[Check]]] = {
    "Python": examine_python,
    "packages": examine_packages,
    "GPU": examine_gpu,
    "compilers": examine_compilers,
    "cache": examine_cache,
    "searches": examine_devices,
}
"""Every examination, by what it looks at."""


def usable(checks: Iterable[Check]) -> list[str]:
    """Return the devices that run kernels and gave a right answer in these checks."""
    passed = {check.name for check in checks if check.ok}
    return [device for device in KERNEL_DEVICES if _search_on(device) in passed]

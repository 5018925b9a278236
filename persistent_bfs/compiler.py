"""From a `Config` to a compiled binary: stub, compiler, cache.

A stub is a few lines of C++: include one loop and one header a policy, name the policies, export
the kernels (``stub.py``). NVRTC (``nvrtc.py``) makes a cubin of it for one architecture, or nvcc
where NVRTC is missing (``toolchain.py``); g++ makes a shared library of the same text for the
emulated device. ``PERSISTENT_BFS_COMPILER`` names one of the first two, ``nvrtc`` or ``nvcc``.

Binaries are kept (``cache.py``) under a key of the stub, every header it reaches, the options and
the architecture. The version of a compiler for GPUs is no part of it, so that a cubin that is there
needs no compiler at all; it is noted in the entry.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from persistent_bfs import cache, nvrtc
from persistent_bfs.cache import (
    CACHE_VARIABLE,
    LIMIT_VARIABLE,
    cache_folder,
    discard,
    folder_problem,
    wanted_cache_folder,
)
from persistent_bfs.config import Config
from persistent_bfs.nvrtc import find_nvrtc
from persistent_bfs.stub import render_stub, stub_name
from persistent_bfs.toolchain import (
    INSTALL,
    OLDEST_ARCHITECTURE,
    CompileError,
    Compiler,
    find_host_compiler,
    find_nvcc,
    nvcc_architectures,
    run,
    target,
)

__all__ = [
    "ARCHITECTURES",
    "CACHE_VARIABLE",
    "COMPILER_VARIABLE",
    "INSTALL",
    "LIMIT_VARIABLE",
    "CompileError",
    "Compiler",
    "KernelResources",
    "cache_folder",
    "compile_cubin",
    "compile_emulated",
    "cubin",
    "cuda_compiler_problem",
    "cuda_kernels_problem",
    "discard",
    "emulated_library",
    "find_cuda_compiler",
    "find_host_compiler",
    "find_nvcc",
    "find_nvrtc",
    "folder_problem",
    "load_compiled",
    "newer_than_driver",
    "release_problem",
    "render_stub",
    "resources",
    "source_folder",
    "try_cuda_compiler",
    "wanted_cache_folder",
]

COMPILER_VARIABLE = "PERSISTENT_BFS_COMPILER"

# Oldest and newest architecture the kernels are compiled for in the project's own checks.
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")

NVCC_OPTIONS = ("-cubin", "-std=c++17", "-O3", "-lineinfo", "-Xptxas=-v")

RUNTIME_OPTIONS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-c")

# Plain accesses of the kernels become calls into the emulation (thread sanitizer's hooks, without
# its runtime: hence the option is not there when linking); shared memory becomes thread-local
# variables that the emulation places itself. Line numbers, and no variables, are for what it
# reports of an access (DWARF 4, whose file table every addr2line reads).
EMULATED_OPTIONS = (
    *RUNTIME_OPTIONS,
    "-Og",  # compiles in little more than half the time of -O1
    "-g1",
    "-fno-var-tracking",
    "-fno-var-tracking-assignments",
    "-gdwarf-4",
    "-fno-gnu-unique",
    "-fsanitize=thread",
    "-mtls-dialect=gnu",
    "-Wno-unknown-pragmas",
)
LINK_OPTIONS = ("-shared",)
SOURCE_NAME = "/cuda"  # what line numbers call the folder of the device code


@dataclass(frozen=True)
class KernelResources:
    """What the compiler gave a kernel.

    Registers a thread, bytes of shared memory a block, and bytes of local memory a thread, which
    is slow and means that the registers did not suffice.
    """

    registers: int
    shared_bytes: int
    local_bytes: int


def source_folder() -> Path:
    """The folder of the device code: in the package in a wheel, beside it in a clone."""
    package = Path(__file__).resolve().parent
    for folder in (package / "cuda", package.parent / "cuda"):
        if (folder / "types.cuh").is_file():
            return folder
    raise CompileError(f"the device code is not where it was installed: no cuda/ beside {package}")


_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def _reached_sources(text: str, root: Path) -> Iterator[tuple[str, str]]:
    """Every file under ``root`` that ``text`` includes, directly or not, with its content."""
    seen: set[Path] = set()
    waiting = [(text, root)]
    while waiting:
        content, place = waiting.pop()
        for name in _INCLUDE.findall(content):
            for candidate in (place / name, root / name):
                path = candidate.resolve()
                if path.is_file():
                    if path not in seen:
                        seen.add(path)
                        included = path.read_text(encoding="utf-8")
                        yield str(path.relative_to(root)), included
                        waiting.append((included, path.parent))
                    break
            else:
                raise CompileError(f'the device code includes "{name}", which is not there')


def _state(root: Path) -> tuple[tuple[str, int, int], ...]:
    """What tells whether a file under ``root`` has been edited: names, times and sizes."""
    files: list[tuple[str, int, int]] = []
    folders = [str(root)]
    while folders:
        for entry in os.scandir(folders.pop()):
            if entry.is_dir():
                folders.append(entry.path)
            else:
                found = entry.stat()
                files.append((entry.path, found.st_mtime_ns, found.st_size))
    return tuple(sorted(files))


@lru_cache(maxsize=4096)
def _digest(
    text: str,
    root: Path,
    state: tuple[tuple[str, int, int], ...],  # noqa: ARG001
    with_emulation: bool,
) -> str:
    """A hash of every file that ``text`` includes; to read them takes as long as a short search."""
    digest = hashlib.sha256()
    for path, content in sorted(_reached_sources(text, root)):
        if with_emulation or not path.startswith("emulation/"):
            digest.update(path.encode() + b"\0" + content.encode() + b"\0")
    return digest.hexdigest()


def _entry(name: str, suffix: str, text: str, *parts: str) -> str:
    """What the binary of ``text`` is called in the cache: ``parts`` are what else it depends on."""
    root = source_folder()
    # A compiler for GPUs never comes to the emulation: what changes there is nothing to a cubin.
    sources = _digest(text, root, _state(root), suffix != ".cubin")
    key = hashlib.sha256()
    for part in (*parts, text, sources):
        key.update(part.encode() + b"\0")
    return f"{name}-{key.hexdigest()[:24]}{suffix}"


class _CudaCompiler(NamedTuple):
    """A way to make cubins."""

    find: Callable[[], Compiler]
    architectures: Callable[[Compiler], tuple[int, ...]]
    options: tuple[str, ...]
    compile: Callable[[Compiler, str, str, str, Path], str]
    """Compiler, text, name, architecture and where to put the cubin; gives what it said."""


def _compile_by_nvcc(found: Compiler, text: str, name: str, architecture: str, made: Path) -> str:
    source = made.with_suffix(".cu")
    source.write_text(text, encoding="utf-8")
    options = [*NVCC_OPTIONS, f"-arch={architecture}", "-I", str(source_folder())]
    return run([str(found.path), *options, str(source), "-o", str(made)], name)


def _compile_by_nvrtc(_: Compiler, text: str, name: str, architecture: str, made: Path) -> str:
    content, log = nvrtc.compile_text(text, name, architecture, source_folder())
    made.write_bytes(content)
    return log


# In the order in which they are tried. Found through this module's names, at the call.
CUDA_COMPILERS = {
    "nvrtc": _CudaCompiler(
        lambda: find_nvrtc(),
        lambda _: nvrtc.architectures(),
        nvrtc.OPTIONS,
        _compile_by_nvrtc,
    ),
    "nvcc": _CudaCompiler(
        lambda: find_nvcc(),
        lambda found: nvcc_architectures(found.path),
        NVCC_OPTIONS,
        _compile_by_nvcc,
    ),
}


def _candidates() -> tuple[str, ...]:
    """The compilers for GPUs that may be used, by what the environment asks for."""
    asked = os.environ.get(COMPILER_VARIABLE, "")
    if asked and asked not in CUDA_COMPILERS:
        raise CompileError(
            f"{COMPILER_VARIABLE} is {asked!r}; it must be one of {', '.join(CUDA_COMPILERS)}"
        )
    return (asked,) if asked else tuple(CUDA_COMPILERS)


def _choose(architecture: str | None) -> tuple[str, Compiler, str]:
    """The first compiler that is there and makes cubins for ``architecture`` (its newest, if None).

    Its kind, what was found, and the architecture to tell it.
    """
    problems = []
    for kind in _candidates():
        row = CUDA_COMPILERS[kind]
        try:
            found = row.find()
            known = row.architectures(found)
            newest = f"sm_{max(known, default=OLDEST_ARCHITECTURE)}"
            return kind, found, target(architecture or newest, known, found)
        except CompileError as error:
            problems.append(str(error))
    raise CompileError("; ".join(problems))


def find_cuda_compiler(architecture: str | None = None) -> tuple[str, Compiler]:
    """The compiler that cubins are made by here: its kind, ``nvrtc`` or ``nvcc``, and itself.

    Of several the one for ``architecture``, if that is given.

    Raises
    ------
    CompileError
        None is there, or not the one that ``PERSISTENT_BFS_COMPILER`` asks for.
    """
    kind, found, _ = _choose(architecture)
    return kind, found


def cuda_compiler_problem() -> str | None:
    """Why no kernel can be compiled for a GPU here, in one line; None if one can."""
    try:
        find_cuda_compiler()
    except CompileError as error:
        return str(error)
    return None


def cuda_kernels_problem() -> str | None:
    """Why no kernel can be had for a GPU here: none is in the cache, and none can be compiled.

    Looks for no compiler where a cubin is in the cache.
    """
    return None if cache.any_of(".cubin") else cuda_compiler_problem()


def try_cuda_compiler(architecture: str) -> None:
    """Compile a kernel of one line, and keep nothing of it.

    Raises
    ------
    CompileError
        It cannot be compiled.
    """
    text = '#include "types.cuh"\nextern "C" __global__ void nothing() {}\n'
    kind, found, option = _choose(architecture)
    with tempfile.TemporaryDirectory() as work:
        CUDA_COMPILERS[kind].compile(found, text, "nothing", option, Path(work) / "nothing.cubin")


def cubin(config: Config, architecture: str) -> Path:
    """The cubin of ``config`` for ``architecture`` (``sm_90``), compiled if it is not in the cache.

    Raises
    ------
    CompileError
        No compiler is there, it is too old for the architecture, or refused the source.
    """
    return compile_cubin(render_stub(config), f"{stub_name(config)}-{architecture}", architecture)


def compile_cubin(text: str, name: str, architecture: str) -> Path:
    """The cubin of any stub ``text``; raises as `cubin`."""

    def entry(kind: str) -> str:
        options = CUDA_COMPILERS[kind].options
        return _entry(name, ".cubin", text, kind, *options, architecture)

    for kind in _candidates():
        if found := cache.find(entry(kind)):
            return found
    kind, compiler, option = _choose(architecture)
    with cache.work_folder(name) as work:
        made = work / f"{name}.cubin"
        report = CUDA_COMPILERS[kind].compile(compiler, text, name, option, made)
        known = {
            "compiler": kind,
            "release": list(compiler.cuda),
            "architecture": option,
            "kernels": {kernel: vars(used) for kernel, used in _resources_in(report).items()},
        }
        return cache.publish(entry(kind), made, known)


def release_problem(release: tuple[int, int], driver: int) -> str | None:
    """Why a driver does not load the cubins of a compiler: that is of a newer major release.

    Parameters
    ----------
    release : tuple of int
        Of CUDA, the compiler's, major and minor.
    driver : int
        What ``cuDriverGetVersion`` gives: 1000 times the major release, 10 times the minor one.

    Returns
    -------
    str or None
        One line with the remedy; None if that is no reason.
    """
    if release[0] <= driver // 1000:
        return None
    older = " or, from a clone, pip install '.[cuda12]'" if driver // 1000 == 12 else ""
    return (
        f"the compiler is of CUDA {release[0]}.{release[1]}, newer than the driver's CUDA "
        f"{driver // 1000}.{driver % 1000 // 10}: update the driver{older}"
    )


def newer_than_driver(binary: Path, driver: int) -> str | None:
    """As `release_problem`, of a cubin that `cubin` or `compile_cubin` gave."""
    major, minor = cache.facts(binary).get("release", (0, 0))
    problem = release_problem((major, minor), driver)
    return problem and f"{binary.name}: {problem}, and then persistent-bfs cache --clear"


T = TypeVar("T")


def load_compiled(
    make: Callable[[], Path], load: Callable[[Path], T], damage: type[Exception]
) -> T:
    """What ``load`` makes of the binary that ``make`` finds or compiles.

    If it raises ``damage``, the binary is compiled once more: an entry that is whole may still be
    of another system, or one that this driver does not take.
    """
    binary = make()
    try:
        return load(binary)
    except damage:
        discard(binary)
        return load(make())


_PTXAS = re.compile(
    r"Compiling entry function '(?P<kernel>\w+)'.*?(?P<stack>\d+) bytes stack frame"
    r".*?Used (?P<registers>\d+) registers(?:.*?(?P<shared>\d+) bytes smem)?[^\n]*",
    re.DOTALL,
)


def _resources_in(report: str) -> dict[str, KernelResources]:
    """What the assembler, which both compilers end with, says of each kernel."""
    return {
        entry["kernel"]: KernelResources(
            int(entry["registers"]), int(entry["shared"] or 0), int(entry["stack"])
        )
        for part in report.split("ptxas info    : Compiling")[1:]
        for entry in _PTXAS.finditer("Compiling" + part)
    }


def resources(config: Config, architecture: str) -> dict[str, KernelResources]:
    """What each kernel of ``config`` needs on ``architecture``, by its compiler's own report.

    Raises
    ------
    CompileError
        As `cubin`.
    """
    binary = cubin(config, architecture)
    found = cache.facts(binary).get("kernels", {})
    if missing := set(config.kernels) - set(found):
        raise CompileError(f"the compiler said nothing of {', '.join(sorted(missing))}")
    return {kernel: KernelResources(**used) for kernel, used in found.items()}


def emulated_library(config: Config) -> Path:
    """The shared library of ``config`` for the emulated device, compiled if not in the cache.

    Raises
    ------
    CompileError
        g++ is missing or refused the source.
    """
    return compile_emulated(render_stub(config), stub_name(config))


def compile_emulated(text: str, name: str) -> Path:
    """A shared library of any stub ``text``, with the emulation's runtime linked in."""
    compiler = find_host_compiler()
    runtime = _emulation_runtime(compiler)
    options = (*EMULATED_OPTIONS, *LINK_OPTIONS, runtime.name)
    entry = _entry(name, ".so", text, compiler.version, *options)
    if found := cache.find(entry):
        return found
    with cache.work_folder(name) as work:
        source, compiled, made = (work / f"{name}{suffix}" for suffix in (".cpp", ".o", ".so"))
        source.write_text(text, encoding="utf-8")
        gcc = str(compiler.path)
        compiling = [*EMULATED_OPTIONS, *_mapped_sources(), str(source), "-o", str(compiled)]
        run([gcc, *compiling], name)
        run([gcc, *LINK_OPTIONS, str(runtime), str(compiled), "-o", str(made)], name)
        return cache.publish(entry, made, {"compiler": "g++"})


def _mapped_sources() -> list[str]:
    """Options that find the device code and call it by one name, wherever the clone is."""
    folder = str(source_folder())
    return ["-I", folder, f"-ffile-prefix-map={folder}={SOURCE_NAME}"]


def _emulation_runtime(compiler: Compiler) -> Path:
    text = '#include "emulation/simt.cpp"\n'
    entry = _entry("simt", ".o", text, compiler.version, *RUNTIME_OPTIONS)
    if found := cache.find(entry):
        return found
    with cache.work_folder("simt") as work:
        source, made = work / "simt.cpp", work / "simt.o"
        source.write_text(text, encoding="utf-8")
        options = [*RUNTIME_OPTIONS, "-I", str(source_folder()), str(source), "-o", str(made)]
        run([str(compiler.path), *options], "simt")
        return cache.publish(entry, made, {"compiler": "g++"})

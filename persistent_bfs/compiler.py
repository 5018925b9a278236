"""From a `Config` to a compiled binary: stub, compiler, cache.

A stub is a few lines of C++: include one loop and one header a policy, name the policies, export
the kernels. nvcc makes a cubin of it for one architecture; g++ makes a shared library of the same
text for the emulated device.

Binaries are kept in the user's cache folder under a key of everything they depend on: the stub,
every header it reaches, the compiler's version and options. They are published by an atomic
rename, so that processes that compile the same thing at once do no harm to each other.
``PERSISTENT_BFS_CACHE_DIR`` names another folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import platformdirs

from persistent_bfs.config import (
    ADVANCES,
    APPENDS,
    CLAIMS,
    DIRECTIONS,
    FRONTIERS,
    TIERS,
    Config,
)

CACHE_VARIABLE = "PERSISTENT_BFS_CACHE_DIR"

# Oldest and newest architecture the kernels are compiled for in the project's own checks.
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")

NVCC_OPTIONS = ("-cubin", "-std=c++17", "-O3", "-lineinfo")

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


class CompileError(RuntimeError):
    """A compiler is missing or refused a source.

    The message is one line with cause and remedy; ``command`` and ``output`` hold the rest.
    """

    def __init__(self, message: str, *, command: str = "", output: str = "") -> None:
        super().__init__(message)
        self.command = command
        self.output = output


@dataclass(frozen=True)
class KernelResources:
    """What the compiler gave a kernel.

    Registers a thread, bytes of shared memory a block, and bytes of local memory a thread, which
    is slow and means that the registers did not suffice.
    """

    registers: int
    shared_bytes: int
    local_bytes: int


@dataclass(frozen=True)
class Compiler:
    """A compiler that was found: where it is and what it says its version is."""

    path: Path
    version: str


def source_folder() -> Path:
    """The folder of the device code: in the package in a wheel, beside it in a clone."""
    package = Path(__file__).resolve().parent
    for folder in (package / "cuda", package.parent / "cuda"):
        if (folder / "types.cuh").is_file():
            return folder
    raise CompileError(f"the device code is not where it was installed: no cuda/ beside {package}")


def wanted_cache_folder() -> Path:
    """The folder that compiled kernels should be in, by the environment or the user's habits."""
    asked = os.environ.get(CACHE_VARIABLE)
    return Path(asked) if asked else platformdirs.user_cache_path("persistent_bfs")


@cache
def cache_folder() -> Path:
    """The folder of compiled kernels, created; a temporary one, with a warning, if it cannot be."""
    folder = wanted_cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            return folder
    except OSError as error:
        warnings.warn(
            f"kernels will be compiled anew each time: cannot write to {folder} "
            f"({error.strerror}); set {CACHE_VARIABLE} to a folder that can be written",
            stacklevel=2,
        )
        return Path(tempfile.mkdtemp(prefix="persistent_bfs-"))


def _version(path: Path) -> str:
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CompileError(f"{path} does not run: {error}") from None
    return answer.stdout.strip()


@cache
def find_nvcc() -> Compiler:
    """Nvcc, from CUDA_HOME, the PATH or /usr/local/cuda.

    Raises
    ------
    CompileError
        None is there.
    """
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    candidates = [Path(home) / "bin" / "nvcc" for home in homes if home]
    on_path = shutil.which("nvcc")
    candidates += [Path(on_path)] if on_path else []
    candidates.append(Path("/usr/local/cuda/bin/nvcc"))
    for path in candidates:
        if path.is_file():
            return Compiler(path, _version(path))
    raise CompileError(
        "nvcc was not found: install the CUDA toolkit, or set CUDA_HOME to where it is"
    )


def cuda_compiler_problem() -> str | None:
    """Why no kernel can be compiled for a GPU here, in one line; None if one can."""
    try:
        find_nvcc()
    except CompileError as error:
        return str(error)
    return None


@cache
def find_host_compiler() -> Compiler:
    """g++, from CXX or the PATH: what the emulated device compiles with.

    Raises
    ------
    CompileError
        None is there, or it is not GCC (whose options the emulation needs).
    """
    for name in filter(None, (os.environ.get("CXX"), "g++", "c++")):
        path = shutil.which(name)
        if path is None:
            continue
        compiler = Compiler(Path(path), _version(Path(path)))
        if "Free Software Foundation" in compiler.version:
            return compiler
    raise CompileError("g++ was not found: install GCC's C++ compiler, or set CXX to it")


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


def _run(command: list[str], what: str) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CompileError(f"{command[0]} does not run: {error}") from None
    output = answer.stdout + answer.stderr
    if answer.returncode == 0:
        return output
    raise CompileError(
        f"{Path(command[0]).name} refused {what}: {_cause(output)}",
        command=" ".join(command),
        output=output,
    )


def _cause(output: str) -> str:
    """The one line of a compiler's output that says why, with a remedy where one is known."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    if "nsupported gpu architecture" in output:
        return f"{first}; this toolkit is older than the GPU: install a newer CUDA toolkit"
    if "unsupported GNU version" in output:
        return f"{first}; set NVCC_CCBIN to an older g++ or install a newer CUDA toolkit"
    return first or "it gave no reason"


def _cached(
    text: str, name: str, suffix: str, compiler: Compiler, options: tuple[str, ...]
) -> Path:
    """Where the binary of ``text`` with these options is or will be."""
    root = source_folder()
    # nvcc never comes to the emulation: what changes there is nothing to a cubin.
    sources = _digest(text, root, _state(root), suffix != ".cubin")
    key = hashlib.sha256()
    for part in (compiler.version, *options, text, sources):
        key.update(part.encode() + b"\0")
    return cache_folder() / f"{name}-{key.hexdigest()[:24]}{suffix}"


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


def _build(target: Path, text: str, name: str, *steps: list[str]) -> Path:
    """Compile ``text`` beside ``target`` and publish the binary there by renaming it.

    Each step is a command that reads the file before it, the first one ``text``; the last one
    makes the binary.
    """
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}-") as work:
        made = Path(work) / f"{name}{'.cu' if target.suffix == '.cubin' else '.cpp'}"
        made.write_text(text, encoding="utf-8")
        for number, step in enumerate(steps):
            output = Path(work) / f"{number}{target.suffix if step is steps[-1] else '.o'}"
            _run([*step, str(made), "-o", str(output)], name)
            made = output
        os.replace(made, target)
    return target


def _name(config: Config) -> str:
    return f"{Path(config.program.loop).stem}-{config.advance}-{config.claim}"


def cubin(config: Config, architecture: str) -> Path:
    """The cubin of ``config`` for ``architecture`` (``sm_90``), compiled if it is not in the cache.

    Raises
    ------
    CompileError
        nvcc is missing, too old for the architecture, or refused the source.
    """
    return compile_cubin(render_stub(config), f"{_name(config)}-{architecture}", architecture)


def compile_cubin(text: str, name: str, architecture: str) -> Path:
    """The cubin of any stub ``text``; raises as `cubin`."""
    compiler = find_nvcc()
    options = (*NVCC_OPTIONS, f"-arch={architecture}")
    target = _cached(text, name, ".cubin", compiler, options)
    if target.is_file():
        return target
    return _build(target, text, name, [str(compiler.path), *options, "-I", str(source_folder())])


_PTXAS = re.compile(
    r"Compiling entry function '(?P<kernel>\w+)'.*?(?P<stack>\d+) bytes stack frame"
    r".*?Used (?P<registers>\d+) registers(?:.*?(?P<shared>\d+) bytes smem)?[^\n]*",
    re.DOTALL,
)


def resources(config: Config, architecture: str) -> dict[str, KernelResources]:
    """What each kernel of ``config`` needs on ``architecture``, by the compiler's own report.

    Raises
    ------
    CompileError
        As `cubin`.
    """
    compiler = find_nvcc()
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "stub.cu"
        source.write_text(render_stub(config), encoding="utf-8")
        options = [*NVCC_OPTIONS, f"-arch={architecture}", "-Xptxas=-v", "-I", str(source_folder())]
        binary = str(Path(work) / "stub.cubin")
        report = _run([str(compiler.path), *options, str(source), "-o", binary], _name(config))
    found = {
        entry["kernel"]: KernelResources(
            int(entry["registers"]), int(entry["shared"] or 0), int(entry["stack"])
        )
        for part in report.split("ptxas info    : Compiling")[1:]
        for entry in _PTXAS.finditer("Compiling" + part)
    }
    missing = set(config.kernels) - set(found)
    if missing:
        raise CompileError(f"nvcc said nothing of {', '.join(missing)}", output=report)
    return found


def emulated_library(config: Config) -> Path:
    """The shared library of ``config`` for the emulated device, compiled if not in the cache.

    Raises
    ------
    CompileError
        g++ is missing or refused the source.
    """
    return compile_emulated(render_stub(config), _name(config))


def compile_emulated(text: str, name: str) -> Path:
    """A shared library of any stub ``text``, with the emulation's runtime linked in."""
    compiler = find_host_compiler()
    runtime = _emulation_runtime(compiler)
    options = (*EMULATED_OPTIONS, *LINK_OPTIONS, runtime.name)
    target = _cached(text, name, ".so", compiler, options)
    if target.is_file():
        return target
    return _build(
        target,
        text,
        name,
        [str(compiler.path), *EMULATED_OPTIONS, *_mapped_sources()],
        [str(compiler.path), *LINK_OPTIONS, str(runtime)],
    )


def _mapped_sources() -> list[str]:
    """Options that find the device code and call it by one name, wherever the clone is."""
    folder = str(source_folder())
    return ["-I", folder, f"-ffile-prefix-map={folder}={SOURCE_NAME}"]


def _emulation_runtime(compiler: Compiler) -> Path:
    text = '#include "emulation/simt.cpp"\n'
    target = _cached(text, "simt", ".o", compiler, RUNTIME_OPTIONS)
    if target.is_file():
        return target
    return _build(
        target, text, "simt", [str(compiler.path), *RUNTIME_OPTIONS, "-I", str(source_folder())]
    )

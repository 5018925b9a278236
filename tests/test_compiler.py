from __future__ import annotations

import configparser
import ctypes
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from graphs import REPOSITORY

from persistent_bfs import cache, compiler, layout, nvrtc, toolchain
from persistent_bfs.compiler import ARCHITECTURES, CompileError, Compiler, KernelResources
from persistent_bfs.config import ADVANCES, ENGINES, TIERS, Config, rows_by_loop
from persistent_bfs.device.emulated import EmulatedDevice
from persistent_bfs.tiers import shared_bytes

CUDA_COMPILERS = ("nvrtc", "nvcc")


@pytest.fixture(params=CUDA_COMPILERS)
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each compiler for GPUs that is there."""
    kind: str = request.param
    monkeypatch.setenv(compiler.COMPILER_VARIABLE, kind)
    if missing := compiler.cuda_compiler_problem():
        pytest.skip(missing)
    return kind


TRIVIAL = """#include "types.cuh"
extern "C" __attribute__((visibility("default"))) int answer() { return 42; }
"""


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # It has the emulation's runtime, which takes longer to compile than all that is asked of it.
    runtime = compiler._emulation_runtime(compiler.find_host_compiler())
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    shutil.copy2(runtime, folder)
    monkeypatch.setenv(compiler.CACHE_VARIABLE, str(folder))
    return folder


def _answer(library: Path) -> int:
    return ctypes.CDLL(str(library)).answer()  # type: ignore[no-any-return]


def test_the_second_time_nothing_is_compiled(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compiler.compile_emulated(TRIVIAL, "trivial")
    monkeypatch.setattr(compiler, "run", lambda *_: pytest.fail("compiled again"))
    assert compiler.compile_emulated(TRIVIAL, "trivial") == first
    assert first.parent == fresh_cache
    assert _answer(first) == 42


def test_an_edited_header_is_compiled_anew(fresh_cache: Path, sources: Path) -> None:
    first = compiler.compile_emulated(TRIVIAL, "trivial")
    header = sources / "emulation" / "simt.hpp"  # reached through types and platform
    header.write_text(header.read_text() + "// edited\n")
    assert compiler.compile_emulated(TRIVIAL, "trivial") != first


def entry(text: str, suffix: str, *parts: str) -> str:
    return compiler._entry("x", suffix, text, *parts)


def test_a_cubin_does_not_depend_on_the_emulation(sources: Path) -> None:
    text = compiler.render_stub(Config("host_loop"))

    def keys() -> list[str]:
        return [entry(text, suffix) for suffix in (".cubin", ".so")]

    before = keys()
    with (sources / "emulation" / "simt.hpp").open("a") as header:
        header.write("// edited\n")
    emulation_edited = keys()
    with (sources / "types.cuh").open("a") as header:
        header.write("// edited\n")
    types_edited = keys()
    assert [a == b for a, b in zip(before, emulation_edited, strict=True)] == [True, False]
    assert [a == b for a, b in zip(before, types_edited, strict=True)] == [False, False]


def test_sources_are_read_again_only_when_edited(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = compiler.render_stub(Config("host_loop"))
    first = entry(text, ".so")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("read again"))
        assert entry(text, ".so") == first
    header = sources / "types.cuh"
    header.write_text(header.read_text().replace("a", "b", 1))  # of the same size
    assert entry(text, ".so") != first


def test_all_parts_are_in_the_key() -> None:
    other = TRIVIAL.replace("42", "43")
    keys = {entry(TRIVIAL, ".so"), entry(other, ".so"), entry(TRIVIAL, ".so", "-O2")}
    keys |= {entry(TRIVIAL, ".so", "-O3"), entry(TRIVIAL, ".so", "-O2", "-g")}
    keys |= {entry(TRIVIAL, ".so", "-O", "2-g")}
    assert len(keys) == 6


def test_the_version_of_gcc_is_in_the_key(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set()
    found = compiler.find_host_compiler()
    monkeypatch.setattr(cache, "find", lambda name: names.add(name) or fresh_cache / name)
    for version in (found.version, found.version + " newer"):
        newer = Compiler(found.path, version)
        monkeypatch.setattr(compiler, "find_host_compiler", lambda newer=newer: newer)
        compiler.compile_emulated(TRIVIAL, "trivial")
    assert len(names) == 4  # the runtime and what is linked with it, of each


# Which compiler makes a cubin, and when none is needed.

REPORT = """ptxas info    : Compiling entry function 'search' for 'sm_90'
ptxas info    : Function properties for search
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 48 registers, used 1 barriers, 8 bytes cumulative stack size, 1120 bytes smem
ptxas info    : Compiling entry function 'reset' for 'sm_90'
ptxas info    : Function properties for reset
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 18 registers, used 1 barriers
"""


class FakeCompilers:
    """NVRTC and nvcc, of which ``there`` are there; keeps what each was asked to compile."""

    def __init__(self, there: str = "nvrtc nvcc", known: tuple[int, ...] = (75, 90, 120)) -> None:
        self.there, self.known = there.split(), known
        self.compiled: list[tuple[str, str]] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> FakeCompilers:
        for kind, version in (("nvrtc", "NVRTC 13.5"), ("nvcc", "tools, release 12.9, V1")):
            row = compiler.CUDA_COMPILERS[kind]._replace(
                find=lambda kind=kind, version=version: self._find(kind, version),
                architectures=lambda _: self.known,
                compile=lambda *asked, kind=kind: self._compile(kind, *asked),
            )
            monkeypatch.setitem(compiler.CUDA_COMPILERS, kind, row)
        monkeypatch.delenv(compiler.COMPILER_VARIABLE, raising=False)
        return self

    def _find(self, kind: str, version: str) -> Compiler:
        if kind not in self.there:
            raise CompileError(f"{kind} was not found: get it")
        return Compiler(Path(kind), version)

    def _compile(self, kind: str, *asked: Any) -> str:
        architecture, made = asked[-2:]
        self.compiled.append((kind, architecture))
        made.write_bytes(b"by " + kind.encode())
        return REPORT


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCompilers:
    monkeypatch.setenv(compiler.CACHE_VARIABLE, str(tmp_path / "cubins"))
    return FakeCompilers().install(monkeypatch)


def make(architecture: str = "sm_90") -> Path:
    return compiler.compile_cubin(TRIVIAL, "trivial", architecture)


def test_a_cubin_that_is_there_needs_no_compiler(fakes: FakeCompilers) -> None:
    assert compiler.cuda_kernels_problem() is None
    first = make()
    fakes.there.clear()
    cache._known.clear()  # as another process
    assert make() == first
    assert fakes.compiled == [("nvrtc", "sm_90")]
    missing = "nvrtc was not found: get it; nvcc was not found: get it"
    assert compiler.cuda_compiler_problem() == missing
    assert compiler.cuda_kernels_problem() is None
    cache.discard(first)
    assert compiler.cuda_kernels_problem() == missing
    with pytest.raises(CompileError, match=missing):
        make()


def test_a_cubin_that_is_there_imports_and_starts_nothing(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from persistent_bfs import cache, compiler\n"
        "text = compiler.render_stub(compiler.Config('persistent'))\n"
        "parts = ('nvrtc', *compiler.CUDA_COMPILERS['nvrtc'].options, 'sm_90')\n"
        "name = compiler._entry('k', '.cubin', text, *parts)\n"
        "with cache.work_folder('k') as work:\n"
        "    (work / 'k').write_bytes(b'cubin')\n"
        "    made = cache.publish(name, work / 'k', {})\n"
        "def refuse(*a, **k): raise SystemExit('a process was started')\n"
        "import subprocess\n"
        "subprocess.Popen.__init__ = refuse\n"
        "assert compiler.compile_cubin(text, 'k', 'sm_90') == made\n"
        "assert compiler.cuda_kernels_problem() is None\n"
        "loaded = [m for m in sys.modules if m.split('.')[0] in ('pycuda', 'cuda')]\n"
        "assert not loaded, loaded\n"
    )
    environment = {**os.environ, compiler.CACHE_VARIABLE: str(tmp_path / "cache")}
    environment.pop(compiler.COMPILER_VARIABLE, None)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=environment)


def test_nvrtc_comes_first_and_nvcc_where_it_is_missing(fakes: FakeCompilers) -> None:
    assert make().read_bytes().startswith(b"by nvrtc")
    assert compiler.find_cuda_compiler()[0] == "nvrtc"
    fakes.there.remove("nvrtc")
    assert compiler.find_cuda_compiler()[0] == "nvcc"
    assert make("sm_120").read_bytes().startswith(b"by nvcc")
    assert fakes.compiled == [("nvrtc", "sm_90"), ("nvcc", "sm_120")]


def test_the_compiler_asked_for_is_the_one(
    fakes: FakeCompilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    make()
    monkeypatch.setenv(compiler.COMPILER_VARIABLE, "nvcc")
    for _ in range(2):
        assert make().read_bytes().startswith(b"by nvcc")
    assert fakes.compiled == [("nvrtc", "sm_90"), ("nvcc", "sm_90")]
    fakes.there.remove("nvcc")
    assert compiler.cuda_compiler_problem() == "nvcc was not found: get it"
    monkeypatch.setenv(compiler.COMPILER_VARIABLE, "clang")
    words = "PERSISTENT_BFS_COMPILER is 'clang'; it must be one of nvrtc, nvcc"
    assert compiler.cuda_compiler_problem() == words
    with pytest.raises(CompileError, match=words):
        make()


def test_an_edited_header_is_compiled_anew_for_gpus(fakes: FakeCompilers, sources: Path) -> None:
    first = make()
    (sources / "types.cuh").write_text((sources / "types.cuh").read_text() + "// edited\n")
    assert make() != first
    assert len(fakes.compiled) == 2


def test_a_damaged_cubin_is_compiled_anew(fakes: FakeCompilers) -> None:
    path = make()
    path.write_bytes(path.read_bytes()[:-1])
    assert make() == path
    assert len(fakes.compiled) == 2
    assert make() == path
    assert len(fakes.compiled) == 2


def test_a_compiler_takes_what_the_other_does_not_know(
    fakes: FakeCompilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = compiler.CUDA_COMPILERS["nvcc"]._replace(architectures=lambda _: (75, 130))
    monkeypatch.setitem(compiler.CUDA_COMPILERS, "nvcc", newer)
    make("sm_130")
    assert fakes.compiled == [("nvcc", "sm_130")]
    assert compiler.find_cuda_compiler("sm_130")[0] == "nvcc"
    assert compiler.find_cuda_compiler("sm_90")[0] == "nvrtc"


def test_what_the_assembler_says_is_kept_with_the_cubin(fakes: FakeCompilers) -> None:
    kernels = {"search": KernelResources(48, 1120, 8), "reset": KernelResources(18, 0, 0)}
    assert compiler._resources_in(REPORT) == kernels
    path = make("sm_121")
    assert cache.facts(path) == {
        "compiler": "nvrtc",
        "release": [13, 5],
        "architecture": "sm_120",
        "kernels": {name: vars(used) for name, used in kernels.items()},
    }
    with pytest.raises(CompileError, match="said nothing of search_persistent"):
        compiler.resources(Config("persistent"), "sm_90")


@pytest.mark.parametrize(
    ("architecture", "known", "wanted"),
    [
        ("sm_90", (75, 80, 90), "sm_90"),
        ("sm_89", (75, 80, 86, 90), "sm_86"),
        ("sm_121", (75, 120), "sm_120"),
        ("sm_103", (90, 100, 110), "sm_100"),
    ],
)
def test_an_unknown_architecture_runs_what_an_older_one_of_its_kind_does(
    architecture: str, known: tuple[int, ...], wanted: str
) -> None:
    assert toolchain.target(architecture, known, Compiler(Path("x"), "NVRTC 13.0")) == wanted


@pytest.mark.parametrize(
    ("architecture", "version", "words"),
    [
        ("sm_110", "NVRTC 12.9", r"NVRTC 12\.9 knows no sm_110.*--upgrade '\.\[cuda\]'"),
        ("sm_110", "release 12.9,", r"nvcc 12\.9 knows no sm_110.*a newer CUDA toolkit"),
        ("sm_75", "NVRTC 14.0", "knows no sm_75, which is older than all it knows"),
        ("sm_61", "NVRTC 12.9", "sm_61 is too old: the kernels need sm_70"),
        ("sm_9", "NVRTC 12.9", "'sm_9' is no architecture of a GPU; give one such as sm_90"),
        ("90", "NVRTC 12.9", "is no architecture"),
        ("sm_90 -x", "NVRTC 12.9", "is no architecture"),
    ],
)
def test_what_no_compiler_takes_is_one_line(architecture: str, version: str, words: str) -> None:
    with pytest.raises(CompileError, match=words):
        toolchain.target(architecture, (80, 90, 120), Compiler(Path("x"), version))


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (12040, "13.5, newer than the driver's CUDA 12.4: update the driver or, from a clone"),
        (11080, "13.5, newer than the driver's CUDA 11.8: update the driver, and then"),
        (13000, None),
        (14000, None),
    ],
)
def test_a_cubin_newer_than_the_driver_is_named(
    driver: int, words: str | None, fakes: FakeCompilers
) -> None:
    said = compiler.newer_than_driver(make(), driver)
    assert (words in said) if words and said else said is words
    assert compiler.newer_than_driver(Path("nowhere.cubin"), driver) is None


def test_what_does_not_load_is_compiled_once_more(fakes: FakeCompilers) -> None:
    seen = []

    def load(path: Path) -> int:
        seen.append(path.read_bytes())
        if len(seen) == 1:
            raise OSError("invalid ELF header")
        return 7

    assert compiler.load_compiled(make, load, OSError) == 7
    assert len(fakes.compiled) == len(seen) == 2

    def refuse(_: Path) -> int:
        seen.append(b"")
        raise OSError("for ever")

    with pytest.raises(OSError, match="for ever"):
        compiler.load_compiled(make, refuse, OSError)
    assert len(seen) == 4


def test_an_entry_of_another_system_is_compiled_anew(fresh_cache: Path) -> None:
    device, config = EmulatedDevice(), Config("host_loop")
    with device:
        path = device.compile(config)
        with cache.work_folder("text") as work:
            (work / "text").write_text("whole, and no library")
            cache.publish(path.name, work / "text", {})
        assert set(device.load(config).kernels) == set(config.kernels)
    assert path.read_bytes().startswith(b"\x7fELF")


def _compile_in_process(_: int) -> str:
    return str(compiler.compile_emulated(TRIVIAL, "trivial"))


def test_eight_processes_at_once_publish_one_whole_binary(fresh_cache: Path) -> None:
    # They are forked from one that has imported what they need, or importing is what it takes.
    context = get_context("forkserver")
    context.set_forkserver_preload(["persistent_bfs.compiler"])
    with ProcessPoolExecutor(8, mp_context=context) as pool:
        made = set(pool.map(_compile_in_process, range(8)))
    assert len(made) == 1
    assert _answer(Path(made.pop())) == 42
    assert not list(fresh_cache.glob(".*"))


def test_a_refused_source_gives_one_line_and_keeps_the_rest(fresh_cache: Path) -> None:
    with pytest.raises(CompileError) as caught:
        compiler.compile_emulated('#include "types.cuh"\nint broken = ;\n', "broken")
    assert "\n" not in str(caught.value)
    assert "refused broken" in str(caught.value)
    assert "error" in str(caught.value)
    assert "broken" in caught.value.output
    assert "-fsanitize=thread" in caught.value.command
    assert not list(fresh_cache.glob("broken*"))


def test_a_missing_header_is_named() -> None:
    with pytest.raises(CompileError, match=r'includes "nowhere\.cuh", which is not there'):
        compiler.compile_emulated('#include "nowhere.cuh"\n', "broken")


@pytest.mark.parametrize(
    ("find", "words"),
    [
        (compiler.find_nvcc, "install the CUDA toolkit, or set CUDA_HOME"),
        (compiler.find_host_compiler, "set CXX"),
    ],
)
def test_a_missing_compiler_is_one_line_with_the_remedy(
    find: object, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("CUDA_HOME", "CUDA_PATH", "CXX", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    find.cache_clear()  # type: ignore[attr-defined]
    try:
        with pytest.raises(CompileError, match=words):
            find()  # type: ignore[operator]
    finally:
        find.cache_clear()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("gcc: No such file or directory", r"host compiler: install g\+\+, or .*cuda"),
        ("nvrtc: error: failed to open libnvrtc-builtins.so.13.5", "reinstall nvidia-cuda-nvrtc"),
        (
            "x.cu(1): warning: w\nx.cu(2): error: bad\nx.cu(3): error: worse",
            r"^x.cu\(2\): error: bad$",
        ),
        ("#error -- unsupported GNU version! gcc versions later than 13", "NVCC_CCBIN"),
        ("", "it gave no reason"),
    ],
)
def test_known_causes_come_with_their_remedy(output: str, words: str) -> None:
    assert re.search(words, toolchain.cause(output))


def test_layouts_are_the_compilers() -> None:
    structs = {
        "SearchRequest": layout.SEARCH_REQUEST.itemsize,
        "SearchState": layout.SEARCH_STATE.itemsize,
        "LevelRecord": layout.LEVEL_RECORD.itemsize,
        "RunClocks": layout.RUN_CLOCKS.itemsize,
        "LaunchArguments": ctypes.sizeof(layout.LaunchArguments),
        "SearchParameters<int>": ctypes.sizeof(layout.SearchParameters),
        "SearchParameters<long long>": ctypes.sizeof(layout.SearchParameters),
    }
    sizes = ", ".join(f"sizeof(persistent_bfs::{name})" for name in structs)
    text = (
        '#include "types.cuh"\n'
        f'extern "C" __attribute__((visibility("default"))) int sizes[] = {{{sizes}}};\n'
    )
    library = ctypes.CDLL(str(compiler.compile_emulated(text, "sizes")))
    assert list((ctypes.c_int * len(structs)).in_dll(library, "sizes")) == list(structs.values())


def test_totals_have_the_same_fields_in_python_and_in_memory() -> None:
    assert layout.FrontierTotals._fields == layout.FRONTIER_TOTALS.names


def test_the_shared_memory_of_a_tier_is_what_its_code_lays_out() -> None:
    text = (
        compiler.render_stub(Config("persistent", tier="block"))
        + 'extern "C" __attribute__((visibility("default"))) int bits = '
        "persistent_bfs::tier::Layout{nullptr, 96}.visited().begin - static_cast<char*>(nullptr);\n"
    )
    library = ctypes.CDLL(str(compiler.compile_emulated(text, "tier")))
    begin = ctypes.c_int.in_dll(library, "bits").value
    assert shared_bytes(65, 96) == begin + 4 * 3
    # Words 0, 2, 4 to one block, 1, 3 to the other.
    assert shared_bytes(129, 96, blocks=2) == begin + 4 * 3


def test_engines_with_one_loop_share_one_binary() -> None:
    batched = compiler.render_stub(Config("host_batched"))
    assert batched == compiler.render_stub(Config("graph_unrolled"))
    assert batched != compiler.render_stub(Config("host_batched", advance="warp"))


# Of every row that is: .ci/compile_all.py looks at them too.
def test_no_kernel_of_any_tier_needs_local_memory_on_sm_90(by: str) -> None:
    configs = [config for config in rows_by_loop() if config.packed_rows]
    assert len(configs) == len(TIERS) - 1
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda config: compiler.resources(config, "sm_90"), configs))
    for config, kernels in zip(configs, reports, strict=True):
        assert set(kernels) == set(config.kernels)
        for name, used in kernels.items():
            assert used.local_bytes == 0, (config, name, used)
            assert 0 < used.registers * config.block_threads <= 65536, (config, name, used)


@pytest.mark.parametrize(("engine", "advance"), list(zip(ENGINES, ADVANCES, strict=False)))
def test_both_compilers_take_engines_and_mappings(by: str, engine: str, advance: str) -> None:
    config = Config(engine, advance=advance, predecessors=True, trace=True)
    path = compiler.cubin(config, "sm_90")
    binary = path.read_bytes()
    assert binary[:4] == b"\x7fELF"
    for kernel in config.kernels:
        assert kernel.encode() in binary
    assert cache.facts(path)["compiler"] == by
    assert set(compiler.resources(config, "sm_90")) == set(config.kernels)


def test_a_source_refused_for_gpus_gives_one_line_and_keeps_the_rest(by: str) -> None:
    text = '#include "types.cuh"\n__global__ void broken() { nothing_such; }\n'
    with pytest.raises(CompileError) as caught:
        compiler.compile_cubin(text, "broken", "sm_90")
    assert re.search(
        r"refused broken: \S*broken\.cu\(2\): error: .*nothing_such", str(caught.value)
    )
    assert "\n" not in str(caught.value)
    assert "1 error detected" in caught.value.output
    assert "sm_90" in caught.value.command


def test_the_device_code_includes_nothing_but_itself_for_gpus() -> None:
    for row in rows_by_loop():
        text = compiler.render_stub(row)
        for name, content in compiler._reached_sources(text, compiler.source_folder()):
            if not name.startswith("emulation/"):
                assert "#include <" not in content, name


def test_trying_a_compiler_keeps_nothing(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(compiler.CACHE_VARIABLE, str(tmp_path / "none"))
    compiler.try_cuda_compiler("sm_75")
    assert not (tmp_path / "none").exists()


def test_a_missing_nvrtc_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def library_missing() -> Any:
        raise RuntimeError('Failure finding "libnvrtc.so": No such file\nand more\nlines')

    def package_missing() -> Any:
        raise ModuleNotFoundError("No module named 'cuda'")

    compiler.find_nvrtc.cache_clear()
    try:
        for missing, words in (
            (package_missing, "No module named 'cuda'"),
            (library_missing, 'Failure finding "libnvrtc.so": No such file'),
        ):
            monkeypatch.setattr(nvrtc, "_nvrtc", missing)
            with pytest.raises(CompileError) as caught:
                compiler.find_nvrtc()
            assert str(caught.value) == f"NVRTC was not found ({words}); {compiler.INSTALL}"
    finally:
        compiler.find_nvrtc.cache_clear()


def test_the_oldest_and_newest_architectures_are_named() -> None:
    assert ARCHITECTURES[0] == "sm_75"
    assert ARCHITECTURES[-1] == "sm_120"


def test_importing_the_package_calls_no_compiler_and_no_gpu() -> None:
    code = (
        "import subprocess, sys\n"
        "def refuse(*a, **k): raise SystemExit('a process was started at import')\n"
        "subprocess.Popen.__init__ = refuse\n"
        "import persistent_bfs, persistent_bfs.cli\n"
        "loaded = [m for m in sys.modules if m.split('.')[0] in ('pycuda', 'cuda')]\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_every_folder_of_device_code_is_in_the_wheel() -> None:
    declared = configparser.ConfigParser()
    declared.read(REPOSITORY / "setup.cfg")
    packages = set(declared["options"]["packages"].split())
    data = declared["options.package_data"]
    for file in (REPOSITORY / "cuda").rglob("*.[ch]*"):
        folder = ".".join(("persistent_bfs", *file.relative_to(REPOSITORY).parts[:-1]))
        assert folder in packages
        assert f"*{file.suffix}" in data[folder].replace(",", " ").split()


def test_what_remedies_tell_to_install_is_wheels_alone() -> None:
    declared = configparser.ConfigParser()
    declared.read(REPOSITORY / "setup.cfg")
    extras = {
        name: [line for line in lines.split("\n") if line and not line.startswith("#")]
        for name, lines in declared["options.extras_require"].items()
    }
    named = re.findall(r"\.\[(\w+)\]", compiler.INSTALL)
    assert named == ["cuda", "cuda12"]
    wheels = ("cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc")
    for name in named:
        assert all(line.startswith(wheels) for line in extras[name]), extras[name]

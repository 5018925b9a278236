from __future__ import annotations

import configparser
import ctypes
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from graphs import REPOSITORY

from persistent_bfs import compiler, layout
from persistent_bfs.compiler import ARCHITECTURES, CompileError
from persistent_bfs.config import ADVANCES, ENGINES, TIERS, Config, rows_by_loop
from persistent_bfs.tiers import shared_bytes


def _has_nvcc() -> bool:
    try:
        compiler.find_nvcc()
    except CompileError:
        return False
    return True


TRIVIAL = """#include "types.cuh"
extern "C" __attribute__((visibility("default"))) int answer() { return 42; }
"""


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # It has the emulation's runtime, which takes longer to compile than all that is asked of it.
    runtime = compiler._emulation_runtime(compiler.find_host_compiler())
    folder = tmp_path / "cache"
    folder.mkdir()
    shutil.copy2(runtime, folder)
    monkeypatch.setenv(compiler.CACHE_VARIABLE, str(folder))
    compiler.cache_folder.cache_clear()
    yield folder
    monkeypatch.undo()
    compiler.cache_folder.cache_clear()


def _answer(library: Path) -> int:
    return ctypes.CDLL(str(library)).answer()  # type: ignore[no-any-return]


def test_the_second_time_nothing_is_compiled(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compiler.compile_emulated(TRIVIAL, "trivial")
    monkeypatch.setattr(compiler, "_run", lambda *_: pytest.fail("compiled again"))
    assert compiler.compile_emulated(TRIVIAL, "trivial") == first
    assert first.parent == fresh_cache
    assert _answer(first) == 42


def test_an_edited_header_is_compiled_anew(fresh_cache: Path, sources: Path) -> None:
    first = compiler.compile_emulated(TRIVIAL, "trivial")
    header = sources / "emulation" / "simt.hpp"  # reached through types and platform
    header.write_text(header.read_text() + "// edited\n")
    assert compiler.compile_emulated(TRIVIAL, "trivial") != first


def test_a_cubin_does_not_depend_on_the_emulation(sources: Path) -> None:
    text = compiler.render_stub(Config("host_loop"))
    nvcc = compiler.Compiler(Path("nvcc"), "13")

    def keys() -> list[str]:
        return [compiler._cached(text, "x", suffix, nvcc, ()).name for suffix in (".cubin", ".so")]

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
    found = compiler.Compiler(Path("g++"), "12")

    def key() -> Path:
        return compiler._cached(text, "x", ".so", found, ())

    first = key()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("read again"))
        assert key() == first
    header = sources / "types.cuh"
    header.write_text(header.read_text().replace("a", "b", 1))  # of the same size
    assert key() != first


def test_version_and_options_are_in_the_key(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compiler.find_host_compiler()
    names = {
        compiler._cached(TRIVIAL, "t", ".so", found, options)
        for options in (("-O2",), ("-O3",), ("-O2", "-g"))
    }
    newer = compiler.Compiler(found.path, found.version + " newer")
    names.add(compiler._cached(TRIVIAL, "t", ".so", newer, ("-O2",)))
    assert len(names) == 4


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


def test_a_folder_that_cannot_be_written_is_said_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv(compiler.CACHE_VARIABLE, str(blocked / "cache"))
    compiler.cache_folder.cache_clear()
    with pytest.warns(UserWarning, match="set PERSISTENT_BFS_CACHE_DIR to a folder"):
        folder = compiler.cache_folder()
    assert folder.is_dir()
    shutil.rmtree(folder)
    compiler.cache_folder.cache_clear()


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
    for variable in ("CUDA_HOME", "CUDA_PATH", "CXX"):
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
        ("nvcc fatal   : Unsupported gpu architecture 'sm_120'", "install a newer CUDA toolkit"),
        ("#error -- unsupported GNU version! gcc versions later than 13", "NVCC_CCBIN"),
        ("", "it gave no reason"),
    ],
)
def test_known_causes_come_with_their_remedy(output: str, words: str) -> None:
    assert words in compiler._cause(output)


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


@pytest.mark.skipif(not _has_nvcc(), reason="nvcc was not found")
# Of every row that is: .ci/compile_all.py looks at them too.
def test_no_kernel_of_any_tier_needs_local_memory_on_sm_90() -> None:
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
def test_nvcc_takes_engines_and_mappings(engine: str, advance: str) -> None:
    try:
        compiler.find_nvcc()
    except CompileError as missing:
        pytest.skip(str(missing))
    config = Config(engine, advance=advance, predecessors=True, trace=True)
    binary = compiler.cubin(config, "sm_90").read_bytes()
    assert binary[:4] == b"\x7fELF"
    for kernel in config.kernels:
        assert kernel.encode() in binary


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

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from persistent_bfs import compiler, doctor
from persistent_bfs.device import cuda_problem, emulated_problem
from persistent_bfs.doctor import Check, Driver, Gpu, usable
from persistent_bfs.toolchain import nvcc_architectures

OLD_GPU = Driver(12030, Gpu("Old One", "sm_52", False))


def named(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_the_interpreter_and_packages_are_named_with_their_versions() -> None:
    (python,) = doctor.examine_python()
    assert python.ok
    assert python.detail.startswith(".".join(map(str, sys.version_info[:3])))
    assert named(doctor.examine_packages())["numpy"] == Check("numpy", True, numpy.__version__)


def test_a_missing_gpu_package_is_a_fault_only_where_a_gpu_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "FOR_CUDA", ("no-such-package",))
    for driver, ok in ((Driver(), None), (OLD_GPU, False)):
        monkeypatch.setattr(doctor, "ask_driver", lambda driver=driver: driver)
        check = named(doctor.examine_packages())["no-such-package"]
        assert check.ok is ok
        assert "from a clone: pip install '.[cuda]'" in check.remedy


def test_pycuda_is_never_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-package": "if you wish"})
    monkeypatch.setattr(doctor, "ask_driver", lambda: OLD_GPU)
    check = named(doctor.examine_packages())["no-such-package"]
    assert check == Check("no-such-package", None, "not installed", "if you wish")


def test_without_a_driver_there_is_one_line_and_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "DRIVER_LIBRARIES", ("no-such-library.so",))
    doctor.ask_driver.cache_clear()
    try:
        (check,) = doctor.examine_gpu()
    finally:
        doctor.ask_driver.cache_clear()
    assert (check.name, check.ok, check.detail) == ("NVIDIA driver", None, "not installed")


def test_an_old_gpu_and_driver_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ask_driver", lambda: OLD_GPU)
    checks = named(doctor.examine_gpu())
    assert checks["NVIDIA driver"].detail == "CUDA 12.3"
    assert checks["GPU"].detail == "Old One, sm_52"
    assert checks["cooperative launch"].ok is False
    assert checks["WHILE nodes"].ok is False
    assert "graph_unrolled" in checks["WHILE nodes"].remedy


def test_a_driver_that_fails_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ask_driver", lambda: Driver(13000, problem="cuInit answers 999"))
    (check,) = doctor.examine_gpu()
    assert check.ok is False
    assert check.detail == "CUDA 13.0: cuInit answers 999"


def find(version: str) -> Callable[[], compiler.Compiler]:
    """A function that finds a compiler of this version, or none."""

    def found() -> compiler.Compiler:
        if not version:
            raise compiler.CompileError("it was not found: install it")
        return compiler.Compiler(Path("somewhere"), version)

    return found


@pytest.fixture
def compilers(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The versions of the compilers that are there, for a GPU of sm_80; they compile anything."""
    there = {"nvrtc": "NVRTC 12.9", "nvcc": "nvcc\nCuda compilation tools, release 11.8, V11"}
    for kind in ("nvrtc", "nvcc"):
        monkeypatch.setattr(compiler, f"find_{kind}", lambda kind=kind: find(there[kind])())
        row = compiler.CUDA_COMPILERS[kind]._replace(
            architectures=lambda _: (75, 80), compile=lambda *_: ""
        )
        monkeypatch.setitem(compiler.CUDA_COMPILERS, kind, row)
    monkeypatch.delenv(compiler.COMPILER_VARIABLE, raising=False)
    driver = Driver(12040, Gpu("GPU", "sm_80", True))
    monkeypatch.setattr(doctor, "ask_driver", lambda: driver)
    return there


def test_missing_compilers_say_what_to_do(
    compilers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compilers.update(nvrtc="", nvcc="")
    monkeypatch.setattr(compiler, "find_host_compiler", find(""))
    checks = named(doctor.examine_compilers())
    assert checks["NVRTC"].ok is checks["nvcc"].ok is checks["g++"].ok is None
    assert "pip install '.[cuda]'" in checks["NVRTC"].remedy
    assert "CUDA_HOME" in checks["nvcc"].remedy
    assert "CXX" in checks["g++"].remedy
    assert checks["compile for sm_80"].ok is False
    monkeypatch.setattr(doctor, "ask_driver", Driver)
    assert named(doctor.examine_compilers())["compile for sm_90"].ok is None


def test_the_compiler_that_is_used_is_named_and_tried(
    compilers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = named(doctor.examine_compilers())
    assert checks["NVRTC"] == Check("NVRTC", True, "NVRTC 12.9: somewhere")
    assert "release 11.8" in checks["nvcc"].detail
    assert checks["compile for sm_80"] == Check("compile for sm_80", True, "by nvrtc")
    compilers["nvrtc"] = ""
    detail = named(doctor.examine_compilers())["compile for sm_80"].detail
    assert detail == "by nvcc, which needs a host compiler"

    def refuse(*_: object) -> str:
        raise compiler.CompileError("nvcc refused nothing: gcc: No such file; install g++")

    row = compiler.CUDA_COMPILERS["nvcc"]._replace(compile=refuse)
    monkeypatch.setitem(compiler.CUDA_COMPILERS, "nvcc", row)
    assert named(doctor.examine_compilers())["compile for sm_80"] == Check(
        "compile for sm_80", False, "nvcc refused nothing: gcc: No such file", "install g++"
    )


def test_the_compiler_asked_for_is_said(
    compilers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(compiler.COMPILER_VARIABLE, "nvrtc")
    detail = named(doctor.examine_compilers())["compile for sm_80"].detail
    assert detail == "by nvrtc, as PERSISTENT_BFS_COMPILER asks"


def test_compilers_that_do_not_know_the_gpu_are_a_fault(
    compilers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(12040, Gpu("GPU", "sm_90", True))
    monkeypatch.setattr(doctor, "ask_driver", lambda: driver)
    check = named(doctor.examine_compilers())["compile for sm_90"]
    assert check.ok is False
    assert "NVRTC 12.9 knows no sm_90" in check.detail


def test_a_compiler_newer_than_the_driver_is_a_fault(compilers: dict[str, str]) -> None:
    compilers["nvrtc"] = "NVRTC 13.0"
    check = named(doctor.examine_compilers())["compile for sm_80"]
    assert check.ok is False
    assert check.detail == "the compiler is of CUDA 13.0, newer than the driver's CUDA 12.4"
    assert "'.[cuda12]'" in check.remedy


def test_what_nvcc_knows_is_asked_of_it(tmp_path: Path) -> None:
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\nprintf 'sm_90\\nsm_75\\nsm_120\\n'\n")
    nvcc.chmod(0o755)
    assert nvcc_architectures(nvcc) == (75, 90, 120)


def test_the_package_that_speaks_to_the_driver_is_named_where_a_gpu_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "ask_driver", Driver)
    assert doctor.examine_driver() == []
    monkeypatch.setattr(doctor, "ask_driver", lambda: OLD_GPU)
    (check,) = doctor.examine_driver()
    assert check.detail in ("PyCUDA", "cuda.bindings")


def test_a_gpu_that_is_left_unused_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "cuda_problem", lambda: "cuda.bindings is missing; install it")
    monkeypatch.setattr(doctor, "ask_driver", Driver)
    assert doctor.unused_gpu("reference") is None
    monkeypatch.setattr(doctor, "ask_driver", lambda: OLD_GPU)
    assert doctor.unused_gpu("cuda") is None
    assert doctor.unused_gpu("emulated") == (
        "Old One was not used, the emulated device was: cuda.bindings is missing; install it"
    )


def test_the_cache_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / f"kernel-{'0' * 24}.so").write_bytes(bytes(3 * 2**20))
    (tmp_path / "another.txt").write_text("not an entry")
    tmp_path.chmod(0o700)
    monkeypatch.setenv(compiler.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv(compiler.LIMIT_VARIABLE, "2048")
    detail = f"{tmp_path}: 1 entry, 3.0 of 2,048 MiB"
    assert doctor.examine_cache() == [Check("cache", True, detail)]
    monkeypatch.setenv(compiler.LIMIT_VARIABLE, "much")
    (check,) = doctor.examine_cache()
    assert check.ok is False
    assert "a number of MiB" in check.remedy
    monkeypatch.setenv(compiler.CACHE_VARIABLE, str(tmp_path / "another.txt" / "cache"))
    (check,) = doctor.examine_cache()
    assert check.ok is False
    assert compiler.CACHE_VARIABLE in check.remedy


@pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))
def test_the_emulated_device_searches() -> None:
    check = doctor.search_on("emulated")
    assert check.ok, check.detail
    assert check.detail == (
        "persistent: path:100 100 reached in 100 levels, words-kjv 5,520 reached in 5 levels"
    )
    assert usable([check]) == ["emulated"]


def test_a_wrong_answer_makes_a_device_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("persistent_bfs.measure.find_problem", lambda *_: "vertex 3 differs")
    check = doctor.search_on("reference")
    assert check == Check(
        "search on reference", False, "path:100: wrong answer: vertex 3 differs", "report this"
    )
    assert usable([check]) == []


@pytest.mark.skipif(cuda_problem() is None, reason="a GPU can be used here")
def test_a_gpu_that_cannot_be_used_is_a_line_and_not_an_error() -> None:
    checks = named(doctor.examine_devices())
    assert checks["search on cuda"] == Check("search on cuda", None, str(cuda_problem()))
    assert "cuda" not in usable(checks.values())

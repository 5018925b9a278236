from __future__ import annotations

import sys
from pathlib import Path

import numpy
import pytest

from persistent_bfs import compiler, doctor
from persistent_bfs.device import cuda_problem, emulated_problem
from persistent_bfs.doctor import Check, Driver, Gpu, usable

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
        assert "pip install 'persistent-bfs[cuda]'" in check.remedy


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


def test_missing_compilers_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> compiler.Compiler:
        raise compiler.CompileError("it was not found: install it")

    monkeypatch.setattr(compiler, "find_nvcc", missing)
    monkeypatch.setattr(compiler, "find_host_compiler", missing)
    monkeypatch.setattr(doctor, "ask_driver", lambda: OLD_GPU)
    checks = named(doctor.examine_compilers())
    assert checks["nvcc"].ok is False
    assert "CUDA_HOME" in checks["nvcc"].remedy
    assert checks["g++"].ok is None
    assert "CXX" in checks["g++"].remedy


def test_an_nvcc_that_does_not_know_the_gpu_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\nprintf 'sm_75\\nsm_80\\n'\n")
    nvcc.chmod(0o755)
    found = compiler.Compiler(nvcc, "nvcc\nCuda compilation tools, release 11.8, V11.8.89")
    monkeypatch.setattr(compiler, "find_nvcc", lambda: found)
    for architecture, ok in (("sm_80", True), ("sm_90", False)):
        driver = Driver(12040, Gpu("GPU", architecture, True))
        monkeypatch.setattr(doctor, "ask_driver", lambda driver=driver: driver)
        checks = named(doctor.examine_compilers())
        assert checks[f"nvcc for {architecture}"].ok is ok
        assert "release 11.8" in checks["nvcc"].detail


def test_the_cache_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "kernel.so").write_bytes(bytes(3 * 2**20))
    monkeypatch.setenv(compiler.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(compiler, "cache_folder", lambda: tmp_path)
    assert doctor.examine_cache() == [Check("cache", True, f"{tmp_path}: 1 file, 3.0 MiB")]
    monkeypatch.setattr(compiler, "cache_folder", lambda: tmp_path / "another")
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

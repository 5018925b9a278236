from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import graphs
import pytest
from devices import KERNEL_DEVICES

if TYPE_CHECKING:
    from persistent_bfs.device.base import Device


@pytest.fixture(name="graph_file")
def graph_file_fixture() -> Callable[[str], Path]:
    return graphs.graph_file


@pytest.fixture(scope="module", params=KERNEL_DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Each device that runs kernels, open for a file of tests."""
    from persistent_bfs.device import open_device

    choice = open_device(request.param)
    assert choice.device is not None
    with choice.device:
        yield choice.device


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the device code that kernels are compiled from, to put bugs into."""
    from persistent_bfs import compiler

    folder = tmp_path / "cuda"
    shutil.copytree(compiler.source_folder(), folder)
    monkeypatch.setattr(compiler, "source_folder", lambda: folder)
    return folder


@pytest.fixture
def seed_fault(sources: Path) -> Callable[[str, str, str], None]:
    """Let kernels be compiled from device code with one piece of it changed."""

    def seed(file: str, right: str, wrong: str) -> None:
        text = (sources / file).read_text(encoding="utf-8")
        assert text.count(right) == 1
        (sources / file).write_text(text.replace(right, wrong), encoding="utf-8")

    return seed


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``cuda`` where CUDA is not usable, saying what is missing.

    Last, so that the device is not asked at all when no such test is selected.
    """
    on_cuda = [item for item in items if item.get_closest_marker("cuda")]
    if not on_cuda:
        return
    from persistent_bfs.device import cuda_problem

    problem = cuda_problem()
    if problem is not None:
        for item in on_cuda:
            item.add_marker(pytest.mark.skip(reason=problem))

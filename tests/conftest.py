from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import graphs
import pytest


@pytest.fixture(name="graph_file")
def graph_file_fixture() -> Callable[[str], Path]:
    return graphs.graph_file


@pytest.fixture
def seed_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Let kernels be compiled from a copy of the device code with one piece of it changed."""
    from persistent_bfs import compiler

    def seed(file: str, right: str, wrong: str) -> None:
        folder = tmp_path / "cuda"
        shutil.copytree(compiler.source_folder(), folder)
        text = (folder / file).read_text(encoding="utf-8")
        assert text.count(right) == 1
        (folder / file).write_text(text.replace(right, wrong), encoding="utf-8")
        monkeypatch.setattr(compiler, "source_folder", lambda: folder)

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

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import graphs
import pytest


@pytest.fixture(name="graph_file")
def graph_file_fixture() -> Callable[[str], Path]:
    return graphs.graph_file


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

"""Which device the benchmarks run on, what L2 holds, and which results may be compared."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import ratios
from pytest_benchmark.logger import PytestBenchmarkWarning

from persistent_bfs.device import DeviceChoice, open_device
from persistent_bfs.measure import L2_STATES, describe_clocks

CHOICE = pytest.StashKey[DeviceChoice]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("persistent_bfs")
    group.addoption("--device", default="auto", help="auto, cuda, cuda:N or emulated")
    group.addoption(
        "--l2", choices=L2_STATES, default="warm", help="what L2 holds when a search begins"
    )
    group.addoption(
        "--compare-devices",
        action="store_true",
        help="compare with results of another device, which is else refused",
    )
    ratios.pytest_addoption(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("python_files", "bench_*.py")
    try:
        choice = open_device(config.getoption("--device"))
    except (ValueError, RuntimeError) as error:
        raise pytest.UsageError(str(error)) from None
    if choice.device is None:
        raise pytest.UsageError(f"benchmarks need a device that runs kernels: {choice.reason}")
    config.stash[CHOICE] = choice
    if choice.kind == "emulated":
        # A table of its times would be taken for a comparison.
        config.option.benchmark_columns = ["rounds"]
        config.option.benchmark_sort = "name"


def pytest_sessionstart(session: pytest.Session) -> None:
    ratios.pytest_sessionstart(session)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    choice = config.stash.get(CHOICE, None)
    benchmarks = getattr(config, "_benchmarksession", None)
    if choice is not None and choice.kind != "emulated" and benchmarks is not None:
        ratios.show(terminalreporter, benchmarks.benchmarks)


def pytest_unconfigure(config: pytest.Config) -> None:
    choice = config.stash.get(CHOICE, None)
    if choice is not None and choice.device is not None:
        choice.device.close()


def pytest_report_header(config: pytest.Config) -> str:
    choice = config.stash[CHOICE]
    assert choice.device is not None
    info = choice.device.info
    header = f"device: {info.name}, {info.architecture}, {info.driver} ({choice.reason})"
    if info.kind == "emulated":
        header += "\ndevice: its times mean nothing; the counts in extra_info are exact"
    return header


def pytest_benchmark_update_machine_info(
    config: pytest.Config, machine_info: dict[str, Any]
) -> None:
    choice = config.stash[CHOICE]
    assert choice.device is not None
    info = choice.device.info
    machine_info["device"] = {
        name: getattr(info, name)
        for name in ("kind", "name", "architecture", "driver", "multiprocessors", "memory_bytes")
    }
    machine_info["clocks"] = describe_clocks(info)


def pytest_benchmark_compare_machine_info(
    config: pytest.Config, machine_info: dict[str, Any], compared_benchmark: dict[str, Any]
) -> None:
    here = machine_info["device"]["name"]
    there = compared_benchmark["machine_info"].get("device", {}).get("name", "an unknown device")
    if here != there and not config.getoption("--compare-devices"):
        raise pytest.UsageError(
            f"the results to compare with are of {there}, these of {here}; "
            "--compare-devices compares them all the same"
        )
    # The plugin warns of any other difference, such as a newer kernel: no reason to stop.
    warnings.simplefilter("default", PytestBenchmarkWarning)


@pytest.fixture(scope="session")
def l2(request: pytest.FixtureRequest) -> str:
    """What L2 holds when a search begins."""
    return str(request.config.getoption("--l2"))


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The device, opened once."""
    choice = request.config.stash[CHOICE]
    assert choice.device is not None
    with choice.device.current():
        yield choice.device

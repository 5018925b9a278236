"""What of the CUDA device needs no GPU."""

from __future__ import annotations

import gc
import os
import threading
from typing import Any

import numpy as np
import pytest

from persistent_bfs.device.base import DeviceError, DeviceLost
from persistent_bfs.device.cuda_stream import Addresses
from persistent_bfs.device.driver import Driver


def test_addresses_are_those_of_the_arrays_that_are_there_now() -> None:
    addresses, kept = Addresses(), np.zeros(4, np.int32)
    identities = set()
    for size in range(1, 200):
        array = np.zeros(size, np.int32)  # often with the identity of the one before
        identities.add(id(array))
        for _ in range(2):
            assert addresses.of(array) == array.ctypes.data
            assert addresses.of(array[1:]) == array.ctypes.data + (4 if size > 1 else 0)
            assert addresses.of(kept) == kept.ctypes.data
        del array
        gc.collect(0)
    assert len(identities) < 199


class Stacked(Driver):
    """A driver whose context stack, and all that it gave, is a list."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = ["somebody's"]
        self.given: list[object] = []
        self.refuses_to_leave = False

    def _enter(self) -> None:
        self.stack.append("ours")

    def _leave(self) -> None:
        if self.refuses_to_leave:
            raise DeviceError("cuCtxPopCurrent")
        assert self.stack.pop() == "ours"

    def _close(self) -> None:
        self.given.append("closed")

    def free(self, handle: Any) -> None:
        if handle == "stuck":
            raise DeviceError("cuMemFree: stuck")
        self.given.append(handle)


# What a device asks of a driver beside these is abstract.
Stacked.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]


class Owner:
    """Somebody who has what a driver gave."""


def test_the_context_is_pushed_once_and_the_stack_is_as_it_was() -> None:
    driver = Stacked()
    with driver.current():
        with driver.current():
            assert driver.stack == ["somebody's", "ours"]
        assert driver.stack == ["somebody's", "ours"]
    assert driver.stack == ["somebody's"]
    with pytest.raises(KeyError), driver.current():
        raise KeyError
    assert driver.stack == ["somebody's"]


def test_each_thread_pushes_for_itself() -> None:
    driver, depths = Stacked(), []

    def look() -> None:
        with driver.current():
            depths.append(driver.stack.count("ours"))

    with driver.current():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert depths == [2]
    assert driver.stack == ["somebody's"]


def test_a_loss_is_remembered_and_told_whoever_comes() -> None:
    driver = Stacked()
    driver.refuses_to_leave = True  # as a driver may after it
    with pytest.raises(DeviceLost, match="first"), driver.current():
        raise DeviceLost("first")
    with pytest.raises(DeviceLost, match="first"), driver.current():
        pytest.fail("entered")
    assert driver.is_over
    driver.close()
    assert driver.given == []


def test_a_context_that_cannot_be_popped_is_an_error() -> None:
    driver = Stacked()
    driver.refuses_to_leave = True
    with pytest.raises(DeviceError, match="cuCtxPopCurrent"), driver.current():
        pass


def test_what_a_driver_gave_comes_back_once() -> None:
    driver, owner = Stacked(), Owner()
    give_back = driver.owned(owner, driver.free, 7)
    driver.owned(owner, driver.free, 8)
    give_back()
    give_back()
    assert driver.given == [7]
    del owner
    gc.collect()
    assert driver.given == [7, 8]
    assert driver.stack == ["somebody's"]


def test_what_cannot_be_given_back_is_noted_and_raises_nothing() -> None:
    driver, owner = Stacked(), Owner()
    driver.owned(owner, driver.free, "stuck")()
    assert driver.problems == ["cuMemFree: stuck"]
    driver.close()
    assert driver.given == ["closed"]
    driver.owned(owner, driver.free, 9)()  # after the end, to nobody
    driver.close()
    assert driver.given == ["closed"]


def test_another_process_gives_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, owner = Stacked(), Owner()
    give_back = driver.owned(owner, driver.free, 7)
    monkeypatch.setattr(os, "getpid", lambda: driver.process + 1)
    with pytest.raises(DeviceError, match="forked"), driver.current():
        pytest.fail("entered")
    give_back()
    driver.close()
    assert driver.given == []

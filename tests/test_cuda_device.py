"""What of the CUDA device needs no GPU."""

from __future__ import annotations

import gc

import numpy as np

from persistent_bfs.device.cuda_stream import Addresses


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

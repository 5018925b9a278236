"""The devices that run kernels, as parameters: emulated everywhere, cuda where a GPU is."""

from __future__ import annotations

import pytest

KERNEL_DEVICES = ("emulated", pytest.param("cuda", marks=pytest.mark.cuda))

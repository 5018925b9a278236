"""A watchdog: tells a search to leave when its time is up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

from persistent_bfs.device.base import Device

# Between two words to a search that is to stop: one that is only beginning clears the first.
SECONDS_BETWEEN_BARKS = 1e-3


class Watchdog:
    """Calls ``stop`` from a thread of its own once ``seconds`` have passed inside the ``with``.

    And again until the ``with`` block is over. ``expired`` says whether it came to that; with
    ``seconds`` None it never does. No call comes after the block.
    """

    def __init__(self, device: Device, stop: Callable[[], None], seconds: float | None) -> None:
        self.seconds = seconds
        self.expired = False
        self._expired_at = 0.0
        self._device = device
        self._stop = stop
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def seconds_expired(self) -> float:
        """Seconds since the time was up; 0 before."""
        return time.monotonic() - self._expired_at if self.expired else 0.0

    def _watch(self) -> None:
        if self._over.wait(self.seconds):
            return
        self._expired_at = time.monotonic()
        self.expired = True
        with self._device.current():
            self._stop()
            while not self._over.wait(SECONDS_BETWEEN_BARKS):
                self._stop()

    def __enter__(self) -> Watchdog:
        if self.seconds is not None:
            self._thread = threading.Thread(target=self._watch, name="bfs-watchdog", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

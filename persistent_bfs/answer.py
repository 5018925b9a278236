"""The arrays of one search's answer: on the device as long as nobody looks, on the host after that.

A session has one set of buffers for answers, which its next search writes anew. Before it does, the
answer that lies there is moved out of the way if somebody still has it: to a second set on the
device, which costs a copy at the device's own bandwidth and no wait, and from there to the host
when that set is needed again. So a loop that keeps only its latest result never waits for a copy,
and one that keeps them all pays for each once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from persistent_bfs.device.base import Buffer, Device, DeviceError, DeviceMemoryError, Event, Stream

Vertices = npt.NDArray[np.int32]
MapBack = Callable[[str, Vertices], Vertices]


class Answer:
    """Distances, and predecessors if they were asked for.

    Parameters
    ----------
    arrays : mapping of str to array
        What is on the host already, by name.
    """

    def __init__(self, arrays: Mapping[str, Vertices] | None = None) -> None:
        self._arrays = dict(arrays or {})
        self._names = tuple(self._arrays)
        self._place: Mapping[str, Buffer] | None = None
        self._copied: Event | None = None
        self._shelf: Shelf | None = None
        self._map_back: MapBack | None = None
        self._gone = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays it has: ``distances``, ``predecessors``."""
        return self._names

    def __getitem__(self, name: str) -> Vertices:
        """The array called ``name``, copied from the device at the first look.

        Raises
        ------
        DeviceError
            The device failed before it could be copied.
        """
        shelf = self._shelf
        if name not in self._arrays and shelf is not None:
            with shelf.lock, shelf.turn():
                self._fetch(name)
        if name not in self._arrays:
            raise DeviceError(f"the {name} of this search are gone: {self._gone}")
        return self._arrays[name]

    def _fetch(self, name: str) -> None:
        if name in self._arrays or self._place is None:
            return
        if self._copied is not None:
            self._copied.wait()
        found: Vertices = self._place[name].to_host()
        self._arrays[name] = self._map_back(name, found) if self._map_back else found
        if len(self._arrays) == len(self._names):
            self._place = self._shelf = None

    @property
    def is_whole(self) -> bool:
        """Whether all of it is on the host."""
        return len(self._arrays) == len(self._names)

    def settle(self) -> None:
        """Copy to the host what is not there yet."""
        for name in self._names:
            self._fetch(name)

    def lose(self, why: str) -> None:
        """Say why what is not on the host can no longer be had."""
        self._place, self._shelf, self._gone = None, None, why

    def __reduce__(self) -> tuple[Any, ...]:
        return Answer, ({name: self[name] for name in self._names},)


class Shelf:
    """The places of a session's answers on a device.

    Parameters
    ----------
    device, stream
        Where the session's searches run.
    buffers
        What every search writes, by the names of an `Answer`.
    lock
        The session's: whoever moves answers holds it.
    map_back
        From the name of an array and what was found to what it is in the caller's ids; None where
        they are the same.
    """

    def __init__(
        self,
        device: Device,
        stream: Stream,
        buffers: Mapping[str, Buffer],
        lock: AbstractContextManager[bool],
        map_back: MapBack | None,
    ) -> None:
        self.lock = lock
        self._device = device
        self._stream = stream
        self._buffers = buffers
        self._map_back = map_back
        self._spare: dict[str, Buffer] = {}
        self._copied: Event | None = None
        self._latest: Callable[[], Answer | None] = lambda: None
        self._older: Callable[[], Answer | None] = lambda: None

    def turn(self) -> AbstractContextManager[Any]:
        """As `Device.turn`."""
        return self._device.turn()

    def put(self) -> Answer:
        """The answer of the search that has just ended."""
        answer = Answer()
        answer._names, answer._map_back = tuple(self._buffers), self._map_back
        answer._place, answer._shelf = self._buffers, self
        self._latest = weakref.ref(answer)
        return answer

    def make_room(self) -> None:
        """Let the next search write: asked of its stream, in front of it."""
        latest, self._latest = self._latest(), lambda: None
        if latest is None or latest.is_whole:
            return
        older = self._older()
        if older is not None:
            older.settle()
        try:
            for name, buffer in self._buffers.items():
                if name not in self._spare:
                    self._spare[name] = self._device.allocate(
                        buffer.count, buffer.dtype, f"the last search's {name}"
                    )
        except DeviceMemoryError:
            latest.settle()
            return
        for name, buffer in self._buffers.items():
            self._stream.copy(self._spare[name], buffer)
        # Whoever looks while the search behind it runs, or after it failed, waits for the copy.
        latest._copied = self._copied = self._stream.record(self._copied)
        latest._place = self._spare
        self._older = weakref.ref(latest)

    def clear(self, why: str = "") -> None:
        """Bring what somebody still has to the host, or say ``why`` not; then give memory back."""
        for answer in (self._latest(), self._older()):
            if answer is not None and not answer.is_whole:
                if not why:
                    with suppress(DeviceError):
                        answer.settle()
                if not answer.is_whole:
                    answer.lose(why or "the device failed before they were looked at")
        self._latest = self._older = lambda: None
        for buffer in self._spare.values():
            buffer.free()
        self._spare.clear()

"""The engines: who runs the level loop, one file each, named in `persistent_bfs.config.ENGINES`."""

from __future__ import annotations

from importlib import import_module

from persistent_bfs.config import ENGINES, choose
from persistent_bfs.engines.base import Engine


def engine_class(name: str) -> type[Engine]:
    """The class of the engine called ``name``: ``host_loop`` is ``HostLoop`` in host_loop.py.

    Raises
    ------
    ValueError
        There is no such engine.
    """
    choose(ENGINES, name, "engine")
    module = import_module(f"persistent_bfs.engines.{name}")
    found: type[Engine] = getattr(module, name.title().replace("_", ""))
    return found

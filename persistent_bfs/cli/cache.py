"""``persistent-bfs cache``: the folder of compiled kernels."""

from __future__ import annotations

from collections import Counter

import click

from persistent_bfs.cli.options import json_option, verbose_option
from persistent_bfs.cli.output import present


@click.command("cache")
@click.option("--clear", is_flag=True, help="Delete every compiled kernel.")
@verbose_option
@json_option
def command(clear: bool, as_json: bool) -> None:
    """Show the folder of compiled kernels, and clear it.

    Kernels are compiled once and kept. PERSISTENT_BFS_CACHE_DIR names another folder,
    PERSISTENT_BFS_CACHE_LIMIT how many MiB it may hold (1024 by default); beyond that, what has
    not been used for longest goes.
    """
    from persistent_bfs import cache

    folder = cache.wanted_cache_folder()
    gone = cache.clear(folder) if clear else None
    entries = cache.entries(folder)
    kinds = Counter(entry.path.suffix.removeprefix(".") for entry in entries)
    report = {
        "folder": str(folder),
        "entries": len(entries),
        "kinds": dict(sorted(kinds.items())),
        "bytes": sum(entry.size for entry in entries),
        "limit_bytes": cache.limit_bytes(),
        "cleared": None if gone is None else len(gone),
        "cleared_bytes": None if gone is None else sum(entry.size for entry in gone),
        "problem": cache.folder_problem(folder) if folder.exists() else None,
    }
    present(report, as_json, "cache")

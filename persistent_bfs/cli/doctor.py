"""``persistent-bfs doctor``: what this machine offers."""

from __future__ import annotations

import click

from persistent_bfs.cli.options import json_option, verbose_option
from persistent_bfs.cli.output import present, progress_bar
from persistent_bfs.cli.program import NO_DEVICE, say


@click.command("doctor")
@verbose_option
@json_option
def command(as_json: bool) -> int:
    """Check what this machine offers, and say what to do where something is missing."""
    from persistent_bfs.doctor import EXAMINATIONS, usable

    checks = []
    with progress_bar() as progress:
        for number, (what, examine) in enumerate(EXAMINATIONS.items()):
            progress(f"looking at {what}", number, len(EXAMINATIONS))
            checks += examine()
    fit = usable(checks)
    report = {"usable": fit, "checks": [vars(check) for check in checks]}
    present(report, as_json, "diagnosis")
    if fit:
        return 0
    say("error", "no device that runs kernels can be used here")
    return NO_DEVICE

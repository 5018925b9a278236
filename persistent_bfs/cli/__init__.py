"""The command line: one file a command, ``main`` over all of them.

Results go to stdout, as tables or with ``--json`` as one JSON object; all else goes to stderr.
How a command ends is an exit code: `persistent_bfs.cli.program.EXIT_CODES`.

What is slow to import is imported by the command that needs it, so that ``--help`` answers at once.
"""

from __future__ import annotations

import click

from persistent_bfs.cli.cache import command as cache
from persistent_bfs.cli.compare import command as compare
from persistent_bfs.cli.doctor import command as doctor
from persistent_bfs.cli.expand import command as expand
from persistent_bfs.cli.levels import command as levels
from persistent_bfs.cli.listing import command as listing
from persistent_bfs.cli.program import EPILOG, Program
from persistent_bfs.cli.race import command as race
from persistent_bfs.cli.run import command as run
from persistent_bfs.cli.study import command as study
from persistent_bfs.version import __version__


@click.group(
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
)
@click.version_option(__version__, prog_name="persistent-bfs")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Breadth-first search on NVIDIA GPUs, and what each level of it costs.

    GRAPH is a file (MatrixMarket, edge list, METIS, DIMACS 9, PACE, npz; plain, gz, xz or bz2), a
    bundled graph such as words-kjv, or a generator's spec such as grid:512x512.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for command in (run, compare, levels, expand, race, study, listing, doctor, cache):
    main.add_command(command)

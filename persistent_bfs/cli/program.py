"""The group of commands: what a failure prints, and with which exit code it ends."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from persistent_bfs.compiler import CompileError
from persistent_bfs.device.base import DeviceError, LaunchTooLarge, RepeatedDiscovery

WRONG, BAD_INPUT, NO_DEVICE, INTERRUPTED, BROKEN_PIPE = 1, 2, 3, 130, 141


def say(kind: str, message: object) -> None:
    """Write one line to stderr."""
    click.echo(f"{kind}: {' '.join(str(message).split())}", err=True)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say("warning", message)


class Program(click.Group):
    """The group of commands: a failure is one line on stderr and an exit code."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """As `click.Group.main`, with this program's messages and exit codes."""
        options["standalone_mode"] = False
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                code = super().main(*arguments, **options)
        except click.ClickException as error:
            say("error", error.format_message())
            code = BAD_INPUT
        except click.Abort:
            say("error", "interrupted")
            code = INTERRUPTED
        sys.exit(code or 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a device that cannot be used ends it, and so does a reader that left."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
            return code
        except RepeatedDiscovery as error:
            say("error", error)
            return WRONG
        except LaunchTooLarge as error:
            say("error", error)
            return BAD_INPUT
        except (DeviceError, CompileError) as error:
            say("error", error)
            if ctx.ensure_object(dict).get("verbose"):
                for text in (getattr(error, "command", ""), getattr(error, "output", "")):
                    click.echo(text, err=True)
            return NO_DEVICE
        except BrokenPipeError:
            # What is still buffered must go somewhere when the interpreter flushes it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE


@contextmanager
def bad_input() -> Iterator[None]:
    """Make what the library refuses inside the ``with`` block an error of the user's."""
    try:
        yield
    except OSError as error:
        named = error.strerror and f"{error.filename}: {error.strerror}"
        raise click.ClickException(named or str(error)) from error
    except (ValueError, TypeError, MemoryError) as error:
        raise click.ClickException(str(error)) from error

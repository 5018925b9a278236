"""The group of commands: what a failure prints, and with which exit code it ends."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from persistent_bfs.cli.streams import OutputError, ReaderLeft, standard_error, standard_output
from persistent_bfs.compiler import CompileError
from persistent_bfs.device.base import DeviceError, LaunchTooLarge, RepeatedDiscovery

RIGHT, WRONG, BAD_INPUT, NO_DEVICE = 0, 1, 2, 3
UNWRITABLE = OutputError.exit_code
FAULT, INTERRUPTED, BROKEN_PIPE = 70, 130, 141

EXIT_CODES = {
    RIGHT: "done, and every answer was right",
    WRONG: "an answer was wrong, or `race` found a race; nothing else ends so",
    BAD_INPUT: "bad usage or input",
    NO_DEVICE: "the device or its compiler cannot be used or failed, or a time limit was reached",
    UNWRITABLE: "output cannot be written: standard output, a file or a folder",
    FAULT: "a fault of this program; its traceback is on standard error",
    INTERRUPTED: "interrupted",
    BROKEN_PIPE: "the reader of standard output left",
}

EPILOG = "\b\nExit codes:\n" + "\n".join(
    f"{code:5}  {meaning.replace('`', '')}" for code, meaning in EXIT_CODES.items()
)


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
        with standard_error():
            try:
                with standard_output(), warnings.catch_warnings():
                    warnings.showwarning = _show_warning
                    code = super().main(*arguments, **options)
            except ReaderLeft:
                code = BROKEN_PIPE
            except OutputError as error:
                say("error", error)
                code = UNWRITABLE
            except click.ClickException as error:
                say("error", error.format_message())
                code = BAD_INPUT
            except click.Abort:
                say("error", "interrupted")
                code = INTERRUPTED
        sys.exit(code or RIGHT)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it does not handle itself ends it with an exit code."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, ReaderLeft):
            raise
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
        except MemoryError as error:
            say("error", f"out of memory: {error}" if str(error) else "out of memory")
            return BAD_INPUT
        except OSError as error:
            # Reading and writing have handlers of their own: left are compilers and their cache.
            say("error", _named(error))
            return NO_DEVICE
        except Exception as error:
            traceback.print_exc()
            say("error", f"a fault of this program: {type(error).__name__}: {error}")
            return FAULT


def _named(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


@contextmanager
def bad_input() -> Iterator[None]:
    """Make what the library refuses inside the ``with`` block an error of the user's."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(_named(error)) from error
    except (ValueError, TypeError, MemoryError) as error:
        raise click.ClickException(str(error) or "out of memory") from error

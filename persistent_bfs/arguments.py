"""What an argument may be: each check returns the value, or raises an error that names it."""

from __future__ import annotations

import difflib
import math
import numbers
import operator
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

INT32_MAX = 2**31 - 1


LONGEST = 80
"""Characters of a value that a message shows."""


def shown(value: object) -> str:
    """How a value looks in a message, on one line that is not too long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # somebody else's, or an int of too many digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def unknown_name(what: str, name: object, known: Iterable[str]) -> ValueError:
    """An error that says what ``name`` may have meant, and what there is."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1) if isinstance(name, str) else []
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return ValueError(f"unknown {what} {shown(name)}; choose one of {', '.join(known)}{hint}")


def check_name(argument: str, value: Any) -> str:
    """``value``, if it is a str; a TypeError if not."""
    if not isinstance(value, str):
        raise TypeError(f"{argument} is {shown(value)}; it must be a str")
    return value


def check_choice(argument: str, value: Any, known: Iterable[str]) -> str:
    """``value``, if it is one of the names that are ``known``."""
    known = list(known)
    name = check_name(argument, value)
    if name not in known:
        raise unknown_name(argument, name, known)
    return name


def check_flag(argument: str, value: Any) -> bool:
    """``value`` as a bool, if it is one, NumPy's too."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument} is {shown(value)}; it must be a bool")
    return bool(value)


def check_integer(argument: str, value: Any, least: int, most: int | None = None) -> int:
    """``value`` as an int of ``least`` to ``most``, of any integer type; a bool is none."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{argument} is {shown(value)}; it must be an integer of at least {least}"
        ) from None
    if number < least:
        raise ValueError(f"{argument} is {shown(number)}; it must be at least {least}")
    if most is not None and number > most:
        raise ValueError(f"{argument} is {shown(number)}; it must be at most {most}")
    return number


def check_seconds(argument: str, value: Any) -> float | None:
    """Seconds above 0; None for no limit, as infinity means, and more than any clock waits."""
    if value is None:
        return None
    what = f"{argument} is {shown(value)}; it must be a number of seconds above 0"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(what)
    number: Any = value
    try:
        limit = float(number)
    except OverflowError:  # larger than every float
        limit = math.inf if number > 0 else -math.inf
    if not limit > 0:
        raise ValueError(what)
    return None if math.isinf(limit) or limit > threading.TIMEOUT_MAX else limit

"""What a report is made of, before it has a format, and how numbers are written in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Heading:
    """A heading: 1 is the title."""

    depth: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table whose first ``words`` columns hold words, as do those in ``also``; what to see in it.

    The others hold numbers.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    words: int = 1
    also: tuple[int, ...] = ()

    def has_words(self, column: int) -> bool:
        """Whether a column holds words."""
        return column < self.words or column in self.also


@dataclass(frozen=True)
class Picture:
    """A figure: its name, how to draw it under one, and what to see in it."""

    name: str
    draw: Callable[[str], str]
    caption: str


Block = Heading | Paragraph | Items | Table | Picture


def number(value: float | None, digits: int = 3) -> str:
    """A number to so many digits, never with an exponent; a dash for none.

    Examples
    --------
    >>> number(1234567.0), number(12.3456), number(0.0012345), number(None), number(0)
    ('1,234,567', '12.3', '0.00123', '-', '0')
    >>> number(1.0), number(99.96), number(34.0, 2)
    ('1.00', '100', '34')
    """
    if value is None:
        return "-"
    if value == float("inf"):
        return "unbounded"
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    # Rounding may add a digit before the point.
    if places > 0 and abs(round(value, places)) >= 10 ** (digits - places):
        places -= 1
    return f"{value:,.{max(places, 0)}f}"


def percent(part: float, *, sign: bool = False) -> str:
    """A part as a percentage; no decimals where there are digits enough without.

    Examples
    --------
    >>> percent(0.123), percent(-0.05, sign=True), percent(23.3772, sign=True)
    ('12.3 %', '-5.0 %', '+2,338 %')
    """
    return f"{100 * part:{'+' if sign else ''},.{1 if abs(part) < 1 else 0}f} %"


def told_point(point: Mapping[str, Any]) -> str:
    """The parameters of a primitive, in words.

    Examples
    --------
    >>> told_point({"blocks": 132, "threads": 256}), told_point({"memory": "L2", "bytes": 8 << 20})
    ('blocks 132, threads 256', 'memory L2, 8 MiB')
    >>> told_point({})
    'one thread'
    """
    told = []
    for name, value in point.items():
        if name == "bytes" and value >= 1 << 10:
            unit, size = ("MiB", 1 << 20) if value >= 1 << 20 else ("KiB", 1 << 10)
            told.append(f"{value / size:,.0f} {unit}")
        else:
            told.append(f"{name} {value}" if isinstance(value, str) else f"{name} {value:,}")
    return ", ".join(told) or "one thread"

"""What a study measures: decided before it begins, and kept with what was measured.

Two studies can be compared only if their plans are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from persistent_bfs.config import ENGINES
from persistent_bfs.measure import check_l2
from persistent_bfs.study.suite import SUITE
from persistent_bfs.tiers import NONE

# One mapping for all searches: the one that is used where none is named.
ADVANCE = "auto"

# Of the depth sweep in the full form.
PASSES = 5


def _variants() -> dict[str, dict[str, str]]:
    found = {}
    for name, row in ENGINES.items():
        if row.tiers:
            # What a tier is worth shows beside the same engine without one.
            found[f"{name}, no tier"] = {"engine": name, "tiers": NONE}
        found[name] = {"engine": name}
    return found


VARIANTS: Mapping[str, Mapping[str, str]] = _variants()
"""What is compared: every engine, and those with tiers without them, too; how a session is made."""


def depth_specs(largest: int) -> tuple[str, ...]:
    """Paths of 1, 2, 4 ... 2^largest vertices: one vertex a level, as many levels.

    Examples
    --------
    >>> depth_specs(2)
    ('path:1', 'path:2', 'path:4')
    """
    return tuple(f"path:{1 << k}" for k in range(largest + 1))


def width_specs(largest: int, levels: int) -> tuple[str, ...]:
    """Grids of width 1, 2, 4 ... ``largest``, each as long as gives it ``levels`` levels.

    From a corner a W x H grid has W + H - 1 levels, of W * H / (W + H - 1) vertices on average.

    Examples
    --------
    >>> width_specs(4, 8)
    ('grid:1x8', 'grid:2x7', 'grid:4x5')
    """
    if levels < 2 * largest - 1:
        raise ValueError(
            f"a grid of width {largest} has no {levels} levels and a frontier of {largest}; it "
            f"takes {2 * largest - 1}"
        )
    widths = (1 << k for k in range(largest.bit_length()))
    return tuple(f"grid:{width}x{levels - width + 1}" for width in widths if width <= largest)


@dataclass(frozen=True)
class Plan:
    """What a study measures.

    Parameters
    ----------
    kind : str
        Of the device: ``cuda`` or ``emulated``.
    quick : bool
        Whether the short form.
    l2 : {"warm", "cold"}
        What L2 holds when a timed search begins.
    repeat : int
        Timed searches a row.
    passes : int
        In how many passes, spread over the study, those of the depth sweep are taken: a host has
        spells of one speed and another, and one spell shall not rule a whole row.
    engines, depths, widths, graphs : tuple of str
        Names from `VARIANTS`; specs of the two sweeps; names of cases of the suite, or files or
        specs of other graphs.
    """

    kind: str
    quick: bool
    l2: str
    repeat: int
    passes: int
    engines: tuple[str, ...]
    depths: tuple[str, ...]
    widths: tuple[str, ...]
    graphs: tuple[str, ...]

    def __post_init__(self) -> None:
        check_l2(self.l2)
        if self.repeat < 1:
            raise ValueError(f"repeat is {self.repeat}; it must be at least 1")
        if not 1 <= self.passes <= self.repeat:
            raise ValueError(f"{self.passes} passes of {self.repeat} searches; it must be 1 to all")

    @classmethod
    def of(
        cls,
        kind: str,
        *,
        quick: bool,
        l2: str = "warm",
        repeat: int | None = None,
        engines: Collection[str] | None = None,
        graphs: Sequence[str] | None = None,
    ) -> Plan:
        """What suits a kind of device: on an emulated one, small graphs searched once.

        ``engines`` are names of the table of engines, with their variants; ``graphs`` names of the
        suite, files or specs in place of the suite's.
        """
        timed = kind == "cuda"
        if timed and quick:
            depth, width, levels = 12, 512, 1024
            usual: tuple[str, ...] = ("grid-512x512", "luxembourg", "words-kjv", "kron-10")
        elif timed:
            depth, width, levels = 14, 4096, 8192
            usual = tuple(case.name for case in SUITE if not case.small or not case.deep)
        else:
            depth, width, levels = (5, 8, 16) if quick else (8, 32, 64)
            usual = ("grid-32x32", "kron-10") if quick else tuple(c.name for c in SUITE if c.small)
        if repeat is None:
            repeat = (7 if quick else 15) if timed else 1
        return cls(
            kind,
            quick,
            l2,
            repeat,
            min(PASSES, repeat) if timed and not quick else 1,
            tuple(
                name
                for name, how in VARIANTS.items()
                if engines is None or how["engine"] in engines
            ),
            depth_specs(depth),
            width_specs(width, levels),
            usual if graphs is None else tuple(graphs),
        )

    def summary(self) -> dict[str, Any]:
        """The plan as JSON takes it."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_summary(cls, kept: dict[str, Any]) -> Plan:
        """The plan that `summary` kept.

        Raises
        ------
        ValueError, KeyError, TypeError
            It is none.
        """
        values: dict[str, Any] = {entry.name: kept[entry.name] for entry in fields(cls)}
        values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**values)

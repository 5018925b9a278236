"""The tiers of a persistent search: what they need, and which one suits a graph and a device."""

from __future__ import annotations

from persistent_bfs import layout
from persistent_bfs.config import TIERS, WARP_SIZE, choose, tier_conflict
from persistent_bfs.device.base import DeviceInfo

AUTO, NONE = "auto", "none"

# Shared memory that a kernel has for the loop itself, at most; what it really is, the kernel tells.
LOOP_BYTES = 256

# With fewer, a tier would hand frontiers over more often than it runs them.
FEWEST_SLOTS = 1024


def check_tiers(tiers: str) -> tuple[str, ...]:
    """The tiers that a user's words allow: ``auto``, ``none``, or names with commas between.

    Raises
    ------
    ValueError
        A name that is in no table, or ``auto`` or ``none`` beside others.

    Examples
    --------
    >>> check_tiers("block, cluster")
    ('block', 'cluster')
    """
    names = tuple(name.strip() for name in tiers.split(","))
    if names == (AUTO,):
        return tuple(TIERS)
    for name in names:
        choose(TIERS, name, "tier")
    if len(names) > 1 and NONE in names:
        raise ValueError(f"tiers {tiers!r}: none allows no other; give one or the other")
    return names


def bits_bytes(vertices: int, blocks: int = 1) -> int:
    """Bytes of the visited bits in each of a tier's ``blocks``."""
    words = -(-vertices // WARP_SIZE)
    return 4 * -(-words // blocks)


def shared_bytes(vertices: int, slots: int, blocks: int = 1) -> int:
    """Shared memory of each of a tier's ``blocks``: slots, counters and its visited bits."""
    return layout.SLOT_BYTES * slots + layout.SLOT_COUNTER_BYTES + bits_bytes(vertices, blocks)


def slots_that_fit(
    tier: str, vertices: int, blocks: int, info: DeviceInfo, beside: int = LOOP_BYTES
) -> int:
    """How many slots a block of ``tier`` has beside its visited bits; less than 1 if none.

    ``beside`` is the shared memory that the kernel itself has, in bytes.
    """
    room = info.shared_bytes_per_block - beside - shared_bytes(vertices, 0, blocks)
    return min(TIERS[tier].slots, room // layout.SLOT_BYTES)


def cluster_sizes(largest: int) -> list[int]:
    """Cluster sizes to try, largest first: powers of two."""
    return [size for size in (16, 8, 4, 2) if size <= largest]


def fits(tier: str, vertices: int, info: DeviceInfo) -> bool:
    """Whether the shared memory of ``tier`` holds a bit for each of ``vertices`` and some slots."""
    row = TIERS[tier]
    if row.clusters and info.clusters < 2:
        return False
    blocks = cluster_sizes(info.clusters)[0] if row.clusters else 1
    return slots_that_fit(tier, vertices, blocks, info) >= FEWEST_SLOTS


def choose_tier(
    tiers: str,
    *,
    vertices: int,
    narrow: bool,
    direction: str,
    claim: str,
    append: str,
    frontier: str,
    info: DeviceInfo,
) -> tuple[str, str]:
    """The tier that ``tiers`` means for a graph on a device, and why (which may be empty).

    A single name means itself. Of several the first that the graph fits in is taken. ``auto``
    takes that too where the graph's levels look ``narrow``, and else none.
    """
    allowed = check_tiers(tiers)
    if len(allowed) == 1:
        return allowed[0], ""
    problem = tier_conflict(direction, claim, append, frontier)
    if tiers.strip() == AUTO and (problem or not narrow):
        return NONE, ""
    for name in allowed:
        if TIERS[name].exists and fits(name, vertices, info):
            why = "the first levels are narrow, and " if tiers.strip() == AUTO else ""
            return name, f"{name} tier: {why}a bit a vertex fits it"
    return NONE, f"no tier: a bit for each of {vertices:,} vertices fits none of {info.name}"

"""Racks of racks (KIP-879): the racks that brokers report, read as a tree.

A rack is a path, `/dc1/row2/rack7`, or a plain name, which is a path of one. The brokers of a rack are its children.
Brokers without a rack are children of the root, each by itself. Beside others each would count as much as a rack, so
`check_complete` refuses that.

Paths may differ in depth. A broker of `/dc1` beside one of `/dc1/row2` is a child of `/dc1` by itself, since no more is
known of it. Refusing it would leave a cluster unplanned while its racks are being refined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reassign.api.goal import Awareness
from reassign.errors import PlanningError, Reason
from reassign.planning.problem.model import GoalWords, Ints
from reassign.text import listed, named_brokers

MAX_DEPTH = 11
"""Names of a path. The kernel compares brokers by one number with 5 bits for each level, and the broker itself."""


def levels(
    racks: Sequence[str], awareness: Awareness, ids: Sequence[int] | Ints, otherwise: str = GoalWords().flat
) -> Ints:
    """Return nested groups of brokers, top level first: (L, B), the group of each broker at each level, 0 to n - 1.

    Groups are numbered by their path; those of one group above follow each other. A broker that is a child by itself
    has a group of its own at that level and below. `racks` (B,) has "" for none; `ids` (B,) also order brokers that are
    children by themselves.

    Tree has a level for each name of the longest path. Flat has at most one level, with racks as whole strings. None
    has no level, like brokers without any rack.

    Raises INVALID_RACKS, with Tree only: for what is no path, for paths beside plain names, and for paths that are too
    long. `otherwise` says what to write to have none of that count.
    """
    paths = _paths(racks, awareness, ids, otherwise)
    depth = max(map(len, paths), default=0)
    groups = np.empty((depth, len(paths)), np.int32)
    for level in range(depth):
        # named children sort before brokers by themselves; 0 and 1 keep names and ids from being compared
        keys = [
            tuple((0, name, 0) for name in path[: level + 1]) + (((1, "", int(b)),) if len(path) <= level else ())
            for path, b in zip(paths, ids, strict=True)
        ]
        number = {key: i for i, key in enumerate(sorted(set(keys)))}
        groups[level] = [number[key] for key in keys]
    return groups


def check_complete(racks: Sequence[str], awareness: Awareness, ids: Sequence[int] | Ints, otherwise: str) -> None:
    """Raise INVALID_RACKS where racks count, and some of these brokers have none beside others that have.

    `otherwise` says how to let racks not count.
    """
    without = [int(b) for b, rack in zip(ids, racks, strict=True) if not rack]
    if awareness is Awareness.NONE or not without or len(without) == len(racks):
        return
    raise PlanningError(
        Reason.INVALID_RACKS,
        f"{named_brokers(without, 'has')} no rack, and others have one, so each would get as much as a whole rack: set "
        f"broker.rack there, or let racks not count ({otherwise})",
    )


def _paths(
    racks: Sequence[str], awareness: Awareness, ids: Sequence[int] | Ints, otherwise: str
) -> list[tuple[str, ...]]:
    if awareness is Awareness.NONE:
        return [()] * len(racks)
    if awareness is Awareness.FLAT:
        return [(rack,) if rack else () for rack in racks]
    paths = [names_of(rack) for rack in racks]
    unreadable = [i for i, path in enumerate(paths) if racks[i] and not readable(path)]
    if unreadable:
        raise PlanningError(
            Reason.INVALID_RACKS,
            f"some racks cannot be read ({_named(unreadable, racks, ids)}): a rack is a name, or a path like "
            "/dc1/row2/rack7, with no empty name in it and no space around one; correct broker.rack there, or use "
            f"{otherwise}",
        )
    deep = [i for i, path in enumerate(paths) if len(path) > MAX_DEPTH]
    if deep:
        raise PlanningError(
            Reason.INVALID_RACKS,
            f"some racks have more than {MAX_DEPTH} names ({_named(deep, racks, ids)}): leave some out of broker.rack, "
            f"or use {otherwise}",
        )
    as_path = [i for i, rack in enumerate(racks) if rack.startswith("/")]
    as_name = [i for i, rack in enumerate(racks) if rack and not rack.startswith("/")]
    if as_path and as_name:
        raise PlanningError(
            Reason.INVALID_RACKS,
            f"some racks are paths ({_named(as_path, racks, ids)}) and others plain names "
            f"({_named(as_name, racks, ids)}): make broker.rack the same kind everywhere, or use {otherwise}",
        )
    return [path if rack else () for rack, path in zip(racks, paths, strict=True)]


def names_of(rack: str) -> tuple[str, ...]:
    """Return the names of a path, or the plain name."""
    return tuple(rack.removeprefix("/").split("/")) if rack.startswith("/") else (rack,)


def readable(names: Sequence[str]) -> bool:
    """Return whether no name of a rack is empty, or has space around it."""
    return all(name and name == name.strip() for name in names)


def _named(which: Sequence[int], racks: Sequence[str], ids: Sequence[int] | Ints) -> str:
    return listed(f"{racks[i]!r} of broker {ids[i]}" for i in which)

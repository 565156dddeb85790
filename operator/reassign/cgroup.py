"""The memory of the container that this process is in, by cgroup v2: it may have less than its machine."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

GROUP = Path("/sys/fs/cgroup")


class Memory(NamedTuple):
    """Bytes; what cached files take is not used, since they make room."""

    limit: int
    used: int


def memory() -> Memory | None:
    """Return the container's memory; None where there is no such group, or one without a limit."""
    try:
        limit, used = (int((GROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = dict(line.split() for line in (GROUP / "memory.stat").read_text().splitlines())
        return Memory(limit, used - int(stat["inactive_file"]))
    except (OSError, ValueError, KeyError):
        return None

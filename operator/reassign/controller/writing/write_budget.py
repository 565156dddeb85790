"""A budget of bytes for writes that can wait, over all objects: etcd stores each object whole, at each write."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class WriteBudget:
    """So many bytes per second, and as many at once after a quiet second. A write may go into debt, which is paid off
    before the next one."""

    bytes_per_second: float
    _left: float = field(init=False)
    _at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._left = self.bytes_per_second

    def take(self, size: int) -> bool:
        """Take this many bytes, unless earlier writes are still to be paid off."""
        now = time.monotonic()
        self._left = min(self.bytes_per_second, self._left + (now - self._at) * self.bytes_per_second)
        self._at = now
        if self._left <= 0:
            return False
        self._left -= size
        return True

"""The metrics that the documentation names."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(kafka_reassign_\w+)` \| (\w+) \| (.*?) ?\| .+ \|$", re.MULTILINE)


def documented() -> dict[str, tuple[str, frozenset[str]]]:
    """Type and labels of each metric in the table."""
    rows = ROW.findall(PAGE.read_text())
    return {name: (type_, frozenset(re.findall(r"`(\w+)`", labels))) for name, type_, labels in rows}

"""Numbers for people. The script of a page writes the numbers of details that are opened in the same way."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil, floor, log10

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
NO_BREAK = "\u00a0"


def count(number: float) -> str:
    """Return a number with separators between thousands: `12,345`."""
    return f"{number:,.0f}"


def counted(number: int, thing: str) -> str:
    """Return a number of things: `1 day`, `12,345 partitions`."""
    return f"{count(number)}{NO_BREAK}{thing}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """Return a share in whole percent, as everywhere in this project: `184 %`."""
    return f"{share * 100:,.0f}{NO_BREAK}%"


def part(some: float, all_: float) -> str:
    """Return a part of a whole, to a tenth of a percent; nothing of an empty whole."""
    return f"{some / all_ * 100:.1f}{NO_BREAK}%" if all_ else ""


def size(bytes_: float) -> str:
    """Return bytes to three digits: `1.24 PiB`, `340 MiB`, `0 B`."""
    value, unit = bytes_, 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    digits = 0 if unit == 0 or value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}{NO_BREAK}{UNITS[unit]}"


def column_unit(greatest: float) -> int:
    """Return the unit of a whole column of bytes, so that its numbers compare: GiB, or less where all is less."""
    return next((unit for unit in (3, 2, 1) if greatest >= 1024**unit), 0)


def in_unit(bytes_: float, unit: int) -> str:
    """Return bytes as a number in the unit of a column."""
    return f"{bytes_ / 1024**unit:,.{1 if unit else 0}f}"


def ratio(cost: float, bound: float) -> str:
    """Return a cost as a multiple of its lower bound: `1.04`; nothing where the bound is 0."""
    return f"{cost / bound:.2f}" if bound else ""


def days(number: float) -> str:
    """Return the whole days that are surely left: `36`, `< 1`."""
    return count(int(number)) if number >= 1 else f"<{NO_BREAK}1"


def moment(time: datetime) -> str:
    """Return a time to the minute: `2026-11-21 23:05 UTC`. One without a zone is UTC, on every machine."""
    return f"{time.astimezone(UTC) if time.tzinfo else time:%Y-%m-%d %H:%M} UTC"


def steps(greatest: float) -> list[float]:
    """Return round steps of an axis from 0, three to six of them, the last at or above `greatest`."""
    power = 10.0 ** floor(log10(greatest / 4))
    step = next(step for step in (power, 2 * power, 5 * power, 10 * power) if greatest / step <= 4.5)
    return [step * i for i in range(ceil(greatest / step - 1e-9) + 1)]

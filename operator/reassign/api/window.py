"""A window: a time that comes again, in which something may begin."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reassign.api.common import Model
from reassign.api.limits import (
    MAX_CRON_CHARACTERS,
    MAX_TIME_ZONE_CHARACTERS,
    MAX_WINDOW_SECONDS,
    MAX_WINDOWS,
    MIN_WINDOW_SECONDS,
)

Cron = Annotated[str, Field(max_length=MAX_CRON_CHARACTERS, pattern=r"^[0-9A-Za-z*/,#-]+( +[0-9A-Za-z*/,#-]+){4}$")]
"""Five fields, without a time zone. Whether they can be read is for `core/plans/windows.py` to say."""
TimeZone = Annotated[
    str, Field(max_length=MAX_TIME_ZONE_CHARACTERS, pattern=r"^[A-Za-z][0-9A-Za-z_+-]*(/[0-9A-Za-z_+-]+)*$")
]
"""The name of a time zone in the IANA database. Whether there is such a zone is for `core/plans/windows.py` to say."""


class Window(Model):
    """A time that comes again, in which moves may begin."""

    cron: Cron
    """When it opens: minute, hour, day of the month, month and day of the week, such as 0 22 * * 1-5, as the clock in
    timeZone shows it. A time that this clock skips counts right after, and one that it shows twice counts the first
    time."""
    duration_seconds: Annotated[int, Field(ge=MIN_WINDOW_SECONDS, le=MAX_WINDOW_SECONDS)]
    """How long it is open: from five minutes to a week. Where it opens again meanwhile, it lasts so long from then."""
    time_zone: TimeZone = "Etc/UTC"
    """The time zone of cron, by its name in the IANA database, such as Europe/Berlin."""


Windows = Annotated[tuple[Window, ...], Field(max_length=MAX_WINDOWS)]

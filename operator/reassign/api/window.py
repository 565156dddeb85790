"""A window: a time that comes again, in which something may begin."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from reassign.api.common import VALIDATIONS, Model, rule
from reassign.api.limits import (
    MAX_CRON_CHARACTERS,
    MAX_TIME_ZONE_CHARACTERS,
    MAX_WINDOW_SECONDS,
    MAX_WINDOWS,
    MIN_WINDOW_SECONDS,
)


class _Form:
    """Asks for a form, in words: in the schema, and when it is read."""

    def __init__(self, pattern: str, words: str) -> None:
        self._pattern, self._words = pattern, words

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), VALIDATIONS: [rule(f"self.matches('^{self._pattern}$')", self._words)]}

    def _check(self, text: str) -> str:
        if not re.fullmatch(self._pattern, text):
            raise ValueError(self._words)
        return text


Cron = Annotated[
    str,
    Field(max_length=MAX_CRON_CHARACTERS),
    _Form(
        "[0-9A-Za-z*/,#-]+( +[0-9A-Za-z*/,#-]+){4}",
        "must be five fields with spaces between, such as 0 22 * * 1-5: minute, hour, day of the month, month and day "
        "of the week",
    ),
]
"""Five fields, without a time zone. Whether they can be read is for `core/plans/windows.py` to say."""
TimeZone = Annotated[
    str,
    Field(max_length=MAX_TIME_ZONE_CHARACTERS),
    _Form(
        "[A-Za-z][0-9A-Za-z_+-]*(/[0-9A-Za-z_+-]+)*",
        "must be the name of a time zone in the IANA database, such as Europe/Berlin",
    ),
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

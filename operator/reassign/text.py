"""Sentences that all messages have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


def first_error(error: ValidationError) -> str:
    """Describe the first error of an object: its field, and what is wrong with it."""
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"])) or "it"
    return f"{field}: {first['msg'].removeprefix('Value error, ')}; correct it"

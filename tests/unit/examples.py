"""How many examples a property test tries: more than others or fewer, and in each profile a multiple of that."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def examples(number: int, **options: Any) -> settings:
    """Return settings for so many examples where a test without settings tries 100; the profile scales both."""
    assert settings.default
    return settings(max_examples=max(1, number * settings.default.max_examples // 100), **options)

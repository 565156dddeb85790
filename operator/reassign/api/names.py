"""Patterns of whole names. This module imports nothing heavy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from reassign.api.limits import MAX_LABEL_CHARACTERS, MAX_NAME_CHARACTERS, MAX_TOPIC_NAME_CHARACTERS

NAMESPACE_NAME = re.compile(rf"(?!.{{{MAX_LABEL_CHARACTERS + 1}}})[a-z0-9]([-a-z0-9]*[a-z0-9])?")
OBJECT_NAME = re.compile(
    rf"(?!.{{{MAX_NAME_CHARACTERS + 1}}})[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
TOPIC_NAME = re.compile(rf"(?!\.{{1,2}}$)[a-zA-Z0-9._-]{{1,{MAX_TOPIC_NAME_CHARACTERS}}}")


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns (`*`, `?`, `[seq]`) matches a name, case and all."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)

"""What names may look like, as patterns of the whole name; nothing heavy is imported here."""

from __future__ import annotations

import re

NAMESPACE_NAME = re.compile(r"(?!.{64})[a-z0-9]([-a-z0-9]*[a-z0-9])?")
OBJECT_NAME = re.compile(r"(?!.{254})[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")

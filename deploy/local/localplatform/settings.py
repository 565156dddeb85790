"""What the environment, or make's command line, asks of the platform; checked before the first step."""

import os
import re

from localplatform.console import SettingError

OLDEST = (3, 9)
MAX_BROKERS, MAX_PORT = 20, 65_000
"""Listeners of brokers are up to 320 ports above the first one."""


def check() -> None:
    """Refuse a setting that is none, so that nothing is started in its place."""
    _require("PLATFORM", ("", "kind"), "kind is needed, or nothing for the platform of its own")
    _require("ARGOCD", ("", "0", "1"), "1 is needed, or nothing for a platform without Argo CD")
    _require("BROKERS", ("", *map(str, range(1, MAX_BROKERS + 1))), f"a number from 1 to {MAX_BROKERS} is needed")
    _require("CONTROLLERS", ("", "1", "3", "5"), "a quorum of 1, 3 or 5 is needed")
    _require("KAFKA_PORT", ("", *map(str, range(1, MAX_PORT + 1))), f"a port from 1 to {MAX_PORT} is needed")
    version = os.environ.get("KAFKA_VERSION", "")
    if version and not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", version):
        raise SettingError(f"KAFKA_VERSION={version}: a version of Kafka is needed, such as 4.3.1")
    if version and tuple(map(int, version.split("."))) < OLDEST:
        raise SettingError(f"KAFKA_VERSION={version}: Kafka 3.9 or later is needed, such as 4.3.1")


def asked(name: str, default: str) -> str:
    """A setting, or the default."""
    return os.environ.get(name) or default


def _require(name: str, allowed: tuple[str, ...], needed: str) -> None:
    if (value := os.environ.get(name, "")) not in allowed:
        raise SettingError(f"{name}={value}: {needed}")

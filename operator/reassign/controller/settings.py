"""The operator's settings, from environment variables that begin with REASSIGN_."""

from __future__ import annotations

import os
import socket
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

__all__ = ["Settings"]


def _pod_name() -> str:
    """Return POD_NAME; outside of a pod a name that no other process has."""
    return os.environ.get("POD_NAME") or f"{socket.gethostname()}-{os.getpid()}"


def _pod_namespace() -> str:
    return os.environ.get("POD_NAMESPACE") or "default"


class Settings(BaseSettings):
    """One field per variable, so `http_port` is REASSIGN_HTTP_PORT."""

    model_config = SettingsConfigDict(env_prefix="REASSIGN_", frozen=True)

    watch_namespaces: Annotated[tuple[str, ...], NoDecode] = ()
    """Namespaces whose resources are served, comma separated; empty for all."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    http_port: int = Field(default=8080, ge=0, le=65535)
    """Where /livez, /readyz and /metrics are served."""

    liveness_seconds: float = Field(default=120.0, gt=0)
    """A loop whose last tick is older than this makes /livez fail."""

    lease: bool = True
    """Whether to take the Lease before anything is written; false only where nothing else can be running."""

    lease_name: str = "kafka-reassign-operator"

    pod_name: str = Field(default_factory=_pod_name)
    """The identity of this instance, from POD_NAME."""

    pod_namespace: str = Field(default_factory=_pod_namespace)
    """Where the Lease is, from POD_NAMESPACE."""

    @field_validator("watch_namespaces", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

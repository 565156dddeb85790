"""Logs as JSON, one record per line on standard error, in one format for our records and those of libraries."""

from __future__ import annotations

import logging
import sys
from typing import Any, Protocol

import structlog
from structlog.typing import Processor

__all__ = ["named_as", "set_up_logs"]

_QUIETER = {
    "kopf.objects": logging.WARNING,  # says of every event of every object that it was handled
    "kopf.activities": logging.WARNING,
    "kopf._core.reactor.running": logging.ERROR,  # warns that it takes no signals: they are ours
    "kopf._cogs.clients.watching": logging.CRITICAL,  # of each attempt again; Listing says it once
    "kafka": logging.CRITICAL,  # what kafka-python meets on a connection comes back to us as an error
    "aiohttp.access": logging.WARNING,
    "asyncio": logging.WARNING,
}


class Named(Protocol):
    """A resource, as far as its lines in the log name it."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def generation(self) -> int: ...


def named_as(kind: str, resource: Named) -> dict[str, Any]:
    """Return what lines of the log say of the resource that they are about."""
    return {
        "kind": str(kind),
        "resource": f"{resource.namespace}/{resource.name}",
        "generation": resource.generation,
    }


def set_up_logs(level: str) -> None:
    """Send everything to standard error as JSON; libraries that chat say only what is worth a warning."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(default=str),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name, least in _QUIETER.items():
        logging.getLogger(name).setLevel(max(least, root.level))

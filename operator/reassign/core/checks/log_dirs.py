"""Whether the log directories of a target can take its replicas."""

from __future__ import annotations

from collections.abc import Iterable

from reassign.api.limits import MAX_DIRECTED_CHARACTERS
from reassign.api.partition_reassignment import ANY_LOG_DIR, can_be_directed
from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from reassign.errors import Reason


def log_directory(i: Input) -> Problem | None:
    """Refuse directories that are missing, offline or cordoned: the one that is named, or else all of the broker.

    For a topic with a long name none can be named. A broker itself chooses no cordoned directory (KIP-1066). A replica
    that is in its directory already stays there.
    """
    for broker in sorted(i.added | {place.broker for place in i.placements if not place.done}):
        directories, path = i.snapshot.log_dirs.get(broker), i.log_dirs.get(broker)
        if directories is None:
            continue
        if path is not None and not can_be_directed(*i.tp):
            return name_too_long(i.tp, broker)
        if path is not None and path not in directories:
            return unknown_log_dir(broker, path, directories)
        open_to = {p: d for p, d in directories.items() if path in (None, p)}
        what = path or "every log directory"
        if not any(d.online for d in open_to.values()):
            return Problem(
                Reason.LOG_DIR_OFFLINE,
                f"{what} of broker {broker} is offline; repair the disk and restart the broker, or choose another",
            )
        if all(d.cordoned for d in open_to.values() if d.online):
            return Problem(
                Reason.LOG_DIR_CORDONED,
                f"{what} of broker {broker} is cordoned; remove it from cordoned.log.dirs, or choose another",
            )
    return None


def name_too_long(tp: TopicPartition, broker: int) -> Problem:
    """Return the problem of a directory that is named for a topic whose name is too long."""
    return Problem(
        Reason.TOPIC_NAME_TOO_LONG,
        f"broker {broker} takes no named log directory for a topic with so long a name: name and partition have "
        f"{len(tp.topic) + len(str(tp.partition))} characters, at most {MAX_DIRECTED_CHARACTERS} are possible; "
        f"write {ANY_LOG_DIR} in logDirs",
    )


def unknown_log_dir(broker: int, path: str, directories: Iterable[str]) -> Problem:
    """Return the problem of a named directory that the broker does not have."""
    return Problem(
        Reason.UNKNOWN_LOG_DIR,
        f"broker {broker} has no log directory {path}, only {', '.join(sorted(directories))}; correct the entry",
    )

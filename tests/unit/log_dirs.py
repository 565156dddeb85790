"""A partition whose replicas are to be in named log directories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import LogDir
from reassign.core.model.steps import AlterLogDirs
from tests.unit.sim import Driver, SimKafka, drive, partitions, resource

P0, P1 = partitions(2)


def kafka(**fields: object) -> SimKafka:
    """Partition 0 on brokers 0 and 1, which have it in /a; every broker has /a and /b."""
    log_dirs = {b: {"/a": LogDir(logs={}, futures={}), "/b": LogDir(logs={}, futures={})} for b in range(6)}
    for broker in (0, 1):
        log_dirs[broker]["/a"].logs[P0] = 100  # type: ignore[index]
    return SimKafka({P0: (0, 1)}, log_dirs=log_dirs, sizes={P0: {0: 100, 1: 100}}, **fields)  # type: ignore[arg-type]


def with_dirs(base: Resource, dirs: Sequence[str] | None) -> Resource:
    entry = base.spec.partitions[0].model_copy(update={"log_dirs": tuple(dirs) if dirs else None})
    return replace(base, spec=base.spec.model_copy(update={"partitions": (entry,)}))


def asking(replicas: Sequence[int], dirs: Sequence[str] | None, **fields: object) -> Driver:
    return drive(kafka(), with_dirs(resource({P0: replicas}, **fields), dirs))


def forgetful(sim: SimKafka):  # type: ignore[no-untyped-def]
    perform = sim.perform

    def forgets(step):  # type: ignore[no-untyped-def]
        outcome = perform(step)
        if isinstance(step, AlterLogDirs):
            sim.preferred.clear()
        return outcome

    return forgets

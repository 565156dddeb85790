"""Log directories and volumes, as they are known from one look to the next."""

from __future__ import annotations

from reassign.core.model.log_dir_reports import remembered, sizes
from reassign.core.model.snapshot import LogDir
from tests.unit.sim import partitions

P0, P1 = partitions(2)


def test_sizes_are_of_main_logs_in_directories_that_are_online() -> None:
    log_dirs = {
        0: {"/a": LogDir(logs={P0: 5}, futures={P1: 3}), "/b": LogDir(logs={P1: 7})},
        1: {"/a": LogDir(online=False, logs={P0: 9})},
    }
    assert sizes(log_dirs) == {P0: {0: 5}, P1: {0: 7}}


def test_a_broker_that_does_not_answer_keeps_what_was_last_seen_of_it() -> None:
    before = {0: {"/a": LogDir(logs={P0: 5})}, 1: {"/a": LogDir(logs={P0: 4})}, 2: {"/a": LogDir()}}
    now = {0: {"/a": LogDir(logs={P0: 6})}}
    assert remembered(before, now, brokers=[0, 1]) == {0: now[0], 1: before[1]}

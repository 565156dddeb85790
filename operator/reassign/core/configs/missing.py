"""What moves need of the configurations of throttles, and do not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from reassign.core.configs.desired import ThrottledMove, WantedConfigs, rate_keys, wanted_configs
from reassign.core.model.configs import ALL, ConfigKey, Observed, items


def missing_configs(
    moves: Iterable[ThrottledMove], aim: WantedConfigs, live: frozenset[int], seen: Observed
) -> Iterator[ConfigKey | None]:
    """Yield for each move the first configuration of the aim that the move needs and does not have, or None.

    Brokers that are down need none.
    """

    @cache
    def text(key: ConfigKey) -> str | None:
        configs = seen.get(key.resource)
        return configs.get(key.config) if configs is not None else None

    @cache
    def listed(key: ConfigKey) -> frozenset[str] | None:
        """Return the items of a list; None for all."""
        there = items(text(key))
        return None if there == ALL else frozenset(there)

    def lacks(move: ThrottledMove) -> Iterator[ConfigKey]:
        for key, those in move.items().items():
            there = listed(key)
            if there is not None and not those <= there:
                yield key
        if move.rate is not None:
            yield from (key for key in rate_keys(move) if int(key.resource.name) in live and not set_as_aimed(key))

    def set_as_aimed(key: ConfigKey) -> bool:
        return seen.get(key.resource) is not None and text(key) == aim.values.get(key)

    return (next(lacks(move), None) for move in moves)


def configs_of(move: ThrottledMove, aim: WantedConfigs) -> set[ConfigKey]:
    """Return the configurations that throttle a move."""
    return move.items().keys() | (wanted_configs([move], None).values.keys() & aim.values.keys())

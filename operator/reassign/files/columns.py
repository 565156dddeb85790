"""Columns of a snapshot's tables as arrays that rules are written in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reassign.planning.problem.model import Bools, Bytes

NULL = 1 << 32
"""Stands for a null in a list; no broker has it."""
LEAST = -(1 << 31)


class Lists(NamedTuple):
    """A column of lists of brokers, all values one after another."""

    row: Bytes  # of each value
    value: Bytes  # NULL where it is null
    counts: Bytes  # (P,) values of each row

    def lacks(self, one: Bytes, known: Bools) -> Bools:
        """Return (P,) which rows with a known value have neither that value nor a null that could be it."""
        could = self.row[(self.value == one[self.row]) | (self.value == NULL)]
        lacking: Bools = known & (np.bincount(could, minlength=len(self.counts)) == 0)
        return lacking

    def keys(self) -> Bytes:
        """Return each row's values once, sorted, as numbers with the row in the upper bits, the value in the lower."""
        keys = np.sort(pairs(self.row, self.value - LEAST))
        once: Bytes = keys[np.diff(keys, prepend=-1) != 0]
        return once

    def without(self, other: Lists) -> tuple[Bytes, Bytes]:
        """Return the rows and the values, each once, that another column does not have in that row."""
        keys, others = self.keys(), other.keys()
        at = np.searchsorted(others, keys)
        return unpaired(keys[others.take(at, mode="clip") != keys] if len(others) else keys)


def pairs(row: Bytes, value: Bytes) -> Bytes:
    """Return one number for a row and a value, which is not negative and at most 2^33."""
    return row << 34 | value


def unpaired(keys: Bytes) -> tuple[Bytes, Bytes]:
    """Return the rows and the values of `Lists.keys`."""
    return keys >> 34, (keys & ((1 << 34) - 1)) + LEAST


def lists(column: pa.ChunkedArray) -> Lists:
    count = pc.list_value_length(column).to_numpy().astype(np.int64)
    values = pc.fill_null(pc.cast(pc.list_flatten(column), pa.int64()), NULL)
    return Lists(np.repeat(np.arange(len(count)), count), values.to_numpy(), count)


def numbers(column: pa.ChunkedArray) -> tuple[Bytes, Bools]:
    """Return the values, 0 for nulls, and which are known."""
    return pc.fill_null(column, 0).to_numpy().astype(np.int64), bools(pc.is_valid(column))


def bools(column: pa.ChunkedArray) -> Bools:
    values: Bools = column.to_numpy(zero_copy_only=False).astype(np.bool_)
    return values


def codes(column: pa.ChunkedArray) -> tuple[Bytes, list[Any]]:
    """Return a number for each value, from 0, and the values."""
    found = column.combine_chunks().dictionary_encode()
    return found.indices.to_numpy().astype(np.int64), found.dictionary.to_pylist()


def times(key: Bytes) -> Bytes:
    """Return how often each value occurs."""
    _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    return counts[inverse]

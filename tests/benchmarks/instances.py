"""Made clusters for the planner: the same seed makes the same cluster, of any size, in a few seconds.

Sizes are lognormal (σ = 1). Brokers are skewed, each by a lognormal weight (σ = SKEW) of its share of the replicas, and
by another one of its share of the preferred leaders. Every partition is legal at the start: at each level of the racks
its replicas are spread as evenly as the tree allows, unless `violations` says that some are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reassign.api.goal import By
from reassign.planning.problem.model import Bools, Bytes, Cluster, Directories, Ints, PlacementGoal

SKEW = 0.3
LEADER_SKEW = 0.5
GIB = 2**30
UTILISATION = 0.2
TOPIC = 30  # partitions
CHUNK = 250_000  # partitions placed at once, which bounds the memory
NARROW = 32  # children that are drawn by a key each; more are drawn one at a time

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Made:
    """What to make. `racks`: children per level, (6,) is six racks, (3, 4) is three halls of four racks, () is none."""

    replicas: int
    brokers: int
    seed: int = 0
    racks: tuple[int, ...] = (3, 4)
    replication_factor: int = 3
    unequal_capacities: bool = False  # volumes of one, two or four units
    unequal_racks: bool = False  # the largest has about four times the brokers of the smallest
    gamma: float = 0.0  # correlation of a replica's log size with where it lies
    violations: float = 0.0  # share of the partitions placed without looking at racks
    drained: bool = False  # the goal drains one broker


SIZES = {"360": (360, 12), "9k": (9_000, 30), "99k": (99_000, 100), "999k": (999_000, 300), "10M": (9_999_000, 3_000)}


def cluster(made: Made) -> Cluster:
    rng = np.random.default_rng([made.seed, made.replicas, made.brokers])
    count, factor = made.replicas // made.replication_factor, made.replication_factor
    levels = _racks(rng, made)
    weights = rng.lognormal(0, SKEW, made.brokers)
    replicas = np.full((count, factor), -1, np.int32)
    careless = rng.random(count) < made.violations
    for start in range(0, count, CHUNK):
        rows = np.arange(start, min(start + CHUNK, count))
        for tree, of in ((levels, rows[~careless[rows]]), (levels[:0], rows[careless[rows]])):
            filled = np.zeros(count, np.int8)
            need = np.full(len(of), factor, np.int8)
            _spread(rng, replicas, filled, of, need, np.arange(made.brokers), tree, weights)
    order = np.argsort(_keys(rng, count, rng.lognormal(0, LEADER_SKEW, made.brokers)[replicas]), axis=1)
    replicas = np.take_along_axis(replicas, order, axis=1)
    sizes = _sizes(rng, made, replicas)
    index = np.arange(count, dtype=np.int32)
    topics = -(-count // TOPIC)
    return Cluster(
        id=f"made-{made.seed}",
        brokers=np.arange(1, made.brokers + 1, dtype=np.int32),
        racks=tuple(_path(levels[:, broker]) for broker in range(made.brokers)),
        registered=np.ones(made.brokers, np.bool_),
        alive=np.ones(made.brokers, np.bool_),
        directories=_directories(rng, made, replicas, sizes),
        topics=tuple(f"topic-{number:06d}" for number in range(topics)),
        topic=index // TOPIC,
        partition=index % TOPIC,
        replicas=replicas,
        sizes=sizes,
        in_flight=np.zeros(count, np.bool_),
        directory=replicas.copy(),
    )


def goal(made: Made, balance: frozenset[By] = frozenset(By)) -> PlacementGoal:
    """Balance of all resources inside ±10 %; the broker to drain lies in the middle of the ids."""
    return PlacementGoal(drain=frozenset({made.brokers // 2} if made.drained else ()), balance=balance)


def _racks(rng: np.random.Generator, made: Made) -> Ints:
    """The rack of each broker at each level, (levels, B): numbers of children."""
    leaves = int(np.prod(made.racks, dtype=np.int64)) if made.racks else 1
    shares = np.geomspace(1, 4, leaves) if made.unequal_racks else np.ones(leaves)
    ends = np.cumsum(shares / shares.sum() * (made.brokers - leaves))
    brokers = np.arange(made.brokers - leaves)
    leaf = np.concatenate([np.arange(leaves), np.minimum(np.searchsorted(ends, brokers, side="right"), leaves - 1)])
    leaf = rng.permutation(leaf)
    return np.array(np.unravel_index(leaf, made.racks) if made.racks else np.empty((0, made.brokers)), np.int32)


def _path(codes: Ints) -> str:
    if len(codes) < 2:
        return "".join(f"rack{code}" for code in codes)
    return "".join(f"/{name}{code}" for name, code in zip("abcdef", codes, strict=False))


def _spread(
    rng: np.random.Generator,
    replicas: Ints,
    filled: npt.NDArray[np.int8],
    rows: npt.NDArray[np.int64],
    need: npt.NDArray[np.int8],
    members: npt.NDArray[np.int64],
    levels: Ints,
    weights: Floats,
) -> None:
    """Place `need` replicas of each of these partitions on the members, evenly over their racks level by level."""
    if len(rows) == 0:
        return
    if len(levels):
        groups = [members[levels[0, members] == code] for code in np.unique(levels[0, members])]
        shares = np.array([weights[group].sum() for group in groups])
        taken = _evenly(rng, need, shares, np.array([len(group) for group in groups]))
        for number, group in enumerate(groups):
            some = taken[:, number] > 0
            _spread(rng, replicas, filled, rows[some], taken[some, number], group, levels[1:], weights)
    elif len(members) <= NARROW:
        taken = _evenly(rng, need, weights[members], np.ones(len(members), np.int64))
        for number, broker in enumerate(members):
            some = rows[taken[:, number] > 0]
            replicas[some, filled[some]] = broker
            filled[some] += 1
    else:
        shares = np.cumsum(weights[members]) / weights[members].sum()
        for turn in range(int(need.max())):
            open_ = rows[need > turn]
            while len(open_):
                drawn = members[np.minimum(np.searchsorted(shares, rng.random(len(open_))), len(members) - 1)]
                new = ~(replicas[open_] == drawn[:, None]).any(axis=1)
                replicas[open_[new], filled[open_[new]]] = drawn[new]
                filled[open_[new]] += 1
                open_ = open_[~new]


def _evenly(
    rng: np.random.Generator, need: npt.NDArray[np.int8], weights: Floats, room: npt.NDArray[np.int64]
) -> npt.NDArray[np.int8]:
    """How many of `need` each child takes, (N, children): one more where there are fewest, by weight among equals."""
    keys = _keys(rng, len(need), weights)
    keys /= keys.max() * 2
    taken = np.zeros(keys.shape, np.int8)
    for turn in range(int(need.max(initial=0))):
        some = np.flatnonzero(need > turn)
        child = np.where(taken[some] < room, taken[some] + keys[some], np.inf).argmin(axis=1)
        taken[some, child] += 1
    return taken


def _keys(rng: np.random.Generator, count: int, weights: Floats) -> Floats:
    """The smaller a key, the sooner it is taken: in proportion to the weights, without replacement."""
    return rng.standard_exponential((count, weights.shape[-1])) / weights


def _sizes(rng: np.random.Generator, made: Made, replicas: Ints) -> Bytes:
    trait = rng.standard_normal(made.brokers)
    own = rng.standard_normal(len(replicas))
    where = trait[replicas].sum(axis=1) / np.sqrt(made.replication_factor)
    return np.rint(np.exp(np.sqrt(1 - made.gamma**2) * own + made.gamma * where) * GIB).astype(np.int64)


def _directories(rng: np.random.Generator, made: Made, replicas: Ints, sizes: Bytes) -> Directories:
    used = loads(replicas, sizes, made.brokers)
    units = rng.choice([1, 2, 4], made.brokers) if made.unequal_capacities else np.ones(made.brokers)
    total = np.ceil(used.sum() / UTILISATION * units / units.sum()).astype(np.int64)
    total = np.maximum(total, used)
    online: Bools = np.ones(made.brokers, np.bool_)
    return Directories(
        broker=np.arange(made.brokers, dtype=np.int32),
        path=("/kafka",) * made.brokers,
        total=total,
        usable=total - used,
        cordoned=~online,
        online=online,
    )


def loads(replicas: Ints, sizes: Bytes, brokers: int) -> Bytes:
    """Bytes per broker; exact, since sums of floats would not be."""
    found = np.zeros(brokers, np.int64)
    for column in replicas.T:
        some = column >= 0
        np.add.at(found, column[some], sizes[some])
    return found

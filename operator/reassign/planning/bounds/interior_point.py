"""The linear program of the cheapest exchange, solved by an interior point method (Mehrotra's predictor-corrector).

Replicas of one class count as one, so there are few columns. The code is compiled: plain loops of a fixed order with
nothing but sums, products, quotients and square roots. All machines get the same result, while BLAS rounds as the
processor does.
"""

from __future__ import annotations

import numpy as np

from reassign.planning.machine_code import compiled
from reassign.planning.problem.model import Floats

STEPS = 40
CLOSE = 1e-7
OPENED = 1e-6
"""By how much each range is widened, so that it has an inside."""
NEARLY = 0.9995
"""The part of the way to where a value is 0 that a step may go."""
STEADY = 1e-10


@compiled(error_model="numpy")
def interior_point(
    have: Floats, size: Floats, gain: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the prices (2, B) of a byte and of a replica more on each broker, of either sign, then the flows.

    The flows are what leaves each broker, and what comes to it, of each class: (B, C) each. `have` (B, C) are replicas
    of each class on each broker; `size` (C,) is of one, in mean sizes. `gain` (C,) is how many more come than leave.
    `low` and `high` (2, B) are what the loads of bytes and replicas may change by.

    Columns: what leaves each broker, (B, C), at no cost; what comes, (B, C), at its size; the place of the loads inside
    the bands, (2, B). All are at least 0; the first and the last have an upper end. Rows: the loads of each broker, the
    gain of each class. The normal equations shrink to the classes.
    """
    brokers, classes = have.shape
    n = brokers * classes
    columns = 2 * n + 2 * brokers
    upper, cost = np.full(columns, np.inf), np.zeros(columns)
    for b in range(brokers):
        for c in range(classes):
            upper[b * classes + c] = have[b, c] + OPENED
            cost[n + b * classes + c] = size[c]
        for r in range(2):
            upper[2 * n + r * brokers + b] = high[r, b] - low[r, b] + OPENED
    x, s, z, v = np.ones(columns), np.ones(columns), np.ones(columns), np.zeros(columns)
    ended = np.isfinite(upper)
    count = columns
    for i in range(columns):
        if ended[i]:
            x[i] = min(upper[i], 2.0) / 2
            s[i] = upper[i] - x[i]
            v[i] = 1.0
            count += 1
    y, pi = np.zeros((2, brokers)), np.zeros(classes)
    dx, ds, dz, dv = np.zeros(columns), np.zeros(columns), np.zeros(columns), np.zeros(columns)
    slope = np.zeros(columns)
    for _ in range(STEPS):
        gap = _inner(x, z, s, v) / count
        if not gap >= CLOSE:
            break
        loads, gains = _rows(x, size, brokers)
        loads, gains = low - loads, gain - gains
        dual = cost - _columns(y, pi, size) - z + v
        weight = np.where(ended, 1 / (z / x + v / s), x / z)
        both = (weight[:n] + weight[n : 2 * n]).reshape((brokers, classes))
        inverse = _blocks(both, size, weight[2 * n :])
        schur = _factor(_schur(both, size, inverse))
        aim_x, aim_s = -x * z, -s * v
        primal = step = 1.0
        for turn in range(2):
            for i in range(columns):
                slope[i] = dual[i] - aim_x[i] / x[i]
                if ended[i]:
                    slope[i] += (aim_s[i] - v[i] * (upper[i] - x[i] - s[i])) / s[i]
            of_broker, of_class = _rows(weight * slope, size, brokers)
            dy, dpi = _newton(both, size, inverse, schur, of_broker + loads, of_class + gains)
            back = _columns(dy, dpi, size)
            for i in range(columns):
                dx[i] = weight[i] * (back[i] - slope[i])
                dz[i] = (aim_x[i] - z[i] * dx[i]) / x[i]
                if ended[i]:
                    ds[i] = upper[i] - x[i] - s[i] - dx[i]
                    dv[i] = (aim_s[i] - v[i] * ds[i]) / s[i]
            primal = min(1.0, NEARLY * min(_reach(x, dx), _reach(s, ds)))
            step = min(1.0, NEARLY * min(_reach(z, dz), _reach(v, dv)))
            if turn == 0:
                then = _inner(x + primal * dx, z + step * dz, s + primal * ds, v + step * dv) / count
                centre = gap * (then / gap) ** 3
                aim_x = centre - x * z - dx * dz
                aim_s = np.where(ended, centre - s * v - ds * dv, 0.0)
        x, s = x + primal * dx, s + primal * ds
        y, pi, z, v = y + step * dy, pi + step * dpi, z + step * dz, v + step * dv
    return -y, x[:n].reshape((brokers, classes)), x[n : 2 * n].reshape((brokers, classes))


@compiled(error_model="numpy")
def _inner(x: Floats, z: Floats, s: Floats, v: Floats) -> float:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * z[i] + s[i] * v[i]
    return total


@compiled(error_model="numpy")
def _reach(x: Floats, dx: Floats) -> float:
    """Return how far values can go in a direction before one of them is 0."""
    far = np.inf
    for i in range(len(x)):
        if dx[i] < 0:
            far = min(far, -x[i] / dx[i])
    return far


@compiled(error_model="numpy")
def _rows(x: Floats, size: Floats, brokers: int) -> tuple[Floats, Floats]:
    classes = len(size)
    n = brokers * classes
    loads, gains = np.zeros((2, brokers)), np.zeros(classes)
    for b in range(brokers):
        for c in range(classes):
            net = x[n + b * classes + c] - x[b * classes + c]
            loads[0, b] += net * size[c]
            loads[1, b] += net
            gains[c] += net
        loads[0, b] -= x[2 * n + b]
        loads[1, b] -= x[2 * n + brokers + b]
    return loads, gains


@compiled(error_model="numpy")
def _columns(y: Floats, pi: Floats, size: Floats) -> Floats:
    brokers, classes = y.shape[1], len(size)
    n = brokers * classes
    of = np.empty(2 * n + 2 * brokers)
    for b in range(brokers):
        for c in range(classes):
            value = y[0, b] * size[c] + y[1, b] + pi[c]
            of[b * classes + c] = -value
            of[n + b * classes + c] = value
        of[2 * n + b] = -y[0, b]
        of[2 * n + brokers + b] = -y[1, b]
    return of


@compiled(error_model="numpy")
def _blocks(both: Floats, size: Floats, place: Floats) -> Floats:
    """Return (B, 3): the inverses of the brokers' blocks, which are symmetric."""
    brokers, classes = both.shape
    inverse = np.empty((brokers, 3))
    for b in range(brokers):
        bytes_, mixed, replicas = place[b], 0.0, place[brokers + b]
        for c in range(classes):
            bytes_ += both[b, c] * size[c] * size[c]
            mixed += both[b, c] * size[c]
            replicas += both[b, c]
        determinant = bytes_ * replicas - mixed * mixed
        inverse[b, 0] = replicas / determinant
        inverse[b, 1] = -mixed / determinant
        inverse[b, 2] = bytes_ / determinant
    return inverse


@compiled(error_model="numpy")
def _schur(both: Floats, size: Floats, inverse: Floats) -> Floats:
    """Return the upper half of what remains of the equations when the brokers' are solved (the Schur complement)."""
    brokers, classes = both.shape
    sized, plain = np.empty((brokers, classes)), np.empty((brokers, classes))
    for b in range(brokers):
        for c in range(classes):
            sized[b, c] = both[b, c] * (inverse[b, 0] * size[c] + inverse[b, 1])
            plain[b, c] = both[b, c] * (inverse[b, 1] * size[c] + inverse[b, 2])
    left = np.zeros((classes, classes))
    for c in range(classes):
        row = left[c, c:]
        for b in range(brokers):
            here, sizes, plains = both[b, c], sized[b, c:], plain[b, c:]
            row[0] += here
            for d in range(len(row)):
                row[d] -= here * (sizes[d] * size[c] + plains[d])
        row[0] *= 1 + STEADY
    return left


@compiled(error_model="numpy")
def _factor(a: Floats) -> Floats:
    """Return Cholesky's factor, of the upper half, row by row.

    The sums of a row are formed side by side, so that none waits for itself: a processor forms several at once, each in
    the same order. Four rows above are subtracted in one go, since such short loops take as long to begin as to run.
    """
    for i in range(len(a)):
        row, k = a[i, i:], 0
        while k + 4 <= i:
            first, second, third, fourth = a[k, i:], a[k + 1, i:], a[k + 2, i:], a[k + 3, i:]
            b, c, d, e = first[0], second[0], third[0], fourth[0]
            for j in range(len(row)):
                row[j] = row[j] - b * first[j] - c * second[j] - d * third[j] - e * fourth[j]
            k += 4
        for above in a[k:i, i:]:
            by = above[0]
            for j in range(len(row)):
                row[j] -= by * above[j]
        root = np.sqrt(max(row[0], 1e-30))
        row[0] = root
        for j in range(1, len(row)):
            row[j] /= root
    return a


@compiled(error_model="numpy")
def _newton(
    both: Floats, size: Floats, inverse: Floats, schur: Floats, loads: Floats, gains: Floats
) -> tuple[Floats, Floats]:
    brokers, classes = both.shape
    for b in range(brokers):
        sized = inverse[b, 0] * loads[0, b] + inverse[b, 1] * loads[1, b]
        plain = inverse[b, 1] * loads[0, b] + inverse[b, 2] * loads[1, b]
        for c in range(classes):
            gains[c] -= both[b, c] * (size[c] * sized + plain)
    pi = gains
    for i in range(classes):
        value = pi[i] / schur[i, i]
        row, rest = schur[i, i:], pi[i:]
        for k in range(len(row)):
            rest[k] -= row[k] * value
        pi[i] = value
    for i in range(classes - 1, -1, -1):
        value = pi[i] / schur[i, i]
        for k in range(i):
            pi[k] -= schur[k, i] * value
        pi[i] = value
    y = np.empty((2, brokers))
    for b in range(brokers):
        sized, plain = loads[0, b], loads[1, b]
        for c in range(classes):
            sized -= both[b, c] * size[c] * pi[c]
            plain -= both[b, c] * pi[c]
        y[0, b] = inverse[b, 0] * sized + inverse[b, 1] * plain
        y[1, b] = inverse[b, 1] * sized + inverse[b, 2] * plain
    return y, pi

"""The z of the order-statistic forms of the objective, and where the first of them is too large.

For given reads the objective is convex in z, and for given z convex in the reads: they take turns. The bound on all
plans is one at the last z, which all reads share.
"""

import numpy as np
from scipy.optimize import minimize_scalar

from ecjax.machine_code import njit
from ecjax.planning.trace.data import Traced
from ecjax.planning.trace.plan import even_spread, relaxation
from ecjax.planning.trace.relax import Point, Relaxed, stored_with, work_of
from ecjax.traffic.lindley import forward
from ecjax.traffic.penalties import above

_LEAST_Z = -100.0  # services and workloads below it: of reads of one chunk the best z is minus infinity
_ROUNDS = 4
_PART = 0.25  # of the gap: what another z must gain
_DEEP = 2.0  # times the workload of a steady queue


def at_z(data: Traced, z: float) -> Traced:
    """The same problem with another z.

    Args:
        data: with an order-statistic form.
        z: s.
    """
    shift = data.penalty.shift + (data.offset - z)
    return data._replace(penalty=data.penalty._replace(shift=shift), offset=z)


def best_z(data: Traced, probabilities: np.ndarray, stored: np.ndarray) -> float:
    """The z of the least objective at a plan, or between plans, s.

    Args:
        data: with an order-statistic form.
        probabilities: (R, m).
        stored: (R, m), 0 to 1.
    """
    work = work_of(data, probabilities, stored)
    workload = np.empty_like(work)

    def value(z: float) -> float:
        there = at_z(data, z)
        return z + float(data.weight @ forward(data.bins.width, work, data.c, there.penalty, workload))

    value(data.offset)
    slowest = float(data.penalty.shift.max() + data.offset)
    most = float(workload.max())
    # the latest of k chunks of a mean and a deviation is at most sqrt(k - 1) deviations late, and z before that
    longest = (1 + np.sqrt(data.rows.hot.max())) * (10 * slowest + most)
    bounds = _LEAST_Z * (slowest + most), longest
    least = minimize_scalar(value, bounds=bounds, method="bounded", options={"xatol": 1e-5 * longest})
    return float(least.x)


def relaxation_with_z(data: Traced, gap: float) -> tuple[float, Relaxed]:
    """Reads in any proportion and z in turn, until another z gains little: z (s) and the relaxation there.

    Args:
        data: with an order-statistic form.
        gap: relative distance to the bound that plans may have.
    """
    even = even_spread(data)
    z = best_z(data, even, stored_with(data, even))
    start = None
    for left in range(_ROUNDS - 1, -1, -1):
        relaxed = relaxation(at_z(data, z), gap, start)
        other = best_z(data, relaxed.probabilities, relaxed.stored)
        gained = _objective(data, z, relaxed) - _objective(data, other, relaxed)
        if not left or gained <= _PART * gap * relaxed.point.objective:
            break
        z, start = other, relaxed.probabilities
    return z, relaxed


def _objective(data: Traced, z: float, relaxed: Relaxed) -> float:
    point, there = relaxed.point, at_z(data, z)
    value = forward(data.bins.width, point.work, data.c, there.penalty, np.empty_like(point.work))
    return z + float(data.weight @ value)


@njit()
def _above_all(penalty, workload, result):
    """h(X) - h(0) of every bin and node, to ``result`` (B, m)."""
    for b in range(len(workload)):
        for j in range(workload.shape[1]):
            result[b, j] = above(penalty, j, workload[b, j])


def deep_share(data: Traced, point: Point) -> float:
    """Part of what ``ORDER`` counts in bins whose queue is far from steady: behind more work than nodes can serve.

    There the variance of a workload is taken too large, and the bound by up to a factor of 1 + sqrt(k - 1).

    Args:
        data: with an order-statistic form.
        point: at a plan.
    """
    width, workload, c = data.bins.width[:, None], point.workload, data.c
    load = point.work / width
    steady = np.where(load < 1, c * load / np.where(load < 1, 1 - load, 1.0), 0.0)
    costs = np.empty_like(workload)
    _above_all(data.penalty, workload, costs)
    costs *= data.weight * width * workload / (workload + c)
    total = float(costs.sum())
    return float(costs[(load >= 1) | (workload > _DEEP * steady + c)].sum()) / total if total > 0 else 0.0

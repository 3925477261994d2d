"""A small dense linear program that grows by columns, solved to points near its central path.

    minimise cost . x   subject to   rows x = right,  x >= 0.

Multipliers of a vertex jump when a column comes in; those near the central path move little, which is what column
generation wants of prices (Gondzio, Gonzalez-Brevis and Munari, New developments in the primal-dual column generation
technique, European Journal of Operational Research 224 (2013) 41-51).
"""

import numpy as np
from scipy import linalg

_MOST_STEPS = 60
_FEASIBLE = 1e-6
_TO_BOUNDARY = 0.95
_LEAST_CENTRING = 0.1
_ROUNDING = 1e-13
_LEAST_START = 1e-4  # of a new column's weight, so that the method starts inside


class LinearMaster:
    """The program and its last point.

    Args:
        right: (M,).
    """

    def __init__(self, right: np.ndarray) -> None:
        self.right = right
        self.rows = np.zeros((len(right), 0))
        self.cost = np.zeros(0)
        self.x = np.zeros(0)  # weights
        self.slack = np.zeros(0)  # reduced costs
        self.multipliers = np.zeros(len(right))

    def add(self, rows: np.ndarray, cost: np.ndarray) -> None:
        """More columns, (M, n) and (n,), before the first ``start`` or while going on."""
        self.rows = np.hstack([self.rows, rows])
        self.cost = np.concatenate([self.cost, cost])

    def start(self, x: np.ndarray, multipliers: np.ndarray, least: float) -> None:
        """Start from positive weights and from multipliers, with reduced costs of at least ``least``."""
        self.x, self.multipliers = x, multipliers
        self.slack = np.maximum(self.cost - multipliers @ self.rows, least)

    def go_on(self, gap: float, changed: int) -> None:
        """Bring in the columns added since, and the first ``changed`` columns whose costs are others now."""
        mean = gap / len(self.cost)
        reduced = self.cost - self.multipliers @ self.rows
        new = np.maximum(np.abs(reduced[len(self.x) :]), 10 * mean)
        self.x = np.maximum(np.concatenate([self.x, mean / new]), _LEAST_START)
        self.slack = np.concatenate([self.slack, new])
        self.slack[:changed] = np.maximum(reduced[:changed], 10 * mean)

    def centre(self, gap: float) -> float:
        """Steps until the gap between primal and dual is below ``gap``; the primal value.

        Raises:
            scipy.linalg.LinAlgError: where rounding ends the method.
        """
        a, n = self.rows, len(self.cost)
        for _ in range(_MOST_STEPS):
            x, s = self.x, self.slack
            short, residual = self.right - a @ x, self.cost - self.multipliers @ a - s
            open_ = x @ s
            if open_ <= gap and np.abs(short).max() <= _FEASIBLE and x @ np.abs(residual) <= 0.1 * gap:
                break
            solve = _solver(a, x / s, short, residual)
            # Mehrotra's predictor, then a step towards the central path that corrects it
            dx, _, ds = solve(-s)
            length = min(1.0, _length(x, dx)), min(1.0, _length(s, ds))
            after = (x + length[0] * dx) @ (s + length[1] * ds)
            goal = max((after / open_) ** 3 * open_, _LEAST_CENTRING * open_, 0.5 * gap) / n
            dx, dy, ds = solve((goal - dx * ds * min(length) ** 2) / x - s)
            primal, dual = (min(1.0, _TO_BOUNDARY * each) for each in (_length(x, dx), _length(s, ds)))
            self.x = x + primal * dx
            self.multipliers = self.multipliers + dual * dy
            self.slack = s + dual * ds
        return float(self.cost @ self.x)


def _solver(a: np.ndarray, ratio: np.ndarray, short: np.ndarray, residual: np.ndarray):
    """Newton steps (dx, dy, ds) for a wanted ds + (s/x) dx, by the normal equations."""
    normal = (a * ratio) @ a.T
    scale = np.sqrt(np.diag(normal))
    factors = linalg.cho_factor(normal / scale[:, None] / scale + _ROUNDING * np.eye(len(scale)))

    def solve(target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        dy = linalg.cho_solve(factors, (short + a @ (ratio * (residual - target))) / scale) / scale
        ds = residual - dy @ a
        return ratio * (target - ds), dy, ds

    return solve


def _length(x: np.ndarray, change: np.ndarray) -> float:
    """How many changes fit before an entry of x is 0."""
    return 1 / max(float(np.max(-change / x)), 1e-12)

"""The node half of the lower bound: the least Lagrangian of every node at given prices."""

import numpy as np

from ecjax.optimize.certified import one_size
from ecjax.optimize.certified.data import Rows, Service
from ecjax.optimize.certified.relax import Prices


class NodeMinima:
    """Sums over nodes of min over loads of [latency - prices . loads], never above the true ones."""

    def __init__(self, service: Service, rows: Rows, exact, tol: float) -> None:
        self.service, self.rows, self.tol = service, rows, tol
        self.plain = len(service.size) == 1 and not rows.written
        if len(rows.allowed):
            reads = np.repeat(np.arange(rows.count), np.diff(rows.start))
            self.most = rows.read @ rows.allowed[reads]
        else:
            self.most = np.full(len(service.mean), rows.read.sum())

    def sums(self, prices: Prices, z: np.ndarray) -> np.ndarray:
        """The sum at every z, (Z,) s; it falls with z."""
        service = self.service
        if not self.plain:
            return np.full(len(z), -np.inf)
        result = np.empty((len(z), len(service.mean)))
        one_size.least(
            np.ascontiguousarray(service.moments[:, :, 0]),
            np.ascontiguousarray(service.mean[:, 0]),
            np.ascontiguousarray(service.variance[:, 0]),
            service.background,
            self.most * (1 + 1e-12),
            np.ascontiguousarray(prices.read[:, 0]),
            z,
            service.rate,
            service.alone,
            result,
        )
        return result.sum(axis=1)

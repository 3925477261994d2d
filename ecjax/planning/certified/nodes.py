"""The node half of the lower bound: the least Lagrangian of every node at given prices."""

import numpy as np

from ecjax.planning.certified import one_size
from ecjax.planning.certified.data import Rows, Service, has_one_size
from ecjax.planning.certified.node_bound import Coefficients, ShareOut, cell_minima, node_minima
from ecjax.planning.certified.relax import Prices

# Cells of levels that the search for one node's minimum may open; what it leaves shows as a gap.
_WORK = 300


class NodeMinima:
    """Sums over nodes of min over loads of [latency - prices . loads], never above the true ones.

    Args:
        service: nodes.
        rows: placement rows; they limit how much of each chunk size a node can get.
        levels: (m, 4) cells of levels of the nodes' waits outside of which nothing counts, as in ``node_minima``; not
            for files with one chunk size.
        share_out: the nodes, to threads; what comes out does not depend on it.
    """

    def __init__(
        self,
        service: Service,
        rows: Rows,
        levels: np.ndarray | None = None,
        share_out: ShareOut | None = None,
    ) -> None:
        self.service = service
        self.levels, self.share_out = levels, share_out
        self.plain = has_one_size(service, rows)
        self.cells = _Cells(service, rows, levels, share_out) if len(rows.true_size.edge) else None
        sizes = len(service.size)
        row = np.repeat(np.arange(rows.number), np.diff(rows.start))
        may = rows.allowed[row].T if len(rows.allowed) else np.ones((1, 1), bool)
        self.read, self.written = (
            # a little more, so that rounding does not make them less than the sums of the choices
            np.stack([np.bincount(rows.grid, rate * node, sizes) for node in may]) * (1 + 1e-12)
            for rate in (rows.read, rows.write)
        )
        if not len(rows.allowed):
            self.read, self.written = (
                np.repeat(each, len(service.mean), axis=0) for each in (self.read, self.written)
            )
        self.writes = rows.written

    def sums(self, prices: Prices, z: np.ndarray, tol: float) -> np.ndarray:
        """The sum at every z, (Z,) s; it falls with z. Each node's minimum is wanted to ``tol`` s."""
        service = self.service
        if self.plain:
            return self._of_one_size(prices, z)
        if self.cells:
            return self.cells.minima(prices, z, tol).sum(axis=1)
        most, price = (self.written, prices.write) if self.writes else (None, None)
        bounds = node_minima(
            service, self.read, prices.read, z, tol, _WORK, most, price, None, self.levels, self.share_out
        )
        return bounds[0].sum(axis=1)

    def _of_one_size(self, prices: Prices, z: np.ndarray) -> np.ndarray:
        service, result = self.service, np.empty((len(z), len(self.service.mean)))
        nodes = (
            np.ascontiguousarray(service.moments[:, :, 0]),
            np.ascontiguousarray(service.mean[:, 0]),
            np.ascontiguousarray(service.variance[:, 0]),
            service.background,
            np.ascontiguousarray(self.read[:, 0]),
            np.ascontiguousarray(prices.read[:, 0]),
        )

        def part(first: int, last: int) -> None:
            one_size.least(first, last, *nodes, z, service.rate, service.alone, result)

        if self.share_out is None:
            part(0, len(service.mean))
        else:
            self.share_out(len(service.mean), part)
        return result.sum(axis=1)

    def states(self, prices: Prices, z: float, tol: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Every node's minimum at one z with the loads of grid sizes that are best there.

        Returns:
            lower bounds of the minima (m,) s as in ``sums``, the latency (m,) s of the loads, and the loads (m, X) 1/s.
        """
        service, at = self.service, np.array([z])
        kinds = 2 if self.writes else 1
        rates = np.empty((1, kinds, *prices.read.shape))
        most, price = (self.written, prices.write) if self.writes else (None, None)
        bounds = node_minima(
            service, self.read, prices.read, at, tol, _WORK, most, price, rates, self.levels, self.share_out
        )
        low, value = bounds[0][0], bounds[1][0]
        by_kind = np.stack([prices.read, prices.write][:kinds])
        latency = value + np.einsum("kmc,kmc->m", rates[0], by_kind)
        if self.cells:
            low = self.cells.minima(prices, at, tol)[0]
        return low, latency, np.hstack(rates[0])


class _Cells:
    """Chunk sizes and intervals of them, finer than the grid, where there are more sizes than the grid has.

    What rows pay is linear between grid sizes, and so are prices at the ends of the intervals.
    """

    def __init__(
        self, service: Service, rows: Rows, levels: np.ndarray | None, share_out: ShareOut | None
    ) -> None:
        true, edge = rows.true_size, rows.true_size.edge
        rates = np.hstack([true.between, true.on])
        requested = rates.sum(axis=0) > 0
        # sizes at the two ends of every class
        self.ends = np.stack([np.append(edge[:-1], edge), np.append(edge[1:], edge)])[:, requested]
        # their places between grid sizes
        self.upper = np.clip(np.searchsorted(service.size, self.ends), 1, len(service.size) - 1)
        low, high = service.size[self.upper - 1], service.size[self.upper]
        self.part = (self.ends - low) / (high - low)
        middle = self.ends.mean(axis=0)
        coefficients = true.coefficients
        powers = np.stack([middle**p for p in range(4)])
        moments = np.einsum("npm,pc->nmc", coefficients, powers)
        served = np.einsum("npm,pc->nmc", true.served[:2], powers)
        on_grid = np.einsum("npm,pc->nmc", true.served[:2], np.stack([service.size**p for p in range(4)]))
        connect = service.mean - on_grid[0], service.variance - (on_grid[1] - on_grid[0] ** 2)
        self.service = service._replace(
            size=middle,
            moments=np.ascontiguousarray(moments),
            mean=served[0] + connect[0][:, :1],
            variance=np.maximum(served[1] - served[0] ** 2, 0) + np.maximum(connect[1][:, :1], 0),
        )
        self.coefficients = Coefficients(coefficients, true.served)
        m = len(service.mean)
        self.read, self.written = (np.tile(rate * (1 + 1e-12), (m, 1)) for rate in rates[:, requested])
        self.writes = rows.written
        self.levels, self.share_out = levels, share_out

    def minima(self, prices: Prices, z: np.ndarray, tol: float) -> np.ndarray:
        by_end = [self._at_ends(price) for price in (prices.read, prices.write)]
        most, price = (self.written, by_end[1]) if self.writes else (None, None)
        return cell_minima(
            self.service,
            self.coefficients,
            self.ends,
            self.read,
            by_end[0],
            z,
            tol,
            _WORK,
            most,
            price,
            self.levels,
            self.share_out,
        )[0]

    def _at_ends(self, prices: np.ndarray) -> np.ndarray:
        """Prices (2, m, classes) at the ends, from those of grid sizes, (m, C)."""
        below, above = prices[:, self.upper - 1], prices[:, self.upper]
        return np.ascontiguousarray((below + self.part * (above - below)).transpose(1, 0, 2))

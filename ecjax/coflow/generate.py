"""Reads of erasure-coded files, generated: the workload of Table I of the D-Target paper, and of racks of servers."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from ecjax.coflow.workload import Workload, reads
from ecjax.errors import UserError

_BLOCK = 4096  # reads whose servers are drawn at a time,
_MOST_DRAWN = 2**24  # or fewer, so that there are no more random numbers than these


@dataclass(frozen=True)
class ReadSettings:
    """What is generated; the defaults are those of Table I of the D-Target paper.

    The paper leaves open: numbers of servers and clients, laws of sizes and arrivals, placement. Its alpha (1.5) is
    ignored, since it contradicts its own definition.

    Attributes:
        requests: reads, each of a file of its own.
        servers: sending ports.
        clients: receiving ports.
        racks: of the servers, all of one size; None: servers are not in racks.
        min_bytes: smallest file.
        max_bytes: largest file.
        duration_s: arrivals are uniform from 0 to this.
        n: chunks kept of each file.
        k: chunks that a read takes.
        k_range: least and largest k; every file draws its own then, uniformly, and n and k are not used.
        n_per_k: with ``k_range``, n = n_per_k k to the nearest whole number, halves up.
        share_at_zero: share of the reads that arrives at t = 0 instead.
    """

    requests: int = 512
    servers: int = 60
    clients: int = 60
    racks: int | None = None
    min_bytes: float = 1e5
    max_bytes: float = 1e10
    duration_s: float = 1000.0
    n: int = 8
    k: int = 4
    k_range: tuple[int, int] | None = None
    n_per_k: float = 1.5
    share_at_zero: float = 0.0

    def stored(self, k: np.ndarray) -> np.ndarray:
        """Chunks kept of files with these k, int64, same shape."""
        if self.k_range is None:
            return np.full(np.shape(k), self.n)
        return np.floor(self.n_per_k * k + 0.5).astype(np.int64)

    def check(self) -> None:
        """Refuse what cannot be generated.

        Raises:
            UserError: naming the setting.
        """
        for name in ("requests", "servers", "clients", "n", "k", "racks"):
            value = getattr(self, name)
            if not (_is_whole(value) and value >= 1) and not (name == "racks" and value is None):
                raise UserError(f"{name}: found {value}; allowed: a whole number of at least 1")
        for name, least in (("min_bytes", 0.0), ("max_bytes", 0.0), ("duration_s", None), ("n_per_k", None)):
            value = getattr(self, name)
            if not (_is_number(value) and (value >= 0 if least is None else value > least)):
                allowed = "at least 0" if least is None else "above 0"
                raise UserError(f"{name}: found {value}; allowed: a finite number {allowed}")
        if self.min_bytes > self.max_bytes:
            raise UserError(
                f"min_bytes: found {self.min_bytes:g}; allowed: at most max_bytes={self.max_bytes:g}"
            )
        if not (_is_number(self.share_at_zero) and 0 <= self.share_at_zero <= 1):
            raise UserError(f"share_at_zero: found {self.share_at_zero}; allowed: a number from 0 to 1")
        if self.racks is not None and self.servers % self.racks:
            raise UserError(
                f"racks: found {self.racks}; allowed: a divisor of servers={self.servers}, as racks are of one size"
            )
        if self.k_range is None:
            self._check_code(self.n, self.k, f"k={self.k}")
            return
        bounds = self.k_range
        pair = isinstance(bounds, list | tuple) and len(bounds) == 2 and all(map(_is_whole, bounds))
        if not (pair and 1 <= bounds[0] <= bounds[1]):
            raise UserError(f"k_range: found {bounds}; allowed: two whole numbers, 1 <= least <= most")
        for k in bounds:
            self._check_code(int(self.stored(np.array(k))), k, f"k={k} with n_per_k={self.n_per_k:g}")

    def _check_code(self, n: int, k: int, place: str) -> None:
        if not k <= n <= self.servers:
            raise UserError(f"{place}: found n={n}; allowed: from k={k} to servers={self.servers}")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def generate(settings: ReadSettings, seed: int) -> Workload:
    """Reads drawn at random; server j is sending port j, client j receiving port j.

    File sizes are log-uniform, arrivals and clients uniform; chunks are on different servers, all sets of them alike,
    and with racks on different racks while they last. Each of these has random numbers of its own: with one seed the
    same reads go to the same clients for every n, k and ``share_at_zero``; a larger n adds servers to those that a
    smaller one has, and a larger ``share_at_zero`` moves further reads to 0.

    The candidates of a read are in the order in which they were drawn, so that ties that go to the first favour none.

    Raises:
        UserError: a setting is wrong.
    """
    settings.check()
    # children of one seed differ from every generator that is made of a seed alone
    children = np.random.SeedSequence(seed).spawn(6)
    sizes, arrivals, first, clients, placement, codes = map(np.random.default_rng, children)
    count = settings.requests
    size = np.exp(sizes.uniform(np.log(settings.min_bytes), np.log(settings.max_bytes), count))
    arrival = np.sort(arrivals.uniform(0.0, settings.duration_s, count))
    at_zero = first.permutation(count) < round(settings.share_at_zero * count)
    client = clients.integers(settings.clients, size=count)
    k = np.full(count, settings.k)
    if settings.k_range is not None:
        k = codes.integers(settings.k_range[0], settings.k_range[1], size=count, endpoint=True)
    n = settings.stored(k)
    servers = _orders(settings, int(n.max()), placement)
    arrival[at_zero] = 0.0
    order = np.argsort(arrival, kind="stable")
    stored = np.arange(servers.shape[1]) < n[order, None]
    return reads(
        arrival[order],
        client[order],
        (size / k)[order],
        k[order],
        np.concatenate([[0], np.cumsum(n[order])]),
        servers[order][stored],
    )


def _orders(settings: ReadSettings, most: int, random: np.random.Generator) -> np.ndarray:
    """The first ``most`` servers in a random order of all, for every read, (requests, most); n of them keep its chunks.

    With racks, rank r of every rack comes before rank r + 1 of any.
    """
    blocks = []
    block = max(1, min(_BLOCK, _MOST_DRAWN // settings.servers))
    for begin in range(0, settings.requests, block):
        count = min(block, settings.requests - begin)
        order = np.argsort(random.random((count, settings.servers)), axis=1)
        if settings.racks is not None:
            turn = np.argsort(random.random((count, settings.racks)), axis=1)
            order = _rack_by_rack(order, turn, settings.servers // settings.racks)
        blocks.append(order[:, :most].copy())  # a view would keep the whole order
    return np.concatenate(blocks)


def _rack_by_rack(order: np.ndarray, turn: np.ndarray, per_rack: int) -> np.ndarray:
    """Each row of ``order`` (reads, servers) anew: a server of every rack by ``turn`` (reads, racks), and so on."""
    rack = order // per_rack
    # grouped by rack the servers of one are in the order drawn: their rank is the place among them
    rank = np.empty_like(rack)
    by_rack = np.argsort(rack, axis=1, kind="stable")
    np.put_along_axis(rank, by_rack, np.arange(order.shape[1])[None] % per_rack, axis=1)
    place = rank * turn.shape[1] + np.take_along_axis(turn, rack, axis=1)
    return np.take_along_axis(order, np.argsort(place, axis=1), axis=1)

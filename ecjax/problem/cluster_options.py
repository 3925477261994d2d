"""Options of the built-in cluster. Imports nothing heavy."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from ecjax.errors import UserError
from ecjax.options import Number, Series, Whole, Words, option

_POSITIVE, _NOT_NEGATIVE = Series(Number(above=0)), Series(Number(least=0))


class Hardware(NamedTuple):
    """What the options of a cluster are where they are not set, a number per site each.

    Attributes:
        slowdown: service times as multiples of those of the hardware.
        dollars_per_tb: price of 10^12 bytes for 30 days.
        connect_mean_s: mean connection delay.
    """

    slowdown: tuple[float, ...]
    dollars_per_tb: tuple[float, ...]
    connect_mean_s: tuple[float, ...]


# Racks of one data centre, the newest first: object stores sell a terabyte and month for 10 to 20 dollars.
# The testbed of the JLCM paper: sites of a wide area network; 2, 1.5 and 1 dollars per chunk of 12.5 MB.
HARDWARE = {
    "disk": Hardware((1.0, 1.3, 1.6), (20.0, 14.0, 10.0), (0.0005, 0.001, 0.002)),
    "tahoe": Hardware((1.0, 1.3, 1.6), (160e3, 120e3, 80e3), (0.01, 0.04, 0.08)),
}


@dataclass(frozen=True)
class ClusterOptions:
    """The built-in cluster: hosts in three racks, files in classes."""

    hardware: str = option(
        "disk",
        "disk: hosts with hard disks in racks, 4 MiB chunks in 35 ms; tahoe: the testbed of the JLCM paper, sites that "
        "serve 12.5 MB chunks in 13.9 s",
        Words(*HARDWARE),
    )
    files: int = option(1000, "number of files, divided evenly over the classes", Whole(1, 10**8))
    bytes: list[float] | None = option(
        None,
        "file size in bytes: one number, or the two ends of a uniform range; default: k chunks of 4 MiB (tahoe: "
        "12.5 MB)",
        Series(Number(above=0), most=2),
    )
    sizes: list[float] | None = option(
        None, "file sizes in bytes that the files of each class take in turn; instead of bytes", _POSITIVE
    )
    k: list[int] = option([6, 7, 6, 4], "k of each class", Series(Whole(1)))
    n: list[int] | None = option(
        None,
        "chunks of each file by class, on random nodes, as a current placement (plan=none replays it); default: no "
        "file is placed",
        Series(Whole(1)),
    )
    rates: list[float] = option(
        [354.0, 236.0, 236.0, 354.0], "read rates of the classes, as ratios", _POSITIVE
    )
    load: float = option(
        0.6, "largest node load when every node serves the same number of chunks", Number(above=0, below=1)
    )
    grouped: bool = option(False, "one placement per class (a group) instead of one per file")
    nodes_per_site: int = option(4, "nodes at each of the sites (racks)", Whole(1, 10**5))
    slowdown: list[float] | None = option(
        None,
        "service times of the sites, as multiples of those of the hardware; a site per number; default: 1, 1.3, 1.6",
        _POSITIVE,
    )
    dollars_per_tb: list[float] | None = option(
        None,
        "price of 10^12 bytes for 30 days, by site; default: 20, 14, 10 (tahoe: 160e3, 120e3, 80e3: 2, 1.5 and 1 "
        "dollars per chunk)",
        _POSITIVE,
    )
    connect_mean_s: list[float] | None = option(
        None,
        "mean connection delay, by site; deviation a fifth of it; default: 0.0005, 0.001, 0.002 (tahoe: 0.01, 0.04, "
        "0.08)",
        _NOT_NEGATIVE,
    )
    seed: int = option(0, "seed of the file sizes", Whole(0, 2**63 - 1))

    def completed(self) -> "ClusterOptions":
        """These options, if they go together, with the defaults of the hardware.

        Raises:
            UserError: they do not go together.
        """
        if self.files < len(self.k):
            raise UserError(
                f"cluster.files: found {self.files}; allowed: at least {len(self.k)}, one file per class"
            )
        if self.bytes is not None and self.sizes is not None:
            raise UserError(
                f"cluster.sizes: found cluster.bytes={self.bytes} too; allowed: one of both, sizes in turn or bytes"
            )
        slowdown, price, connect = (list(values) for values in self.of_sites)
        options = replace(self, slowdown=slowdown, dollars_per_tb=price, connect_mean_s=connect)
        for name, count, each in (
            ("rates", len(self.k), "one per class"),
            ("dollars_per_tb", len(slowdown), "one per site"),
            ("connect_mean_s", len(slowdown), "one per site"),
        ):
            values = getattr(options, name)
            if len(values) != count:
                raise UserError(f"cluster.{name}: found {values}; allowed: {count} numbers, {each}")
        if self.n is not None:
            most = len(slowdown) * self.nodes_per_site
            if len(self.n) != len(self.k) or not all(
                k <= n <= most for k, n in zip(self.k, self.n, strict=True)
            ):
                raise UserError(
                    f"cluster.n: found {self.n}; allowed: {len(self.k)} numbers, one per class, from its k to {most}"
                )
        return options

    @property
    def of_sites(self) -> Hardware:
        """What differs by site; where it is not set, that of the hardware."""
        default = HARDWARE[self.hardware]
        return Hardware(
            tuple(self.slowdown or default.slowdown),
            tuple(self.dollars_per_tb or default.dollars_per_tb),
            tuple(self.connect_mean_s or default.connect_mean_s),
        )

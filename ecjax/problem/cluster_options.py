"""Options of the built-in cluster. Imports nothing heavy."""

from dataclasses import dataclass

from ecjax.errors import UserError
from ecjax.options import Number, Series, Whole, option

_POSITIVE, _NOT_NEGATIVE = Series(Number(above=0)), Series(Number(least=0))


@dataclass(frozen=True)
class ClusterOptions:
    """The built-in cluster: nodes at three sites, files in classes."""

    files: int = option(1000, "number of files, divided evenly over the classes", Whole(1, 10**8))
    bytes: list[float] | None = option(
        None,
        "file size in bytes: one number, or the two ends of a uniform range; default: k chunks of 12.5 MB",
        Series(Number(above=0), most=2),
    )
    sizes: list[float] | None = option(
        None, "file sizes in bytes that the files of each class take in turn; instead of bytes", _POSITIVE
    )
    k: list[int] = option([6, 7, 6, 4], "k of each class", Series(Whole(1)))
    rates: list[float] = option(
        [354.0, 236.0, 236.0, 354.0], "read rates of the classes, as ratios", _POSITIVE
    )
    load: float = option(
        0.6, "largest node load when every node serves the same number of chunks", Number(above=0, below=1)
    )
    grouped: bool = option(False, "one placement per class (a group) instead of one per file")
    nodes_per_site: int = option(4, "nodes at each of the sites", Whole(1, 10**5))
    slowdown: list[float] = option(
        [1.0, 1.3, 1.6],
        "service times of the sites, as multiples of 13.9 s per 12.5 MB; a site per number",
        _POSITIVE,
    )
    chunk_price: list[float] = option(
        [2.0, 1.5, 1.0], "dollars per 12.5 MB chunk and 30 days, by site", _POSITIVE
    )
    connect_mean_s: list[float] = option(
        [0.01, 0.04, 0.08], "mean connection delay, by site; deviation a fifth of it", _NOT_NEGATIVE
    )
    seed: int = option(0, "seed of the file sizes", Whole(0, 2**63 - 1))

    def completed(self) -> "ClusterOptions":
        """These options, if they go together.

        Raises:
            UserError: they do not.
        """
        if self.files < len(self.k):
            raise UserError(
                f"cluster.files: found {self.files}; allowed: at least {len(self.k)}, one file per class"
            )
        if self.bytes is not None and self.sizes is not None:
            raise UserError(
                f"cluster.sizes: found cluster.bytes={self.bytes} too; allowed: one of both, sizes in turn or bytes"
            )
        for name, count in (
            ("rates", self.k),
            ("chunk_price", self.slowdown),
            ("connect_mean_s", self.slowdown),
        ):
            values = getattr(self, name)
            if len(values) != len(count):
                words = "one per class" if name == "rates" else "one per site"
                raise UserError(f"cluster.{name}: found {values}; allowed: {len(count)} numbers, {words}")
        return self

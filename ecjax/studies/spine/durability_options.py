"""Options of every job that judges durability: what there is to fail, and how it is repaired. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any

from ecjax.options import Number, Whole, Words, option


def judged(options: "DurabilityOptions") -> bool:
    """Whether the run depends on durability."""
    return options.judges_durability


def _judged_by_nodes(options: "DurabilityOptions") -> bool:
    return options.judges_durability and options.reads_nodes


def _number(default: float, text: str, rule: Number) -> Any:
    return option(default, text, rule, identifies=judged)


@dataclass(frozen=True)
class DurabilityOptions:
    """The cluster that keeps the data, what fails in it, and how fast that is repaired."""

    domains: int | None = option(
        None,
        "failure domains, hosts or racks, over which chunks are spread; default: as many as nodes has, else 12",
        Whole(2, 10**6),
        identifies=judged,
    )
    disks: int | None = option(
        None,
        "disks of a domain; default: with domain=site its nodes, else 10",
        Whole(1, 10**5),
        identifies=judged,
    )
    disk_bytes: float = _number(16e12, "size of a disk", Number(above=0))
    user_bytes: float = _number(5e14, "data to keep, without what codes add", Number(above=0))
    groups: int = option(
        1024, "placement groups: stripes on the same disks", Whole(1, 10**9), identifies=judged
    )
    afr: float = _number(0.015, "probability that a disk fails within a year", Number(above=0, below=1))
    domain_losses_per_year: float = _number(
        0.002, "of one domain, for good, with all its disks", Number(least=0, most=100)
    )
    repair_bytes_per_s: float = _number(1e8, "of one disk for repairs, read and written", Number(above=0))
    cluster_bytes_per_s: float = _number(6e9, "of the cluster for repairs, read and written", Number(above=0))
    detect_s: float = _number(600.0, "until a loss is detected", Number(least=0))
    scrub_days: float = _number(14.0, "between two scrubs of a disk", Number(above=0))
    latent_errors_per_year: float = _number(
        0.05, "of a disk, which nobody sees until a scrub or a repair reads them", Number(least=0)
    )
    bit_error_rate: float = _number(1e-15, "of reading: errors per bit", Number(least=0, below=1))
    domain: str = option(
        "node",
        "failure domain that the nodes table has: every node, or site: the nodes of a site are its disks",
        Words("node", "site"),
        identifies=_judged_by_nodes,
    )

    @property
    def judges_durability(self) -> bool:
        """Whether durability is asked for."""
        return True

    @property
    def reads_nodes(self) -> bool:
        """Whether there is a table of nodes."""
        return True

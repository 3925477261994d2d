"""Options of the built-in cluster."""

from dataclasses import dataclass
from typing import Any

from ecjax.studies.spine.option import option


@dataclass
class ClusterOptions:
    """The built-in cluster: nodes at three sites, files in classes."""

    files: int = option(1000, "number of files, divided evenly over the classes")
    bytes: Any = option(
        None,
        "file size in bytes: one number, or the two ends of a uniform range; default: k chunks of 12.5 MB",
    )
    sizes: Any = option(
        None, "file sizes in bytes that the files of each class take in turn; instead of bytes"
    )
    k: Any = option([6, 7, 6, 4], "k of each class")
    rates: Any = option([354.0, 236.0, 236.0, 354.0], "read rates of the classes, as ratios")
    load: float = option(0.6, "largest node load when every node serves the same number of chunks")
    grouped: bool = option(False, "one placement per class (a group) instead of one per file")
    nodes_per_site: int = option(4, "nodes at each of the sites")
    slowdown: Any = option(
        [1.0, 1.3, 1.6], "service times of the sites, as multiples of 13.9 s per 12.5 MB; a site per number"
    )
    chunk_price: Any = option([2.0, 1.5, 1.0], "dollars per 12.5 MB chunk and 30 days, by site")
    connect_mean_s: Any = option(
        [0.01, 0.04, 0.08], "mean connection delay, by site; deviation a fifth of it"
    )
    seed: int = option(0, "seed of the file sizes")

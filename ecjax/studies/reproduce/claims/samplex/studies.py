"""Studies behind the figures of the SampleX paper, and the reads that some of them replay.

The near-optimal scheme is replayed as policy ``near_optimal_dp``: its plans are worth what those of ``near_optimal``,
the paper's own way to find them, are, and latencies are the same. Times to decide are another matter (``decisions``).

Generated reads follow Zipf's law, whose exponent cannot make the paper's hits: 20.88 % of the chunks at C = 100, K = 6
and 63.02 to 89.41 % at C = 800 to 4000, K = 15. A plateau as in traces of blocks can: ``SHARES``, read off those hits
and nothing else.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ecjax.studies.reproduce.claim import Study
from ecjax.studies.reproduce.options import FULL

SHARES = ((50, 0.61), (217, 0.284), (733, 0.106))  # items, and their share of the reads
WHY_PLATEAU = (
    "the paper's traces of blocks are not in the project: popularity is a plateau that its printed hit ratios allow "
    "(50 items have 61 % of the reads, 217 others 28.4 %, 733 others 10.6 %)"
)
_RATE_PER_S = 100.0
_BYTES = 6e6


def plateau_rates() -> np.ndarray:
    """Share of the reads of each item, (1000,)."""
    return np.concatenate([np.full(items, share / items) for items, share in SHARES])


def plateau_reads(folder: Path, size: str) -> tuple[str, ...]:
    """Writes a log of reads of a plateau, 100,000 (full: 600,000), and names it."""
    count = 600_000 if size == FULL else 100_000
    rng = np.random.default_rng(0)
    rates = plateau_rates()
    table = {
        "request_id": np.arange(count),
        "arrival_s": np.cumsum(rng.exponential(1 / _RATE_PER_S, count)),
        "file_id": rng.choice(len(rates), count, p=rates),
        "op": ["read"] * count,
        "bytes": np.full(count, _BYTES),
    }
    path = folder / "reads.parquet"
    pq.write_table(pa.table(table), path)
    return f"trace={path}", "format=table"


def _sampled(name: str, *words: str) -> Study:
    """Plans of sampled partitions, and of all of them."""
    return Study(
        name,
        ("cache", "partitions=[1,2,3,4,5,10,20]", *words),
        small=("rounds=200",),
        full=("rounds=1000",),
        inputs=plateau_reads,
    )


def _plateau(name: str, *words: str) -> Study:
    """Replays of reads of a plateau by the policies of Figs. 8 to 10."""
    policies = "policy=[optimal_static,samplex_static,near_optimal_dp,samplex,agar,exact_periodic]"
    return Study(
        name,
        ("cache", policies, "half_life_s=1800", *words),
        small=("samples=[1,5,20]",),
        full=("samples=[1,2,3,4,5,10,20]",),
        inputs=plateau_reads,
    )


def _swept(number: int) -> Study:
    """A sweep of the project's experiment of a figure."""
    policies = "policy=[samplex_static,near_optimal_dp,samplex]"
    return Study(
        f"fig{number}", ("cache", f"experiment=samplex_fig{number}", policies), small=("reads=60000",)
    )


STUDIES = (
    _sampled("sampled_6", "capacity=[40,100]", "k=6"),
    _sampled("sampled_8", "capacity=100", "k=8"),
    _plateau("fig8", "capacity=100", "k=6"),
    _plateau("fig9", "capacity=1000", "k=15"),
    *(_swept(number) for number in (11, 12, 13, 14)),
    Study(
        "fig15",
        ("cache", "experiment=samplex_fig15", "policy=[near_optimal_dp,samplex]"),
        small=("reads=10000", "buckets=5"),
    ),
)

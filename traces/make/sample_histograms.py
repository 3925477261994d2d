"""The sample histograms in ``traces/histograms``, generated: ``python traces/make/sample_histograms.py``."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SEED, DISKS, READS = 20240917, 12, 4000
LE_S = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24)  # upper ends of buckets
_QUANT_NS, _QUANT_BYTES, _BUCKETS = 100_000, 512, 32


def services(disk: int) -> np.ndarray:
    """Service times (s) of reads of 1 MiB: positioning of a gamma law, and transfer; a third of the disks is slow."""
    random = np.random.default_rng([SEED, disk])
    return (random.gamma(4.0, 0.002, READS) + 2**20 / 180e6) * (1.5 if disk >= 8 else 1.0)


def prometheus() -> Iterator[str]:
    """What an exporter would show of the disks, cumulative since it began."""
    yield "# HELP disk_read_seconds Time that a disk took for a read of a chunk."
    yield "# TYPE disk_read_seconds histogram"
    for disk in range(DISKS):
        times, label = services(disk), f'device="disk{disk + 1:02d}"'
        for le in LE_S:
            yield f'disk_read_seconds_bucket{{{label},le="{le:g}"}} {int(np.sum(times <= le))}'
        yield f'disk_read_seconds_bucket{{{label},le="+Inf"}} {READS}'
        yield f"disk_read_seconds_sum{{{label}}} {times.sum():.9g}"
        yield f"disk_read_seconds_count{{{label}}} {READS}"


def ceph(disk: int) -> dict[str, Any]:
    """What ``ceph tell osd.N perf histogram dump`` would show: times by sizes, both in buckets that double."""
    times, size = np.floor(services(disk) * 1e9), 2**20
    axes, places = [], []
    for name, quant, values in (
        ("Latency (usec)", _QUANT_NS, times),
        ("Request size (bytes)", _QUANT_BYTES, np.full(READS, size)),
    ):
        ends = [0, *(quant << doubled for doubled in range(_BUCKETS - 2))]
        inner = [{"min": low, "max": high - 1} for low, high in zip(ends[:-1], ends[1:], strict=True)]
        axes.append(
            {
                "name": name,
                "min": 0,
                "quant_size": quant,
                "buckets": _BUCKETS,
                "scale_type": "log2",
                "ranges": [{"max": -1}, *inner, {"min": ends[-1]}],
            }
        )
        places.append(np.searchsorted(ends, values, side="right"))
    table = np.zeros((_BUCKETS, _BUCKETS), int)
    np.add.at(table, tuple(places), 1)
    return {"osd": {"op_r_latency_out_bytes_histogram": {"axes": axes, "values": table.tolist()}}}


def write(folder: Path) -> None:
    """Write the samples."""
    (folder / "ceph").mkdir(parents=True, exist_ok=True)
    (folder / "disks.prom").write_text("\n".join(prometheus()) + "\n")
    for disk in range(3):
        (folder / "ceph" / f"osd.{disk}.json").write_text(
            json.dumps(ceph(disk), separators=(",", ":")) + "\n"
        )


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "histograms")

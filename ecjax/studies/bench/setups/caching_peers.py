"""Caches of whole items beside libCacheSim, a simulator in C, on the same reads."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ecjax.caching.item_replay import ItemReads
from ecjax.caching.peers import replay_items_of
from ecjax.caching.workload import Popularity, zipf_reads
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Outcome, Runner

LIBRARY = {
    "lru": "LRU",
    "lfu": "LFU",
    "arc": "ARC",
    "s3_fifo": "S3FIFO",
    "sieve": "Sieve",
    "w_tinylfu": "WTinyLFU",
    "gdsf": "GDSF",
}
# a request as the library reads it ("oracleGeneral")
_REQUEST = np.dtype([("time", "<u4"), ("item", "<u8"), ("bytes", "<u4"), ("following", "<i8")])
_ABSENT = "libcachesim is not installed: nothing to compare with"


def beside_libcachesim(runner: Runner, count: int, items: int, room: int) -> Iterator[Row]:
    """Reads of Zipf's law through each policy; the library keeps whole objects only, and so do these.

    Args:
        runner: times them.
        count: reads.
        items: that are read.
        room: items that a cache keeps.
    """
    item = zipf_reads(Popularity(items, 1.0, 0.0, 1.0), count, 1.0, 1, runner.seed).item
    size = f"{items:,} items, {room:,} kept"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "reads.oracleGeneral"
        requests = np.zeros(count, _REQUEST)
        requests["item"], requests["bytes"], requests["following"] = item, 1, -1
        requests.tofile(path)
        for name in LIBRARY:
            variants: dict[str, Callable[[], float]] = {
                f"ecjax {name}": partial(_ours, name, item, items, room)
            }
            if find_spec("libcachesim"):
                variants[f"libCacheSim {name}"] = partial(_theirs, name, str(path), room)
            outcomes = runner.race(variants)
            for variant, outcome in outcomes.items():
                note = _note(outcome, count, list(outcomes.values()))
                yield Row(variant, size, *outcome.timing, rows=count, dtype="float64", note=note)


def _note(outcome: Outcome, count: int, both: list[Outcome]) -> str:
    words = f"{count / outcome.timing.min_s:,.0f} reads/s; {outcome.value:.4f} missed"
    if len(both) == 1:
        return f"{words}; {_ABSENT}"
    same = abs(both[0].value - both[1].value) < 0.5 / count
    return words if same else f"{words}: not the same"


def _ours(name: str, item: np.ndarray, items: int, room: int) -> float:
    """Share of the reads that miss."""
    hit, decided_ns = np.zeros(len(item), np.bool_), np.zeros(len(item), np.int64)
    reads = ItemReads(item, np.ones(len(item), np.bool_))
    replay_items_of(name)(reads, room, hit, decided_ns, np.zeros(items, np.bool_))
    return 1.0 - float(hit.mean())


def _theirs(name: str, path: str, room: int) -> float:
    """The same by the library, which reads them from a file."""
    import libcachesim

    reader = libcachesim.TraceReader(path, libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    cache: Any = getattr(libcachesim, LIBRARY[name])(room, hashpower=16)
    return float(cache.process_trace(reader)[0])

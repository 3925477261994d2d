"""Options of ``ecjax adapt``. Imports nothing heavy: the command line reads it before anything else."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.options import (
    Listed,
    Number,
    Special,
    Text,
    Whole,
    Words,
    Wrong,
    is_number,
    is_whole,
    option,
    section,
)
from ecjax.studies.adapt.tables import BEST_STATIC, STATIC, TABLES
from ecjax.studies.spine.log_options import LogOptions
from ecjax.tables.schemas import CLASSES

TOFEC = "tofec"
STRATEGIES = (STATIC, BEST_STATIC, "replication", "greedy", "fast_cloud", TOFEC, "calibrated")
DELAYS = ("shifted_exp", "shifted_lognormal", "correlated")
PATHS = "the path of a log of chunk accesses, of a delays table or of the results of ecjax analyze"
FIGURES = ("tradeoff", "delay", "composition", "deviation", "ccdf", "task_delays", "timeline")
ALL = "all"  # static codes

Code = tuple[int, int]  # n, k
ClassValues = dict[str, str | float | None]  # of one class, by column of a classes table

_CLASS_COLUMNS = [column.name for column in CLASSES]


def _classes(value: object) -> str | list[ClassValues]:
    if isinstance(value, str) and value:
        return value
    if not isinstance(value, list | tuple) or not value:
        raise Wrong(repr(value))
    for row, values in enumerate(value):
        if not isinstance(values, dict):
            raise Wrong(f"{values!r} in row {row}", "a mapping, as in {bytes: 3e6, op: read}")
        for name in values:
            if name not in _CLASS_COLUMNS:
                raise Wrong(f"{name!r} in row {row}", ", ".join(_CLASS_COLUMNS))
    return [dict(values) for values in value]


def _steps(value: object) -> list[tuple[float, float]]:
    if not isinstance(value, list | tuple) or len(value) < 2:
        raise Wrong(repr(value))
    for row, step in enumerate(value):
        pair = isinstance(step, list | tuple) and len(step) == 2
        if not pair or not all(is_number(part) and part >= 0 for part in step):
            raise Wrong(f"{step!r} in row {row}")
    for row, (before, step) in enumerate(pairwise(value), 1):
        if not step[0] > before[0]:
            raise Wrong(f"{step!r} in row {row}")
    if value[-1][1] != 0 or not any(rate > 0 for _, rate in value):
        raise Wrong(f"{value[-1]!r} in row {len(value) - 1}, no end or no rates above 0")
    return [(float(start), float(rate)) for start, rate in value]


_MOST_CHUNKS = 10**4  # of a code


def _codes(value: object) -> str | list[Code]:
    if value == ALL:
        return ALL
    codes = value if isinstance(value, list | tuple) else [value]
    if len(codes) == 2 and not any(isinstance(part, list | tuple) for part in codes):
        codes = [codes]
    if not codes:
        raise Wrong("an empty list")
    pairs: dict[Code, None] = {}
    for code in codes:
        n, k = code if isinstance(code, list | tuple) and len(code) == 2 else (0, 0)
        if not (is_whole(n) and is_whole(k) and 1 <= k <= n <= _MOST_CHUNKS):
            raise Wrong(str(value))
        pairs[int(n), int(k)] = None
    return list(pairs)


def _codes_of_runs(value: object) -> list[Any] | None:
    """Pairs of n and k, a run each."""
    try:
        codes = _codes(value)
    except Wrong:
        return None
    return None if isinstance(codes, str) else list(codes)


@dataclass(frozen=True)
class AdaptOptions(LogOptions):
    """Everything that ``ecjax adapt`` can be told."""

    delays: list[str] = option(
        ["shifted_exp"],
        "of tasks by chunk size: a law that reads of a public object store were found to have, or where to take laws "
        "from; one or a list",
        Listed(Text(f"{', '.join(DELAYS)}, or {PATHS}")),
    )
    trace: str | None = option(
        None,
        "access log whose arrivals are replayed, or the folder of an ecjax analyze: the log that it read; default: "
        "generated arrivals",
    )
    extent_bytes: int | None = option(
        None,
        "of a block trace: an access is cut into requests at the borders of extents of this size; default: it is not",
        Whole(1, 2**62),
    )
    classes: str | list[ClassValues] | None = option(
        None,
        "requests by type and size: a list of {name, op, bytes, share, k_max, r_max}, or a table; default: reads of "
        "bytes, or what the trace has",
        Special(f"a table, or a list of mappings ({', '.join(_CLASS_COLUMNS)})", _classes),
    )
    bytes: float = option(
        3e6, "size of the requests, where neither classes nor a trace says it", Number(above=0)
    )
    k_max: int = option(6, "largest code dimension: smallest chunk = bytes / k_max", Whole(1, 100))
    r_max: float = option(2.0, "largest redundancy n / k", Number(least=1, most=100))
    writes: str = option(
        "cancel",
        "what becomes of a write's other tasks at the k-th completion",
        Words("cancel", "background"),
    )
    threads: int = option(16, "connections of the proxy to the storage", Whole(1, 10**4), identifies=True)
    rate: list[float] | None = option(
        None, "requests/s; one or a list; default: load", Listed(Number(above=0))
    )
    load: list[float] = option(
        [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
        "rate as a share of the capacity of the (1,1) code; one or a list; used where neither rate, steps nor trace is "
        "given",
        Listed(Number(above=0)),
    )
    steps: list[tuple[float, float]] | None = option(
        None,
        "rates that change: [[start_s, rate], ...], the last one [end_s, 0]; instead of rate, load and trace",
        Special(
            "[[start_s, rate], ...], times ascending from 0 or later, rates >= 0, the last [end_s, 0]", _steps
        ),
    )
    rates: str | None = option(None, "table of factors of the rate by time, as in ecjax replay")
    rate_scale: list[float] = option(
        [1.0],
        "multiplies all rates, divides arrival times of a trace; one or a list",
        Listed(Number(above=0)),
    )
    requests: int = option(
        200_000, "requests per replay of generated arrivals (steps: as many as come)", Whole(1, 10**9)
    )
    seeds: int = option(1, "replays with different draws: seed, seed + 1, ...", Whole(1, 10**6))
    seed: int = option(0, "first seed", Whole(0, 2**62))
    strategy: list[str] = option(
        list(STRATEGIES), "which code a request is served with; one or a list", Listed(Words(*STRATEGIES))
    )
    codes: str | list[Code] = option(
        [[1, 1]],
        "of strategy static, in all classes: [n, k], a list of them, or all that k_max and r_max allow",
        Special("[n, k] with n >= k >= 1, a list of them, or all", _codes, _codes_of_runs),
    )
    memory: float = option(
        0.99,
        "tofec: weight of the past in the smoothed backlog",
        Number(least=0, below=1),
    )
    capacity: bool = option(
        True, "also search the largest rate that each strategy can serve", identifies=True
    )
    timeline_s: float | None = option(
        None,
        "length of the intervals of the dataset timeline; default: none, with steps 1/120 of the whole",
        Number(above=0),
    )
    storage_dollars_per_byte: float = option(
        2.3e-11, "price of storage, dollars per byte and 30 days", Number(least=0), identifies=True
    )
    out: str = option("results/adapt", "folder of the result tables and figures")
    engine: EngineOptions = section(EngineOptions, "where it runs: engine=serial, engine=ray")
    resume: bool = option(True, "skip replays that are finished in out")
    write: list[str] | None = option(
        None,
        "datasets to write besides runs; default: all; finished runs keep theirs (unless resume=false)",
        Listed(Words("runs", *TABLES.names)),
    )
    figures: list[str] = option(
        ["delay", "composition"], "figures to draw", Listed(Words(*FIGURES), empty=True)
    )

    def completed(self) -> "AdaptOptions":
        """These options, if they go together.

        Raises:
            UserError: they do not.
        """
        if self.codes != [(1, 1)] and STATIC not in self.strategy:
            codes = self.codes if isinstance(self.codes, str) else [list(code) for code in self.codes]
            raise UserError(f"codes: found {codes} without strategy=static; allowed: with it")
        arrivals = [name for name in ("trace", "steps", "rate") if getattr(self, name) is not None]
        if len(arrivals) > 1:
            raise UserError(
                f"{arrivals[1]}: found beside {arrivals[0]}; allowed: one of trace, steps and rate"
            )
        if self.extent_bytes is not None and self.trace is None:
            raise UserError(
                f"extent_bytes: found {self.extent_bytes} without a trace; allowed: with trace=LOG, a block trace"
            )
        if self.rates is not None and arrivals not in ([], ["rate"]):
            raise UserError(f"rates={self.rates}: found beside {arrivals[0]}; allowed: with rate or load")
        return self

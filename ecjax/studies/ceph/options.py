"""Options of ``ecjax ceph``. Imports nothing heavy: the command line reads it before anything else."""

import re
from dataclasses import dataclass

from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.options import Listed, Number, Special, Text, Whole, Words, Wrong, is_number, option, section
from ecjax.studies.ceph.tables import TABLES

FIGURES = ("loads", "batches")
MEASURED, EQUAL = "measured", "equal"
READS, BYTES = "reads", "bytes"
LOAD, MEAN, P99 = "load", "mean", "p99"
_SCENARIO = re.compile(
    r"osd\.\d+|host:[^:]+|slow:osd\.\d+:(?!0+(\.0+)?$)\d+(\.\d+)?|fast_read:[^:]+|code:[^:]+:[1-9]\d*\+\d+"
    r"|backfill:\d+(\.\d+)?([eE]\+?\d+)?"
)
_SCENARIOS = "osd.N, host:NAME, slow:osd.N:TIMES, fast_read:POOL, code:POOL:K+M, backfill:BYTES_PER_S"
_SPEEDS = "a mapping of device classes or OSDs to numbers above 0, as {hdd: 1, ssd: 8, osd.3: 0.5}"


def _speeds(value: object) -> dict[str, float]:
    if not isinstance(value, dict) or not value:
        raise Wrong(repr(value))
    for name, speed in value.items():
        if not is_number(speed) or not speed > 0:
            raise Wrong(f"{name}: {speed}")
    return {str(name): float(speed) for name, speed in value.items()}


def _scenarios(value: object) -> list[str]:
    listed = value if isinstance(value, list | tuple) else [value]
    for each in listed:
        if not isinstance(each, str) or not _SCENARIO.fullmatch(each):
            raise Wrong(str(each))
    return [str(each) for each in listed]


@dataclass(frozen=True)
class CephOptions:
    """Everything that ``ecjax ceph`` can be told."""

    dumps: str | None = option(
        None, "folder of ceph ... -f json outputs, or a state file that TheJJ's balancer gathered"
    )
    rates: str = option(
        MEASURED,
        "reads of groups: by difference of two pg dumps, or equal",
        Words(MEASURED, EQUAL),
    )
    pools: list[str] | None = option(
        None,
        "erasure-coded pools to plan, together; default: all",
        Listed(Text("names of pools"), together=True),
    )
    roles_only: bool = option(
        True, "change only which OSDs of a group are read; false: shards may move to other OSDs, too"
    )
    within: list[float] = option(
        [0.01],
        "the busiest OSD may have so much more to do than it must, relatively; one or a list: more copies fewer "
        "shards",
        Listed(Number(least=0, most=10)),
    )
    load: str = option(
        READS, "what loads an OSD: shard reads, or their bytes", Words(READS, BYTES), identifies=True
    )
    objective: str = option(
        LOAD,
        "what is least: load of the busiest OSD, or, where service times are known, the expected mean or p99 of "
        "several plans that differ in how much work slow OSDs get",
        Words(LOAD, MEAN, P99),
        identifies=True,
    )
    speeds: dict[str, float] | None = option(
        None,
        "of OSDs relative to each other, by device class or OSD; default: all equal",
        Special(_SPEEDS, _speeds),
        identifies=True,
    )
    primary_work: float = option(
        0.0,
        "extra work of a group's primary (position 0) per client read, in shard reads: it decodes and sends all",
        Number(least=0, most=100),
        identifies=True,
    )
    count_tolerance: int = option(
        1,
        "roles_only=false: shards of a pool that an OSD may keep above or below its share, or as far as it is now",
        Whole(0, 10**6),
        identifies=True,
    )
    service_s: float | None = option(
        None,
        "mean time of a shard read at an OSD of speed 1, without waiting; default: from dump_historic_ops among the "
        "dumps, where they are complete, else from two perf dumps of an OSD (bluestore.read_lat)",
        Number(above=0),
        identifies=True,
    )
    service_cv: float = option(
        1.0, "service_s: standard deviation / mean", Number(above=0, most=100), identifies=True
    )
    max_misplaced: float = option(
        0.05, "share of a pool's shards that a batch may copy", Number(above=0, most=1), identifies=True
    )
    max_bytes: float | None = option(
        None, "bytes that a batch may copy; default: any", Number(above=0), identifies=True
    )
    what_if: list[str] = option(
        [],
        f"also what would become of loads and latencies, before and by the plan: {_SCENARIOS}; one or a list",
        Special(_SCENARIOS, _scenarios),
        identifies=True,
    )
    verify: str | None = option(
        None,
        "folder of the results of an earlier ecjax ceph: say which batches of its plan are in force in these dumps, "
        "and which is next",
    )
    plan_run: str | None = option(
        None, "verify, apply: which run of the results, by run_id; default: recommended"
    )
    apply: bool = option(
        False, "run the batches of verify=FOLDER, or of the new plan, on the cluster that ceph= reaches"
    )
    apply_wait_s: float = option(
        86400.0, "apply: longest wait until the data of a batch has moved", Number(above=0)
    )
    collect: str | None = option(
        None, "folder to write dumps to, by commands that change nothing on the cluster that ceph= reaches"
    )
    wait_s: float = option(60.0, "collect: time between the two pg dumps", Number(least=0))
    ceph: str = option("ceph", "command that reaches the cluster, as cephadm shell -- ceph")
    out: str = option("results/ceph", "folder of the result tables, commands and figures")
    engine: EngineOptions = section(EngineOptions, "where it runs: engine=serial, engine=ray")
    resume: bool = option(True, "skip plans that are finished in out")
    write: list[str] | None = option(
        None,
        "datasets to write besides runs; default: all; finished runs keep theirs (unless resume=false)",
        Listed(Words("runs", *TABLES.names)),
    )
    figures: list[str] = option(["loads"], "figures to draw", Listed(Words(*FIGURES), empty=True))

    def completed(self) -> "CephOptions":
        """These options, if they go together.

        Raises:
            UserError: they do not.
        """
        if self.collect is None and self.dumps is None and not (self.apply and self.verify):
            raise UserError(
                "dumps: found none; allowed: ecjax ceph DUMPS, a folder of dumps (ecjax ceph --collect says how to get "
                "one)"
            )
        if self.plan_run is not None and self.verify is None:
            raise UserError(
                f"plan_run={self.plan_run}: found no verify=; allowed: with verify=FOLDER of results"
            )
        if self.load == BYTES and self.rates == EQUAL:
            raise UserError(
                "load=bytes: found rates=equal, of which no read has bytes; allowed: rates=measured, or load=reads"
            )
        return self

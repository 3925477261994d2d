"""Times of shard reads at OSDs, from what a cluster can tell: ``dump_historic_ops`` that are complete, perf dumps.

``dump_historic_ops`` keeps the slowest operations: it is a sample of all only where it is not full and none was dropped
for its age. From reached_pg to done a shard read is served; before that it waits. ``ceph osd perf`` knows writes only,
histograms whole reads: neither is used. ``bluestore.read_lat`` has the mean at the disk (by Ceph's source, not
measured).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

_READ = "MOSDECSubOpRead("
_BEGIN, _END = "reached_pg", "done"


class Times(NamedTuple):
    """What dumps tell of service times."""

    samples: Mapping[int, tuple[float, ...]]  # s, of shard reads by OSD
    means: Mapping[int, float]  # s, by OSD
    notes: tuple[str, ...]  # what was refused, a line each


def service_times(
    operations: Mapping[int, Mapping[str, Any]], counters: Mapping[int, list[Mapping[str, Any]]]
) -> Times:
    """Service times of shard reads.

    Args:
        operations: ``dump_historic_ops`` by OSD.
        counters: ``perf dump`` by OSD, in the order of time; of one alone nothing can be told.
    """
    samples, refused = dict[int, tuple[float, ...]](), list[str]()
    for osd, history in sorted(operations.items()):
        why = incomplete(history)
        if why is None:
            served = tuple(each for operation in history["ops"] if (each := _served(operation)) is not None)
            if served:
                samples[osd] = served
        else:
            refused.append(f"osd.{osd} ({why})")
    notes = []
    if refused:
        notes.append(
            f"dump_historic_ops of {', '.join(refused[:3])}{', ...' if len(refused) > 3 else ''}: full ones keep the "
            f"slowest, {len(refused)} refused as samples of service times; raise osd_op_history_size first"
        )
    return Times(samples, _means(counters), tuple(notes))


def incomplete(history: Mapping[str, Any]) -> str | None:
    """Why a history is no sample of all operations; None where it is one."""
    operations = history["ops"]
    if len(operations) >= history["size"]:
        return f"{len(operations)} of {history['size']}"
    if len(operations) > 1:
        times = [datetime.fromisoformat(_iso(each["initiated_at"])) for each in operations]
        span = (max(times) - min(times)).total_seconds()
        if span >= history["duration"]:
            return f"{span:.0f} s of {history['duration']} s"
    return None


def _served(operation: Mapping[str, Any]) -> float | None:
    """Time that a shard read was served, s; None of other operations."""
    if not operation["description"].startswith(_READ):
        return None
    # the field duration of an event may be wrapped, its time is not
    times = {each["event"]: each["time"] for each in operation["type_data"]["events"]}
    if _BEGIN not in times or _END not in times:
        return None
    begin, end = (datetime.fromisoformat(_iso(times[name])) for name in (_BEGIN, _END))
    return max((end - begin).total_seconds(), 0.0)


def _iso(time: str) -> str:
    text = time.replace(" ", "T")
    return text[:-2] + ":" + text[-2:] if text[-5] in "+-" else text


def _means(counters: Mapping[int, list[Mapping[str, Any]]]) -> dict[int, float]:
    """Mean time of a read at the disk between the first and the last perf dump of an OSD."""
    means = {}
    for osd, dumps in counters.items():
        # outputs of other commands, as perf histogram dump, may lie beside them
        latencies = [
            each["bluestore"]["read_lat"] for each in dumps if "read_lat" in each.get("bluestore", {})
        ]
        if len(latencies) < 2:
            continue
        count = latencies[-1]["avgcount"] - latencies[0]["avgcount"]
        total = latencies[-1]["sum"] - latencies[0]["sum"]
        if count > 0 and total > 0:
            means[osd] = total / count
    return means

"""Words on what a code's durability rests on."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ecjax.studies.codes.tables import BUSIEST
from ecjax.studies.spine.durability import matters_most
from ecjax.studies.spine.sentences import dollars_text
from ecjax.units import plain, time_text


def hours(seconds: float) -> str:
    """A time in hours, without its unit."""
    return plain(seconds / 3600, 2)


def rules(row: dict[str, Any]) -> str:
    """A sentence on what loses objects: disks, or whole domains."""
    share = row["domain_loss_share"]
    what = "Lost domains take part in" if share >= 0.5 else "Disks alone are"
    load = f"repairs run {row['repair_load'] + row['domain_repair_load']:.2g} of the time"
    return f"{what} {max(share, 1 - share):.0%} of its losses; {load}."


def what_matters(row: dict[str, Any]) -> str:
    """A sentence on the assumption that, worse by a factor of 2, costs most nines."""
    return f"What matters most: {matters_most(row)}."


def pace_of(row: dict[str, Any]) -> str:
    """A sentence, after a space, on repairs that give way to reads; none where they need not."""
    pace = row.get("repair_pace")
    if pd.isna(pace) or pace is None or pace >= 1:
        return ""
    return f" Repairs take {pace:.0%} of their bandwidth, so that reads find no node above a load of {BUSIEST:g}."


def outages_of(row: dict[str, Any]) -> str:
    """A sentence, after a space, on planned outages; none where there are none."""
    times = row.get("unavailable_per_year")
    if times is None or pd.isna(times):
        return ""
    return f" With the planned outages an object cannot be read {times:.1e} times a year."


def by_class_text(run: Any, combinations: pd.DataFrame) -> str:
    """A sentence on the codes that classes of files are to have.

    Args:
        run: row of ``runs``.
        combinations: its rows of ``combinations``.
    """
    best = combinations[combinations["recommended"].astype(bool)]
    if best.empty:
        return f"No combination of codes by class, of {len(combinations)} that were planned, keeps all this."
    row = best.iloc[0]
    codes = json.loads(row["codes"])
    if len(set(codes.values())) == 1:
        which = f"all classes take {next(iter(codes.values()))}"
    else:
        which = ", ".join(f"{code} for {name}" for name, code in codes.items())
    why = f"the least dollars times mean latency of {len(combinations)} planned"
    if pd.notna(run["max_p99_s"]):
        limit = time_text(run["max_p99_s"])
        why = f"the cheapest of {len(combinations)} planned with a p99 of at most {limit} with a {domain_of(row)} down"
    elif len(combinations) == 1:
        why = "no other is cheaper for a class, or faster"
    tail = (
        ""
        if pd.isna(row["down_p99_s"])
        else f", p99 {time_text(row['down_p99_s'])} with a {domain_of(row)} down"
    )
    return (
        f"By class of files: {which} ({why}): {dollars_text(row['dollars_per_period'])} "
        f"for 30 days, {row['nines']:.1f} nines or more, any loss {row['any_loss_probability']:.1e} a year, expected "
        f"mean {time_text(row['healthy_mean_s'])}{tail}."
    )


def domain_of(row: Mapping[str, Any] | pd.Series) -> str:
    """What is down and slow in the states of a row: a node, or a site.

    Args:
        row: of ``codes`` or ``combinations``.
    """
    return "node" if pd.isna(row.get("busiest_site")) else "site"


def domain_of_all(rows: pd.DataFrame) -> str:
    """The same of several rows of one run.

    Args:
        rows: of ``codes`` or ``combinations``; those without a plan name nothing.
    """
    return "site" if "busiest_site" in rows and rows["busiest_site"].notna().any() else "node"


def reads_of(row: dict[str, Any], other: dict[str, Any] | None) -> str:
    """A sentence, after a space, on expected latencies of a code's full reads beside another's; none unless estimated.

    Args:
        row: of the code.
        other: of the next best, if there is one.
    """
    if pd.isna(row["healthy_mean_s"]):
        return ""
    beside = "" if other is None else f"; {other['code']}: {_two_states(other)}"
    return f" Full reads, if they arrive as a Poisson process: expected {_two_states(row)}{beside}."


def _two_states(row: dict[str, Any]) -> str:
    healthy = (
        f"mean {time_text(row['healthy_mean_s'])}, p99 {time_text(row['healthy_p99_s'])} with all nodes up"
    )
    lost = row["busiest_node"] if domain_of(row) == "node" else f"site {row['busiest_site']}"
    if pd.isna(row["down_mean_s"]):
        return f"{healthy}, none with {lost} down (overloaded, or too few chunks are left)"
    down = f"{time_text(row['down_mean_s'])} and {time_text(row['down_p99_s'])}"
    return f"{healthy}, {down} with {lost} down"

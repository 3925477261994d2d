"""What is asked of codes, and, where none keeps it, which comes nearest and what would help."""

from typing import Any

import pandas as pd

from ecjax.status import Status
from ecjax.studies.codes.words import domain_of
from ecjax.studies.spine.sentences import listed
from ecjax.units import time_text

_PARITY = "more parity, faster repair"
_ROOM = "lower rates, or more nodes"
_SPEED = "fewer data chunks, faster nodes, or lower rates"
_SPACE = "more nodes, or shorter codes"


def target_text(run: dict[str, Any]) -> str:
    """What the recommended code has to keep.

    Args:
        run: row of ``runs``.
    """
    parts = [f"{run['durability_nines']:g} nines per object and year"]
    if pd.notna(run["max_any_loss"]):
        parts.append(f"any loss below {run['max_any_loss']:g} a year")
    if pd.notna(run["max_p99_s"]):
        parts.append(f"99 % of full reads within {time_text(run['max_p99_s'])} with a failure domain down")
    return listed(parts)


def nearest_text(rows: list[dict[str, Any]], run: dict[str, Any]) -> str:
    """The code that misses least of what is asked, what it misses, and what would help.

    Args:
        rows: of ``codes``, none of which keeps all.
        run: row of ``runs``.
    """
    missed = [_missed(row, run) for row in rows]
    nines = [-1.0 if pd.isna(row["nines"]) else float(row["nines"]) for row in rows]
    best = min(range(len(rows)), key=lambda at: (len(missed[at]), -nines[at]))
    code, (misses, helps) = rows[best]["code"], zip(*missed[best], strict=True)
    has = "" if nines[best] < 0 else f" with {nines[best]:.1f} nines"
    return f"{code} comes nearest{has}: {listed(misses)}. Next: {'; '.join(dict.fromkeys(helps))}."


def _missed(row: dict[str, Any], run: dict[str, Any]) -> list[tuple[str, str]]:
    """What a code does not keep, in words, and what would help."""
    missed = []
    if pd.isna(row["nines"]):
        missed.append(("its repairs queue", _PARITY))
    else:
        if row["nines"] < run["durability_nines"]:
            missed.append((f"{run['durability_nines'] - row['nines']:.2g} nines are missing", _PARITY))
        if pd.notna(run["max_any_loss"]) and row["any_loss_probability"] > run["max_any_loss"]:
            missed.append((f"any loss is {row['any_loss_probability']:.1e} a year", _PARITY))
    if row["status"] == Status.INFEASIBLE:
        missed.append(("the nodes are too few for its chunks", _SPACE))
    elif row["status"] != Status.OK and not pd.isna(row["nines"]):
        missed.append(("reads overload its nodes, or leave nothing for repairs", _ROOM))
    elif pd.notna(run["max_p99_s"]):
        tail = row["down_p99_s"]
        if pd.isna(tail):
            missed.append(
                (f"with a {domain_of(row)} down a node is overloaded, or too few chunks are left", _ROOM)
            )
        elif tail > run["max_p99_s"]:
            missed.append(
                (f"99 % of full reads take up to {time_text(tail)} with a {domain_of(row)} down", _SPEED)
            )
    return missed

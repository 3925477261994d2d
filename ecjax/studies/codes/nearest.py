"""What is asked of codes, and, where none keeps it, which comes nearest and what would help."""

from itertools import chain
from typing import Any

import pandas as pd

from ecjax.status import Status
from ecjax.studies.codes.words import domain_of
from ecjax.studies.spine.sentences import listed
from ecjax.units import time_text

_PARITY = ("more parity, faster repair",)
_REPAIR = "faster repair (repair_bytes_per_s, cluster_bytes_per_s)"
_ROOM = ("lower rates, or more nodes",)
_SPEED = ("fewer data chunks, faster nodes, or lower rates",)
_SPACE = ("more nodes, or shorter codes",)


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
    help_words = dict.fromkeys(chain.from_iterable(helps))
    has = "" if nines[best] < 0 else f" with {nines[best]:.1f} nines"
    return f"{code} comes nearest{has}: {listed(misses)}. Next: {'; '.join(help_words)}."


def _missed(row: dict[str, Any], run: dict[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    """What a code does not keep, in words, and what would help."""
    missed: list[tuple[str, tuple[str, ...]]] = []
    if pd.isna(row["nines"]):
        missed.append(("its repairs queue", _for_repairs(row)))
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


def _for_repairs(row: dict[str, Any]) -> tuple[str, ...]:
    """What shortens the queue of repairs. More parity would make it longer, as there would be more to repair."""
    pace = row.get("repair_pace")
    # a code of fewer data chunks reads less for a lost chunk; of one or two of them its parity outweighs that
    fewer = ", less user_bytes, or fewer data chunks" if row["k"] > 2 else ", or less user_bytes"
    return _REPAIR + fewer, *(_ROOM if pace is not None and pace < 1 else ())

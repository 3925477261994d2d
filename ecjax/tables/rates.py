"""The end of a table of rates by time: its last factor goes on, whatever was measured when it was made."""

import numpy as np
import pyarrow as pa

from ecjax.units import count_text, time_text


def end_of_rates(table: pa.Table) -> float:
    """When the intervals of a table of rates end, s; 0 where it does not say how long each is, or one has no end."""
    if "duration_s" not in table.column_names:
        return 0.0
    duration = table["duration_s"]
    if not (pa.types.is_floating(duration.type) or pa.types.is_integer(duration.type)):
        return 0.0
    end = float(np.max(table["start_s"].to_numpy() + duration.to_numpy(), initial=0.0))
    return end if np.isfinite(end) else 0.0


def ends_early(path: str, end_s: float, come: int, asked: int, noun: str, where: str, least: int) -> str:
    """What is said where more requests are simulated than come while a table of rates says what they are.

    Args:
        path: of the table.
        end_s: when its intervals end, s.
        come: how many are expected until then.
        asked: how many are simulated.
        noun: what they are, as "read".
        where: in which case that is, as " at rate_scale=2"; may be empty.
        least: that can be asked for.
    """
    enough = f"; requests={come} ends with it" if come >= least else ""
    return (
        f"rates={path}: its last interval ends at {time_text(end_s)}, when {come:,} of {count_text(asked, noun)} are "
        f"expected to have come{where}; the others come at its factor{enough}"
    )

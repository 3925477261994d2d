"""What ``ecjax optimize`` says about floors: which follow from the durability, and what they rest on."""

import pandas as pd
from rich.console import Console

from ecjax.console import say
from ecjax.errors import UserError
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.spine.durability import matters_most
from ecjax.studies.spine.sentences import listed
from ecjax.tables.results import read_results
from ecjax.units import count_text

_NAMED = 6  # floors in a line


def say_floors(options: OptimizeOptions, runs: pd.DataFrame, console: Console) -> None:
    """Print the floors of a study, if they were written.

    Args:
        options: checked.
        runs: rows of its ``runs``.
        console: where.
    """
    try:
        table = read_results(options.out, "floors")
    except UserError:
        return
    as_it_is = runs.loc[runs["what_if"].isna(), "run_id"]
    floors = table[table["run_id"].isin(as_it_is)].drop_duplicates("k").sort_values("k")
    if not floors.empty:
        say(console, floors_text(options, floors), "dim")


def floors_text(options: OptimizeOptions, floors: pd.DataFrame) -> str:
    """The floors in a sentence, and the assumption that costs the least durable of them most nines.

    Args:
        options: checked.
        floors: rows of ``floors``, one per k.
    """
    rows = floors.to_dict("records")
    wanted = []
    if options.durability_nines is not None:
        wanted.append(f"{options.durability_nines:g} nines per object and year")
    if options.max_any_loss is not None:
        wanted.append(f"any loss below {options.max_any_loss:g} a year")
    named = [
        f"k={row['k']:.0f}: {row['min_extra_chunks']:.0f} ({row['nines']:.1f} nines)" for row in rows[:_NAMED]
    ]
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    least = min(rows, key=lambda row: row["nines"])
    share = least["domain_loss_share"]
    what = "lost domains take part in" if share >= 0.5 else "disks alone are"
    return (
        f"min_extra_chunks for {listed(wanted)}: {', '.join(named)}{more}; for {options.user_bytes / 1e12:g} TB in "
        f"{count_text(options.groups, 'group')} on {count_text(least['disk_count'], 'disk')} in "
        f"{count_text(least['domain_count'], 'domain')}, "
        f"afr={options.afr:g}, domain_losses_per_year={options.domain_losses_per_year:g}. Of k={least['k']:.0f} {what} "
        f"{max(share, 1 - share):.0%} of the losses; {matters_most(least)}. "
        "Repairs go at their full pace: ecjax codes nodes=NODES files=FILES lets reads go first, which may cost nines."
    )

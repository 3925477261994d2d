"""``ecjax codes``: which code, for a durability, at what overhead and repair traffic."""

from dataclasses import replace
from functools import partial

import pandas as pd
from rich.console import Console

from ecjax.engine import Engine
from ecjax.options import checked, identifying
from ecjax.studies.codes.figures.kinds import draw
from ecjax.studies.codes.inputs import Case, case_of
from ecjax.studies.codes.options import CodesOptions
from ecjax.studies.codes.recommend import recommend
from ecjax.studies.codes.run import Item, solve
from ecjax.studies.codes.summary import rows_of, show
from ecjax.studies.codes.tables import TABLES
from ecjax.studies.spine.batches import Batch
from ecjax.studies.spine.run import Run
from ecjax.studies.spine.study import Work, run_study, unfinished
from ecjax.tables.recommendation import Recommendation


def codes_study(options: CodesOptions, console: Console) -> int:
    """Compare the candidates; returns the exit code.

    Raises:
        UserError: something the user gave is wrong; nothing was written.
    """
    options = checked(options)
    case = case_of(options)

    def present(runs: pd.DataFrame) -> Recommendation | None:
        show(runs, console, options.out)
        draw(options.out, runs, options.figures, console)
        codes, combinations = (rows_of(dataset, options.out, runs) for dataset in ("codes", "combinations"))
        return recommend(runs, codes, combinations)

    return run_study(TABLES, options, partial(_work, options, case), present, console)


def _work(options: CodesOptions, case: Case, engine: Engine) -> Work:
    classes = None if case.traffic is None else case.traffic.classes
    columns = {
        "domain_count": case.cluster.domains,
        "disk_count": case.cluster.domains * case.cluster.disks,
        "group_count": options.groups,
        "user_bytes": options.user_bytes,
        "durability_nines": options.durability_nines,
        "max_any_loss": options.max_any_loss,
        "max_p99_s": options.max_p99_s,
        "input_id": case.input_id,
        "code_count": len(case.codes),
        "class_count": None if classes is None else len(classes.names),
    }
    # what was left to the tables is part of what was computed
    options = replace(options, domains=case.cluster.domains, disks=case.cluster.disks)
    item = Item(Run(TABLES.job, identifying(options), case.input_id or "", None, columns), options)
    batch = Batch(case, {item.run.run_id: item})
    return Work([item.run.run_id], unfinished([batch]), solve, {}, "comparing codes")

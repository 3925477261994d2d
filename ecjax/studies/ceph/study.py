"""``ecjax ceph``: even loads in a real cluster, and the commands that bring them about."""

from functools import partial

import pandas as pd
from rich.console import Console

from ecjax.console import log
from ecjax.engine import Engine
from ecjax.errors import UserError
from ecjax.options import checked, identifying
from ecjax.rados.batches import Limits
from ecjax.studies.ceph.acting import applied_plan, apply_plan, collect_dumps, verify_plan
from ecjax.studies.ceph.figures.kinds import draw
from ecjax.studies.ceph.inputs import Case, read_case
from ecjax.studies.ceph.latencies import is_estimated, with_service
from ecjax.studies.ceph.options import LOAD, CephOptions
from ecjax.studies.ceph.recommend import recommend
from ecjax.studies.ceph.run import Item, Settings, solve
from ecjax.studies.ceph.scenarios import check_scenarios
from ecjax.studies.ceph.scripts import write_scripts
from ecjax.studies.ceph.summary import show
from ecjax.studies.ceph.tables import TABLES
from ecjax.studies.spine.batches import Batch
from ecjax.studies.spine.run import Run
from ecjax.studies.spine.study import Work, rows_only, run_study, unfinished
from ecjax.tables.recommendation import Recommendation


def ceph_study(options: CephOptions, console: Console) -> int:
    """Collect, plan, verify or apply, as the options say; returns the exit code.

    0: all well; 1: something of a plan is not in force, or a plan failed.

    Raises:
        UserError: something the user gave is wrong.
    """
    options = checked(options)
    if options.collect is not None:
        return 0 if rows_only() else collect_dumps(options, console)
    if options.verify is not None and rows_only():
        return 0
    if options.verify is not None:
        return apply_plan(options, console) if options.apply else verify_plan(options, console)

    def present(runs: pd.DataFrame) -> Recommendation | None:
        show(runs, console, options.out)
        draw(options.out, runs, options.figures, console)
        folders = {run["run_id"]: write_scripts(options.out, run) for _, run in runs.iterrows()}
        named = {name: str(folder) for name, folder in folders.items() if folder is not None}
        return recommend(runs, named, options.objective)

    act = partial(applied_plan, options, console) if options.apply else None
    return run_study(TABLES, options, partial(_work, options), present, console, act=act)


def _work(options: CephOptions, engine: Engine) -> Work:
    case, service = with_service(read_case(options), options)
    cluster = case.cluster
    check_scenarios(cluster, options.what_if)
    names = ", ".join(f"{pool.name} ({pool.k}+{pool.n - pool.k})" for pool in cluster.pools)
    log.info("%d groups of %s on %d OSDs", len(cluster.groups.ids), names, len(cluster.osds))
    items = {}
    for within in options.within:
        item = _item(case, within, options)
        items[item.run.run_id] = item
    if options.objective != LOAD and service is None:
        raise UserError(
            f"objective={options.objective}: found no service times; allowed: with service_s=, complete "
            "dump_historic_ops among the dumps, or two perf dumps of an OSD"
        )
    if options.objective != LOAD and not is_estimated(cluster).any():
        raise UserError(
            f"objective={options.objective}: found reads with fast_read only, whose latencies are not estimated; "
            f"allowed: {LOAD}"
        )
    settings = Settings(
        Limits(options.max_misplaced, options.max_bytes or float("inf")),
        None if options.roles_only else options.count_tolerance,
        service,
        options.what_if,
        options.objective,
    )
    return Work(
        list(items),
        unfinished([Batch(case, items)]),
        partial(solve, settings),
        {},
        "planning",
    )


def _item(case: Case, within: float, options: CephOptions) -> Item:
    columns = {"rates": options.rates, "roles_only": options.roles_only, "within": within}
    remarks = {"dumps": case.dumps.source, "pools": [pool.name for pool in case.cluster.pools]}
    return Item(
        Run(TABLES.job, columns | identifying(options), case.input_id, None, columns, remarks), within
    )

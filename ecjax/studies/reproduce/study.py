"""``ecjax reproduce``: run the studies of the papers, and say what became of their claims."""

import difflib
from collections.abc import Iterable

import psutil
from rich.console import Console

from ecjax.console import OutputMode, conclude, log, output_mode, say
from ecjax.cores import available_cores
from ecjax.display import without_secrets
from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.studies.reproduce.claim import Claim, Paper
from ecjax.studies.reproduce.claims import paper
from ecjax.studies.reproduce.options import PAPERS, ReproduceOptions
from ecjax.studies.reproduce.rows import claims_table, run_row
from ecjax.studies.reproduce.run import OptionsOf, Setting, judged
from ecjax.studies.reproduce.summary import sentence, show
from ecjax.studies.reproduce.tables import TABLES
from ecjax.studies.reproduce.workers import processes
from ecjax.studies.spine.as_json import print_json
from ecjax.studies.spine.study import exit_code, runs_of, say_charts
from ecjax.tables.folder import is_local, location
from ecjax.tables.recommendation import Recommendation, write_recommendation
from ecjax.tables.store import ResultStore, check_out

_MEMORY = 4 * 2**30  # bytes that a study may need


def reproduce_study(options: ReproduceOptions, console: Console, options_of: OptionsOf) -> int:
    """Run the study; returns the exit code: 0, or 1 where a claim could not be judged.

    Args:
        options: of the command.
        console: where it prints.
        options_of: options of another job from its name and the words of its command line.

    Raises:
        UserError: something the user gave is wrong; nothing was run.
    """
    options = checked(options)
    folder = location(options.out)
    if not is_local(folder):
        raise UserError(
            f"out={without_secrets(options.out)}: found an object store; allowed: a folder of this machine, where "
            "studies read what others wrote"
        )
    check_out(options.out, TABLES)
    work = _chosen(options)
    studies = folder / "studies"
    at_once = options.processes or _processes(work)
    run_ids = []
    with ResultStore(options.out, TABLES, {}) as store, processes(at_once) as executor:
        setting = Setting(studies, options.size, options.resume, options_of, executor, at_once)
        for one, claims in work:
            log.info("%s: %d claims: %s", one.name, len(claims), one.title)
            rows, seconds = judged(one, claims, setting)
            run = run_row(one.name, options.size, rows, seconds)
            store.commit([run], {"claims": claims_table(run["run_id"], one.name, options.size, rows)})
            run_ids.append(run["run_id"])
    runs = runs_of(options.out, run_ids)
    show(runs, console, options.out)
    say(console, f"tables: {options.out}")
    recommendation = Recommendation(sentence(runs))
    conclude(console, recommendation.sentence)
    write_recommendation(location(options.out), recommendation)
    say_charts(options.out)
    code = exit_code(runs)
    if output_mode() is OutputMode.JSON:
        print_json(TABLES, options.out, runs, recommendation, code)
    return code


def _processes(work: Iterable[tuple[Paper, Iterable[Claim]]]) -> int:
    """As many as there are studies of a paper, and as this machine has cores and memory for."""
    studies = max(
        (len({name for claim in claims for name in claim.studies}) for _, claims in work), default=0
    )
    return max(1, min(studies, available_cores(), psutil.virtual_memory().available // _MEMORY))


def _chosen(options: ReproduceOptions) -> list[tuple[Paper, list[Claim]]]:
    """The papers with those of their claims that are to be judged.

    Raises:
        UserError: there is no such claim.
    """
    papers = [paper(name) for name in options.papers or PAPERS]
    if not options.claims:
        return [(one, list(one.claims)) for one in papers]
    ids = {claim.id for one in papers for claim in one.claims}
    missing = [name for name in options.claims if name not in ids]
    if missing:
        close = difflib.get_close_matches(missing[0], {*ids, *(name.partition("-")[2] for name in ids)}, n=1)
        named = min(ids) if not close else next(name for name in sorted(ids) if name.endswith(close[0]))
        raise UserError(f"claims: found {missing[0]}; allowed: ids of dataset claims, as {named}")
    chosen = [(one, [claim for claim in one.claims if claim.id in options.claims]) for one in papers]
    return [(one, claims) for one, claims in chosen if claims]

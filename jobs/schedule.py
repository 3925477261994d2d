"""``ecjax schedule``: coflows on a fabric, replayed under schedulers and rules of source selection."""

import sys

from omegaconf import DictConfig

from ecjax.errors import UserError
from ecjax.hydra_run import options_from
from ecjax.studies.schedule.options import ScheduleOptions


def bare_words(words: list[str]) -> list[str]:
    """``ecjax schedule TRACE``: transfers, or an access log."""
    from ecjax.tables.patterns import as_option, is_missing  # not for every command

    if is_missing(words):
        raise UserError(f"found {words[0]}; allowed: key=value, or the path of a trace")
    return [as_option("trace", words)]


def run(cfg: DictConfig) -> int:
    """Run on a composed configuration; returns the exit code."""
    options = options_from(cfg, ScheduleOptions)
    from ecjax.console import OUTPUT
    from ecjax.studies.schedule.study import schedule_study

    return schedule_study(options, OUTPUT)


if __name__ == "__main__":
    from ecjax.cli import command

    sys.exit(command(["schedule", *sys.argv[1:]]))

"""``ecjax analyze``: learn rates, sizes and service times from an access trace."""

import sys

from omegaconf import DictConfig

from ecjax.hydra_run import options_from
from ecjax.studies.analyze.options import AnalyzeOptions


def bare_words(words: list[str]) -> list[str]:
    """``ecjax analyze TRACE ...``."""
    from ecjax.tables.patterns import as_option  # not for every command

    return [as_option("trace", words)]


def run(cfg: DictConfig) -> int:
    """Run on a composed configuration; returns the exit code."""
    options = options_from(cfg, AnalyzeOptions)
    from ecjax.console import OUTPUT
    from ecjax.studies.analyze.study import analyze_study

    return analyze_study(options, OUTPUT)


if __name__ == "__main__":
    from ecjax.cli import command

    sys.exit(command(["analyze", *sys.argv[1:]]))

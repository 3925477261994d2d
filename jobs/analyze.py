"""``ecjax analyze``: learn rates, sizes and service times from an access trace."""

import sys

from omegaconf import DictConfig

from ecjax.errors import UserError
from ecjax.hydra_run import options_from
from ecjax.studies.analyze.options import AnalyzeOptions


def bare_words(words: list[str]) -> list[str]:
    """``ecjax analyze TRACE``."""
    if len(words) > 1:
        raise UserError(f"found {' '.join(words)}; allowed: one trace (a file, or a folder of files)")
    return [f"trace={words[0]}"]


def run(cfg: DictConfig) -> int:
    """Run on a composed configuration; returns the exit code."""
    options = options_from(cfg, AnalyzeOptions)
    from ecjax.console import OUTPUT
    from ecjax.studies.analyze.study import analyze_study

    return analyze_study(options, OUTPUT)


if __name__ == "__main__":
    from ecjax.cli import command

    sys.exit(command(["analyze", *sys.argv[1:]]))

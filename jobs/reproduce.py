"""``ecjax reproduce``: what becomes of the claims of the papers."""

import sys

from omegaconf import DictConfig

from ecjax.hydra_run import options_from, options_of_words
from ecjax.studies.reproduce.options import ReproduceOptions


def bare_words(words: list[str]) -> list[str]:
    """``ecjax reproduce PAPER ...``."""
    return [f"papers=[{','.join(words)}]"]


def run(cfg: DictConfig) -> int:
    """Run on a composed configuration; returns the exit code."""
    options = options_from(cfg, ReproduceOptions)
    from ecjax.console import OUTPUT
    from ecjax.studies.reproduce.study import reproduce_study

    return reproduce_study(options, OUTPUT, options_of_words)


if __name__ == "__main__":
    from ecjax.cli import command

    sys.exit(command(["reproduce", *sys.argv[1:]]))

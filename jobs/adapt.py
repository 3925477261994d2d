"""``ecjax adapt``: requests through a proxy that chooses its codes, replayed under coding strategies."""

import sys

from omegaconf import DictConfig

from ecjax.errors import UserError
from ecjax.hydra_run import options_from
from ecjax.studies.adapt.options import AdaptOptions


def bare_words(words: list[str]) -> list[str]:
    """``ecjax adapt DELAYS``: a log of chunk accesses, a delays table or the folder of an ecjax analyze."""
    from ecjax.tables.patterns import as_option, is_missing  # not for every command

    if is_missing(words):
        raise UserError(f"found {words[0]}; allowed: key=value, or a path: delays of chunk accesses")
    return [as_option("delays", words)]


def run(cfg: DictConfig) -> int:
    """Run on a composed configuration; returns the exit code."""
    options = options_from(cfg, AdaptOptions)
    from ecjax.console import OUTPUT
    from ecjax.studies.adapt.study import adapt_study

    return adapt_study(options, OUTPUT)


if __name__ == "__main__":
    from ecjax.cli import command

    sys.exit(command(["adapt", *sys.argv[1:]]))

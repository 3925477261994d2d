"""``ecjax cache``: chunks of erasure-coded items kept at edges, replayed under caching policies."""

import sys

from omegaconf import DictConfig

from ecjax.errors import UserError
from ecjax.hydra_run import options_from
from ecjax.studies.cache.options import CacheOptions


def bare_words(words: list[str]) -> list[str]:
    """``ecjax cache TRACE``: an access log."""
    from ecjax.tables.patterns import as_option, is_missing  # not for every command

    if is_missing(words):
        raise UserError(f"found {words[0]}; allowed: key=value, or the path of an access log")
    return [as_option("trace", words)]


def run(cfg: DictConfig) -> int:
    """Run on a composed configuration; returns the exit code."""
    options = options_from(cfg, CacheOptions)
    from ecjax.console import OUTPUT
    from ecjax.studies.cache.study import cache_study

    return cache_study(options, OUTPUT)


if __name__ == "__main__":
    from ecjax.cli import command

    sys.exit(command(["cache", *sys.argv[1:]]))

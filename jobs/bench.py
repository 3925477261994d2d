"""``ecjax bench``: time ecjax beside the alternatives."""

import sys

from omegaconf import DictConfig

from ecjax.hydra_run import options_from
from ecjax.studies.bench.options import BenchOptions


def bare_words(words: list[str]) -> list[str]:
    """``ecjax bench CASE ...``."""
    return [f"cases=[{','.join(words)}]"]


def run(cfg: DictConfig) -> int:
    """Run on a composed configuration; returns the exit code."""
    options = options_from(cfg, BenchOptions)
    from ecjax.console import OUTPUT
    from ecjax.studies.bench.study import bench_study

    return bench_study(options, OUTPUT)


if __name__ == "__main__":
    from ecjax.cli import command

    sys.exit(command(["bench", *sys.argv[1:]]))

"""``ecjax codes``: candidate codes beside each other: durability, overhead, repair."""

import re
import sys

from omegaconf import DictConfig

from ecjax.hydra_run import options_from
from ecjax.studies.codes.options import CodesOptions

_COMMA = re.compile(r",(?![^(]*\))")  # outside of brackets


def bare_words(words: list[str]) -> list[str]:
    """``ecjax codes 8+3 'lrc(12,2,2)' ...``: candidates."""
    names = [name for word in words for name in _COMMA.split(word)]
    quoted = ",".join(f"'{name}'" for name in names)
    return [f"codes=[{quoted}]"]


def run(cfg: DictConfig) -> int:
    """Run on a composed configuration; returns the exit code."""
    options = options_from(cfg, CodesOptions)
    from ecjax.console import OUTPUT
    from ecjax.studies.codes.study import codes_study

    return codes_study(options, OUTPUT)


if __name__ == "__main__":
    from ecjax.cli import command

    sys.exit(command(["codes", *sys.argv[1:]]))

"""``ecjax ceph``: roles in the placement groups of a real cluster, and commands that bring them about."""

import sys
from pathlib import Path

from omegaconf import DictConfig

from ecjax.errors import UserError
from ecjax.hydra_run import options_from
from ecjax.studies.ceph.options import CephOptions


def bare_words(words: list[str]) -> list[str]:
    """``ecjax ceph DUMPS``: a folder of dumps."""
    if len(words) > 1 or not Path(words[0]).exists():
        missing = "" if len(words) > 1 else ", which is not there"
        raise UserError(
            f"found {' '.join(words)}{missing}; allowed: key=value, or the path of one folder of dumps (ecjax ceph "
            "--collect says how to get one)"
        )
    return [f"dumps={words[0]}"]


def run(cfg: DictConfig) -> int:
    """Run on a composed configuration; returns the exit code."""
    options = options_from(cfg, CephOptions)
    from ecjax.console import OUTPUT
    from ecjax.studies.ceph.study import ceph_study

    return ceph_study(options, OUTPUT)


if __name__ == "__main__":
    from ecjax.cli import command

    sys.exit(command(["ceph", *sys.argv[1:]]))

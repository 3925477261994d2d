"""``ecjax optimize``: plan code lengths, placement and scheduling; latency against storage cost."""

import sys

from omegaconf import DictConfig

from ecjax.errors import UserError
from ecjax.hydra_run import options_from
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.tables.folder import location


def bare_words(words: list[str]) -> list[str]:
    """``ecjax optimize FOLDER``: the tables that ``ecjax analyze out=FOLDER`` wrote."""
    if len(words) > 1 or not location(words[0]).is_dir():
        raise UserError(f"found {' '.join(words)}; allowed: key=value, or the folder of one ecjax analyze")
    folder = location(words[0])
    if not (folder / "files").is_dir():
        raise UserError(f"{words[0]}: has no files table; it is not the folder of an ecjax analyze")
    return [f"{name}={folder / name}" for name in ("nodes", "files") if (folder / name).is_dir()]


def run(cfg: DictConfig) -> int:
    """Run on a composed configuration; returns the exit code."""
    options = options_from(cfg, OptimizeOptions)
    from ecjax.console import OUTPUT
    from ecjax.studies.optimize.study import optimize_study

    return optimize_study(options, OUTPUT)


if __name__ == "__main__":
    from ecjax.cli import command

    sys.exit(command(["optimize", *sys.argv[1:]]))

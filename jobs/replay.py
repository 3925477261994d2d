"""``ecjax replay``: what plans and dispatch policies deliver, request by request, beside estimate and bound."""

import sys

from omegaconf import DictConfig

from ecjax.errors import UserError
from ecjax.hydra_run import options_from
from ecjax.studies.replay.options import ReplayOptions


def bare_words(words: list[str]) -> list[str]:
    """``ecjax replay FOLDER``: the plans of ``ecjax optimize out=FOLDER``; ``ecjax replay LOG``: a trace."""
    from ecjax.tables.folder import location  # not for every command
    from ecjax.tables.patterns import as_option, is_missing

    plans = [word for word in words if (location(word) / "placements").is_dir()]
    if is_missing(words) or (plans and len(words) > 1):
        raise UserError(
            f"found {' '.join(words)}; allowed: key=value, the folder of one ecjax optimize, or an access log"
        )
    return [f"plan={words[0]}" if plans else as_option("trace", words)]


def run(cfg: DictConfig) -> int:
    """Run on a composed configuration; returns the exit code."""
    options = options_from(cfg, ReplayOptions)
    from ecjax.console import OUTPUT
    from ecjax.studies.replay.study import replay_study

    return replay_study(options, OUTPUT)


if __name__ == "__main__":
    from ecjax.cli import command

    sys.exit(command(["replay", *sys.argv[1:]]))

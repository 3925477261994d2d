"""Plugins of Hydra for sweeps: a launcher that is handed all jobs at once, and a sweeper that leaves checks to it.

Hydra takes plugins from modules below ``hydra_plugins``; this one is put there when a sweep begins, so that ecjax needs
no second package.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, ListConfig

from ecjax.errors import EXIT_USER, UserError

# Hydra reads its own plugins anew when it first looks for any: what is derived from one has to come after that
Plugins.instance()

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper  # noqa: E402

MODULE = "hydra_plugins.ecjax_sweeps"

RunJobs = Callable[[list[list[str]], list[str], int], list[Any]]


class ListLauncher(Launcher):
    """Hands the jobs of a sweep, or of a round of it, to ecjax.

    Args:
        objective: columns of ``runs`` that a job returns, one or a list; None: its exit code.
    """

    run_jobs: (
        RunJobs  # overrides of the jobs, columns to return, number of the first job; what the jobs return
    )

    def __init__(self, objective: str | ListConfig | None = None) -> None:
        several = [] if objective is None else [objective] if isinstance(objective, str) else list(objective)
        self._columns = [str(name) for name in several]
        self._config: DictConfig | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what Hydra composed."""
        self._config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs; every one of them has ended then."""
        setup_globals()
        if self._config is not None:
            # where sweepers write what they found
            Path(str(self._config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        jobs = [list(overrides) for overrides in job_overrides]
        values = type(self).run_jobs(jobs, self._columns, initial_job_idx)
        return [
            JobReturn(overrides=job, cfg=self._config, status=JobStatus.COMPLETED, _return_value=value)
            for job, value in zip(jobs, values, strict=True)
        ]


class ListSweeper(BasicSweeper):
    """Hydra's basic sweeper, which composes every job once more to see whether it can be: 0.1 s each."""

    def sweep(self, arguments: list[str]) -> Any:
        """Run all combinations of the values.

        Raises:
            UserError: values are an interval, from which only other sweepers choose.
        """
        for override in OverridesParser.create().parse_overrides(arguments):
            if override.is_sweep_override() and not override.is_discrete_sweep():
                raise UserError(
                    f"{override.get_key_element()}: found an interval; allowed: values, as in 1,2 or range(1,3), or a "
                    "sweeper that chooses values, as in hydra/sweeper=optuna"
                )
        assert self.config is not None
        kept = _Kept(Path(str(self.config.hydra.sweep.dir)))
        try:
            rounds = super().sweep(arguments)
        except UserError:
            kept.clear()
            raise
        if all(job.return_value == EXIT_USER for jobs in rounds for job in jobs):
            kept.clear()
        return rounds

    def validate_batch_is_legal(self, batch: Sequence[Sequence[str]]) -> None:
        """Nothing: the launcher composes and checks before it starts anything."""


class _Kept:
    """What Hydra keeps of a sweep goes where nothing else came of it.

    Args:
        folder: that Hydra keeps it in.
    """

    def __init__(self, folder: Path) -> None:
        above = [folder, *folder.parents]
        self._folder, self._made = folder, [each for each in above if not each.exists()]

    def clear(self) -> None:
        """Take away the folders that were made, if there is but Hydra's own file."""
        with suppress(OSError):
            if self._made and [each.name for each in self._folder.iterdir()] == ["multirun.yaml"]:
                (self._folder / "multirun.yaml").unlink()
                for each in self._made:
                    each.rmdir()


def register(run_jobs: RunJobs) -> None:
    """Make Hydra know the plugins.

    Args:
        run_jobs: runs the jobs of a sweep.
    """
    ListLauncher.run_jobs = staticmethod(run_jobs)
    above, _, name = MODULE.rpartition(".")
    module = sys.modules[MODULE] = ModuleType(MODULE)
    setattr(_package(above), name, module)
    for plugin in (ListLauncher, ListSweeper):
        plugin.__module__ = MODULE
        setattr(module, plugin.__name__, plugin)
        Plugins.instance().register(plugin)


def _package(name: str) -> ModuleType:
    """The package that plugins of Hydra share; where none is installed an empty one."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        # with a specification: who looks for a plugin in a package without one gets an error
        package = sys.modules[name] = module_from_spec(ModuleSpec(name, loader=None, is_package=True))
        return package

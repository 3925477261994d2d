"""The claims of the papers, a module or package for each."""

from importlib import import_module

from ecjax.studies.reproduce.claim import Paper


def paper(name: str) -> Paper:
    """The studies and claims of a paper.

    Args:
        name: one of ``options.PAPERS``.
    """
    module = import_module(f"{__name__}.{name}")
    made: Paper = module.PAPER
    return made

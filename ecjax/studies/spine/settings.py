"""What tells runs in one folder apart that no column does: parameters in ``params``, and inputs."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ecjax.options import shown

_DIGITS = 6  # of an input id, to tell a few of them apart


def differing_settings(
    runs: pd.DataFrame, like: Sequence[str], apart: Collection[str], columns: Sequence[str] = ()
) -> pd.Series:
    """Of each run the parameters and the input that runs of its kind do not share: runs of one text are seeds of one.

    Args:
        runs: rows of the ``runs`` dataset, with ``params`` and ``input_id``.
        like: columns; runs that are equal in these are of one kind.
        apart: parameters, or sections of them, that are no settings: they have columns of their own, or are results.
        columns: of what belongs to inputs, named as settings are.

    Returns:
        As ``threads=8, k_max=2``; empty where all runs of a kind have the same. Settings that differ in one kind are
        named in all, an input only where nothing else tells it from another.
    """
    kinds = _kinds(runs, like)
    settings = [
        {name: value for name, value in parameters.items() if name.split(".")[0] not in apart}
        for parameters in _parameters_of(runs)
    ]
    for name in columns:
        for each, value in zip(settings, runs[name], strict=True):
            if pd.notna(value):
                each[name] = _text(value)
    words = _differing(kinds, settings)
    alike = list(zip(kinds, words, strict=True))
    ids = runs["input_id"].astype(str).str[:_DIGITS]
    if len(set(zip(alike, ids, strict=True))) > len(set(alike)):
        words = [f"{word}, input {name}".removeprefix(", ") for word, name in zip(words, ids, strict=True)]
    return pd.Series(words, runs.index, object)


def differing_parameters(runs: pd.DataFrame, like: Sequence[str], names: Collection[str]) -> list[str]:
    """As ``differing_settings``, of the parameters ``names`` alone."""
    settings = [
        {name: value for name, value in parameters.items() if name in names}
        for parameters in _parameters_of(runs)
    ]
    return _differing(_kinds(runs, like), settings)


def _kinds(runs: pd.DataFrame, like: Sequence[str]) -> np.ndarray:
    """A number per kind, (runs,)."""
    return runs.groupby(list(like), sort=False, dropna=False).ngroup().to_numpy()


def _differing(kinds: np.ndarray, settings: Sequence[Mapping[str, str]]) -> list[str]:
    """Of each run those settings that differ between runs of a kind, in words."""
    names = list(dict.fromkeys(name for each in settings for name in each))
    differing = [
        name
        for name in names
        if len({(kind, each.get(name)) for kind, each in zip(kinds, settings, strict=True)}) > len(set(kinds))
    ]
    return [", ".join(f"{name}={each[name]}" for name in differing if name in each) for each in settings]


def _parameters_of(runs: pd.DataFrame) -> list[Mapping[str, str]]:
    """Parameters of each run; none of runs that do not say them."""
    texts = ["{}" if pd.isna(text) else text for text in runs["params"]]
    parameters = {text: _parameters(text) for text in set(texts)}
    return [parameters[text] for text in texts]


def _parameters(text: str) -> Mapping[str, str]:
    """Parameters as an option would set them, those of sections and of a list with one mapping by their own names."""
    flat: dict[str, str] = {}
    for name, value in json.loads(text).items():
        flat |= _flat(name, value)
    return flat


def _flat(name: str, value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return {f"{name}.{key}": _text(each) for key, each in value.items()}
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        # of several the input id tells
        return {key: _text(each) for key, each in value[0].items()} if len(value) == 1 else {}
    return {} if value is None else {name: _text(value)}


def _text(value: Any) -> str:
    """A value as an option would set it; a number as short as it can be."""
    short = f"{value:g}" if isinstance(value, float) else ""
    return short if short and float(short) == value else shown(value)

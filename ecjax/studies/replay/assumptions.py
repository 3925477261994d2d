"""What bounds and estimates assume, and which of it a replay breaks: a bound that is void is called so."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

ASSUMED = "Poisson arrivals at constant rates, nodes that are up, no decoding and no client links"


# what of it is about arrivals
_NOT_POISSON = ("arrivals are those of the log", "arrivals come in bursts", "rates vary")


def broken(runs: pd.DataFrame) -> list[str]:
    """Assumptions that any of the runs breaks, in words; empty where all of them hold.

    Args:
        runs: rows of the ``runs`` dataset.
    """
    words: dict[str, None] = {}
    for arrivals, params in zip(runs["arrivals"], runs["params"], strict=True):
        words |= dict.fromkeys(_broken(arrivals, json.loads(params) if isinstance(params, str) else {}))
    return list(words)


def beside_arrivals(runs: pd.DataFrame) -> list[str]:
    """Those of them that are not about arrivals: estimates under the arrivals as they come assume them, too.

    Args:
        runs: rows of the ``runs`` dataset.
    """
    return [words for words in broken(runs) if words not in _NOT_POISSON]


def _broken(arrivals: str | None, parameters: Mapping[str, Any]) -> list[str]:
    inputs = parameters.get("inputs") or {}
    cases = {
        _NOT_POISSON[0]: arrivals == "trace",
        _NOT_POISSON[1]: arrivals == "bursts",
        _NOT_POISSON[2]: "rates" in inputs,
        "nodes fail": "outages" in inputs,
        "decoding takes time": bool(parameters.get("decode_s_per_byte")),
        "clients' links take time": parameters.get("client_bandwidth_bytes_per_s") is not None,
    }
    return [words for words, breaks in cases.items() if breaks]


def bound_label(runs: pd.DataFrame, word: str = "bound") -> str:
    """What a figure calls a bound beside these runs."""
    words = broken(runs)
    return f"{word}, void: {', '.join(words)}" if words else f"{word} (Poisson arrivals)"


def estimate_label(runs: pd.DataFrame, word: str = "estimated") -> str:
    """What a figure calls an estimate of mean rates beside these runs."""
    return f"{word}, if Poisson" if set(broken(runs)) & set(_NOT_POISSON) else word


def source_label(source: str, word: str, runs: pd.DataFrame) -> str:
    """What a figure calls the rows of a source of ``latencies``, whose word is ``word``, beside these runs."""
    labels = {"bound": bound_label, "estimated": estimate_label}
    return labels[source](runs) if source in labels else word

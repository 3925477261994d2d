"""What bounds and estimates assume, and which of it a replay breaks: a bound that is void is called so."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

ASSUMED = "Poisson arrivals at constant rates, nodes that are up, no decoding and no client links"


def broken(runs: pd.DataFrame) -> list[str]:
    """Assumptions that any of the runs breaks, in words; empty where all of them hold.

    Args:
        runs: rows of the ``runs`` dataset.
    """
    words: dict[str, None] = {}
    for arrivals, params in zip(runs["arrivals"], runs["params"], strict=True):
        words |= dict.fromkeys(_broken(arrivals, json.loads(params) if isinstance(params, str) else {}))
    return list(words)


def _broken(arrivals: str | None, parameters: Mapping[str, Any]) -> list[str]:
    inputs = parameters.get("inputs") or {}
    cases = {
        "arrivals are those of the log": arrivals == "trace",
        "arrivals come in bursts": arrivals == "bursts",
        "rates vary": "rates" in inputs,
        "nodes fail": "outages" in inputs,
        "decoding takes time": bool(parameters.get("decode_s_per_byte")),
        "clients' links take time": parameters.get("client_bandwidth_bytes_per_s") is not None,
    }
    return [words for words, breaks in cases.items() if breaks]


def bound_label(runs: pd.DataFrame, word: str = "bound") -> str:
    """What a figure calls a bound beside these runs."""
    words = broken(runs)
    return f"{word}, void: {', '.join(words)}" if words else f"{word} (Poisson arrivals)"

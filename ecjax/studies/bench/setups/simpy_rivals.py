"""A replay of ours beside SimPy, a general simulator, on the same requests and the same random numbers.

SimPy gets all that is random ready-made, and counts nothing but latencies.
"""

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from ecjax.studies.bench.run import Outcome, Runner

SIMPY = "SimPy"
Latencies = Callable[[], np.ndarray]  # (requests,) s


def beside_simpy(
    runner: Runner, ours: Latencies, prepare: Callable[[], Latencies], what: str
) -> list[tuple[str, Outcome, str]]:
    """Both replays with their outcomes, and notes with the ratio of their speeds; ours alone without SimPy.

    Args:
        runner: times them.
        ours: our replay.
        prepare: draws what is random, and gives the replay in SimPy; only called where SimPy is installed.
        what: name of the requests.
    """
    if not find_spec("simpy"):
        return [("ecjax", runner.time(ours), "SimPy is not installed: nothing to compare with")]
    outcomes = runner.race({"ecjax": ours, SIMPY: prepare()})
    fast, slow = outcomes["ecjax"], outcomes[SIMPY]
    ratio = slow.timing.min_s / fast.timing.min_s
    apart = np.abs(slow.value - fast.value).max()
    per_s = len(slow.value) / slow.timing.min_s
    return [
        (
            "ecjax",
            fast,
            f"{ratio:,.0f} times as fast as SimPy; no latency differs by more than {apart:.1g} s",
        ),
        (SIMPY, slow, f"{per_s:,.0f} {what}/s; nothing is drawn, latencies only"),
    ]

"""How a replay of a log alone ends: which service law came closest to what was observed."""

import pandas as pd

from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.recommend import recommend


def predictions(*services):
    """Rows of ``runs``: name of a service law and its mean, 100 ms observed."""
    return pd.DataFrame(
        [
            {"run_id": name, "status": "ok", "service": name, "mean_s": mean, "observed_mean_s": 0.1}
            | {"prediction": f"predicted mean {mean} s"}
            for name, mean in services
        ]
    )


def test_the_closest_law_is_named_with_the_next_command():
    options = ReplayOptions(trace="my log.csv")
    advice = recommend(predictions(("exponential", 0.16), ("empirical", 0.103)), options)
    assert advice.run_id == "empirical"
    assert advice.sentence == (
        "The second half of the log, by service=empirical of its first half: predicted mean 0.103 s. That is the "
        "closest; service=exponential is off by 60 % in the mean. Next, for plans by such laws: ecjax analyze "
        "'my log.csv'"
    )
    alone = recommend(predictions(("empirical", 0.103)), options)
    assert "closest" not in alone.sentence and alone.among == "the only prediction"
    nothing = predictions(("empirical", float("nan")))
    assert recommend(nothing, options) is None

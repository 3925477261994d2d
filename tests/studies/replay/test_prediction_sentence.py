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
    columns = {"arrival_s": "ts", "file_id": "object key", "bytes": 4096}
    read_so = ReplayOptions(trace="log.csv", columns=columns, extent_bytes=1024, max_rejects=0.2)
    assert recommend(predictions(("empirical", 0.103)), read_so).sentence.endswith(
        "ecjax analyze log.csv 'columns={arrival_s: ts, file_id: \"object key\", bytes: 4096}' extent_bytes=1024 "
        "max_rejects=0.2"
    )
    alone = recommend(predictions(("empirical", 0.103)), options)
    assert "closest" not in alone.sentence and alone.among == "the only prediction"
    nothing = predictions(("empirical", float("nan")))
    assert recommend(nothing, options) is None


def test_the_closest_law_is_so_by_what_its_prediction_says():
    """By the arrivals of the first half, which the words are of, 120 and 104 ms; by the replay 101 and 140."""
    table = predictions(("exponential", 0.101), ("empirical", 0.14))
    advice = recommend(table.assign(trace_estimated_mean_s=[0.12, 0.104]), ReplayOptions(trace="log.csv"))
    assert advice.run_id == "empirical"
    assert "That is the closest; service=exponential is off by 20 % in the mean." in advice.sentence
    # a law without an estimate is told of by its replay
    advice = recommend(table.assign(trace_estimated_mean_s=[None, 0.104]), ReplayOptions(trace="log.csv"))
    assert advice.run_id == "exponential" and "service=empirical is off by 4 %" in advice.sentence

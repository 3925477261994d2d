"""The commands behind the figures of the JLCM paper."""

from ecjax.studies.reproduce.claim import Study

_FEW = "requests=20000", "replications=4"
_MANY = "requests=200000", "replications=8"

STUDIES = (
    Study(
        "fig9",
        ("replay", "experiment=replay_fig9", "policy=probabilistic,round_robin"),
        (*_FEW, "planning.cluster.files=200"),
        _MANY,
    ),
)

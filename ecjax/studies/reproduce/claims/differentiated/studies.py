"""Studies behind the figures of the differentiated-latency paper."""

from typing import Any

from ecjax.studies.reproduce.claim import Study

_PLANS: dict[str, Any] = {"small": ("cluster.files=200", "estimate=false")}


def _replay(name: str, *words: str, estimate: str = "estimate=false") -> Study:
    small = ("planning.cluster.files=200", "requests=40000", estimate)
    return Study(name, ("replay", *words), small, ("requests=200000",))


STUDIES = (
    Study("fig6", ("optimize", "experiment=classes_fig6", "eps=0.01"), **_PLANS),
    _replay("fig8", "experiment=classes_fig8", "planning.queue=weighted"),
    _replay("fig8_priority", "experiment=classes_fig8_priority", "planning.importance=[[1,0],[1,0.4],[1,1]]"),
    # both queues of Fig. 8 near saturation: plans balance the nodes, so that their load is below the stated one
    _replay(
        "saturated_priority",
        *(
            "experiment=classes_fig8_priority",
            "planning.cluster.load=0.97",
            "planning.rate_scale=[0.6,1,1.25]",
        ),
    ),
    _replay(
        "saturated_weighted",
        *("experiment=classes_fig8", "planning.queue=weighted"),
        *("planning.cluster.load=0.97", "planning.rate_scale=[1.2]"),
        "planning.importance=[[1,0.4]]",
    ),
    _replay("fairness", "experiment=classes_fairness"),
    _replay("sizes", "experiment=classes_fig8_priority", "planning.size_scale=[0.5,0.75,1,1.25,1.5]"),
    _replay("fig9", "experiment=classes_fig9"),
    _replay("fig11", "experiment=classes_fig11"),
    _replay("fig10", "experiment=classes_fig10"),
    _replay("fig12", "experiment=classes_fig12", estimate="estimate=true"),
    Study(
        "shares",
        (
            *("optimize", "queue=weighted", "theta=[0]", "importance=[1,0.4]", "rate_scale=[0.647,1]"),
            "exchange=true",
            *("min_extra_chunks=3", "cluster.hardware=tahoe", "cluster.k=[4,4]", "cluster.rates=[1,1]"),
            *("cluster.bytes=200e6", "cluster.load=0.6"),
        ),
        **_PLANS,
    ),
)

"""Studies behind the figures of the differentiated-latency paper."""

from typing import Any

from ecjax.studies.reproduce.claim import Study

_PLANS: dict[str, Any] = {"small": ("cluster.files=200", "estimate=false")}


def _replay(name: str, *words: str, estimate: str = "estimate=false", small: tuple[str, ...] = ()) -> Study:
    fewer = ("planning.cluster.files=200", "requests=40000", estimate, *small)
    return Study(name, ("replay", *words), fewer, ("requests=200000",))


STUDIES = (
    Study("fig6", ("optimize", "experiment=classes_fig6", "eps=0.01"), **_PLANS),
    _replay(
        "fig8",
        *("experiment=classes_fig8", "planning.queue=weighted"),
        small=("planning.importance=[[1,0.1],[1,0.4],[1,0.7],[1,0.9],[1,1]]",),
    ),
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
        *("planning.cluster.load=0.97", "planning.rate_scale=[1.25]"),
        "planning.importance=[[1,0.4]]",
    ),
    _replay(
        "fairness",
        "experiment=classes_fairness",
        small=("planning.class_rate_scale=[[0.125,1],[0.5,1],[1,1]]",),
    ),
    # the sizes of Fig. 9 and 11, at a load of 0.95 with balanced nodes
    _replay(
        "fairness_sizes",
        *("experiment=classes_fairness", "planning.class_rate_scale=[[1,1]]", "planning.rate_scale=1.25"),
        *("planning.cluster.bytes=null", "planning.cluster.sizes=[50e6,100e6,150e6,200e6,250e6]"),
    ),
    _replay("sizes", "experiment=classes_fig8_priority", "planning.size_scale=[0.5,0.75,1,1.25,1.5]"),
    _replay("fig9", "experiment=classes_fig9"),
    _replay("fig11", "experiment=classes_fig11"),
    _replay(
        "fig10",
        "experiment=classes_fig10",
        small=("planning.class_rate_scale=[[0.5556,1],[0.7037,1],[0.8519,1],[1,1]]",),
    ),
    _replay(
        "fig12",
        "experiment=classes_fig12",
        estimate="estimate=true",
        small=("planning.rate_scale=[0.647,0.824,1]",),
    ),
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

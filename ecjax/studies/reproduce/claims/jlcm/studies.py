"""Studies behind the figures of the JLCM paper."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ecjax.studies.reproduce.claim import Study
from ecjax.studies.reproduce.options import FULL

# of Fig. 10: n and k by class, rates as there
CODES = ((12, 6), (10, 7), (10, 6), (8, 4))
_RATES = (354.0, 236.0, 236.0, 354.0)
_BYTES, _SERVICE_S, _CHUNK_BYTES = 150e6, 13.9, 12.5e6
_SPEEDS = (1.0, 1.3, 1.6)
LIMIT = sum(4 / slow for slow in _SPEEDS) / (12 / max(_SPEEDS))  # of the rate, when an even spread has load 1
_LOADS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.95)  # of the nodes, where probabilistic dispatch is judged
_EVEN = 0.95  # load of an even spread in studies whose rates are scaled to a load of the nodes


def _printed_codes(folder: Path, size: str) -> tuple[str, ...]:
    """Files of the printed codes on random nodes of the built-in cluster, rates for a largest load of about 0.8."""
    from ecjax.problem import builtin
    from ecjax.problem.cluster_options import ClusterOptions

    count = 1000 if size == FULL else 200
    random = np.random.default_rng(10)
    per_class = count // len(CODES)
    names = builtin.nodes(ClusterOptions(hardware="tahoe").completed())["node_id"].to_pylist()
    nodes = len(names)
    work = _BYTES * _SERVICE_S / _CHUNK_BYTES  # seconds of service per read, at the fastest node
    total = 0.8 * nodes / max(_SPEEDS) / work
    rows = []
    for label, ((n, k), rate) in enumerate(zip(CODES, _RATES, strict=True), start=1):
        for _ in range(per_class):
            rows.append(
                {
                    "bytes": _BYTES,
                    "k": k,
                    "rate_per_s": total * rate / sum(_RATES) / per_class,
                    "nodes": [names[node] for node in sorted(random.permutation(nodes)[:n])],
                    "service_class": str(label),
                }
            )
    table = pa.Table.from_pylist([{"file_id": index} | row for index, row in enumerate(rows)])
    path = folder / "files.parquet"
    pq.write_table(table, path)
    return (f"planning.files={path}",)


def _requests(small: int, *words: str) -> dict[str, Any]:
    """Fewer reads and no estimates for ``size=small``, and what else is smaller."""
    return {"small": (f"requests={small}", "estimate=false", *words), "full": ("requests=200000",)}


_FEW = "planning.cluster.files=200"
_FIG10 = (
    "replay",
    "plan=none",
    "planning.cluster.hardware=tahoe",
    "policy=[uniform,round_robin,late_binding]",
)
# a chunk of any k takes as long as the one of 12.5 MB that service was measured with: 5.6 of them per read, where
# in proportion a read has the work of 12
EQUAL_LOAD = 0.8 * 5.6 / 12
_ALIKE = (
    "cluster.hardware=tahoe",
    "cluster.slowdown=[1]",
    "cluster.dollars_per_tb=[80e3]",
    "cluster.connect_mean_s=[0]",
    "cluster.nodes_per_site=12",
)

# the longest first, beside which the others run
STUDIES = (
    Study(
        "sizes",
        (
            *(
                "replay",
                "experiment=replay_fig9",
                "planning.cluster.bytes=200e6",
                "policy=[probabilistic,round_robin]",
            ),
            *(
                "planning.method=[certified,oblivious_lb,random_cp,max_ec]",
                "planning.size_scale=[0.25,0.5,0.75,1]",
            ),
        ),
        **_requests(20_000, _FEW),
    ),
    Study(
        "fig13",
        (
            *("optimize", "experiment=jlcm_fig13", "method=[certified,published]"),
            "theta=[0,0.5,1,2,5,10,20,50,100,200,1e6]",
        ),
        small=("theta=[0,0.5,5,50,200,1e6]", "estimate=false", "gap=0.01"),
    ),
    Study(
        "fig12_plans",
        (
            *("optimize", "experiment=jlcm_fig12", "min_extra_chunks=0", "cluster.grouped=true"),
            "method=[certified,published]",
        ),
        small=("rate_scale=[0.8,0.88,1]", "estimate=false", "gap=0.01"),
    ),
    Study(
        "fig12",
        ("replay", "plan_where=method=certified"),
        **_requests(40_000),
        replays="fig12_plans",
    ),
    Study(
        "loads",
        (
            *(
                "replay",
                "planning.cluster.hardware=tahoe",
                f"planning.cluster.load={_EVEN}",
                "planning.cluster.files=60",
            ),
            *("planning.method=[oblivious_lb]", "planning.theta=[0]", "policy=[probabilistic,late_binding]"),
            # plans balance the nodes: each is at 0.1, ..., 0.95, where an even spread would have LIMIT times that
            f"rate_scale=[{','.join(f'{load * LIMIT / _EVEN:.4f}' for load in _LOADS)}]",
            "service=[auto,exponential]",
        ),
        **_requests(20_000),
    ),
    Study(
        "feasible",
        (
            *("optimize", "cluster.hardware=tahoe", f"cluster.load={_EVEN}", "cluster.files=40", "theta=[0]"),
            *("method=[published]", "estimate=false"),
            f"rate_scale=[1,{0.98 * LIMIT / _EVEN:.4f},{1.02 * LIMIT / _EVEN:.4f}]",
        ),
    ),
    Study(
        "stationary",
        (
            *(
                "replay",
                "plan=none",
                "planning.cluster.files=1",
                "planning.cluster.k=[4]",
                "planning.cluster.rates=[1]",
            ),
            *(f"planning.{word}" for word in _ALIKE),
            *("planning.cluster.load=0.95", "rate_scale=[1,1.105]"),
        ),
        **_requests(100_000),
    ),
    Study(
        "alike",
        ("optimize", *_ALIKE, "theta=[0]", "min_extra_chunks=0", "estimate=false"),
    ),
    *(
        Study(
            f"read_{name}",
            (
                *(
                    "optimize",
                    "cluster.hardware=tahoe",
                    "cluster.files=60",
                    "cluster.rates=[1]",
                    "cluster.bytes=100e6",
                ),
                *("theta=[0]", "method=[published]", "min_extra_chunks=0", "estimate=false", *words),
            ),
        )
        for name, words in (("d", ("cluster.k=[4]", "d=[8]")), ("k", ("cluster.k=[8]",)))
    ),
    *(
        Study(
            f"read_{name}_replayed",
            ("replay", "policy=probabilistic", "requests=4000", "estimate=false"),
            replays=f"read_{name}",
        )
        for name in ("d", "k")
    ),
    Study("fig8", ("optimize", "experiment=jlcm_fig8", "eps=0.01", "estimate=false")),
    Study(
        "fig9_plans",
        ("optimize", "experiment=jlcm_fig9", "estimate=false"),
        small=("cluster.files=200",),
    ),
    Study(
        "fig9",
        ("replay", "plan_run=all", "policy=[probabilistic,round_robin]"),
        **_requests(40_000),
        replays="fig9_plans",
    ),
    Study(
        "fig10_lengths",
        ("optimize", "experiment=jlcm_fig10", "cluster.grouped=true", "min_extra_chunks=0"),
        small=("theta=[0.1,5,50,200]", "method=[published]", "estimate=false"),
        full=("theta=[0.1,0.5,1,2,5,10,20,50,100,200]", "method=[certified,published]"),
    ),
    Study("fig10", (*_FIG10, "rate_scale=[0.25,1]"), **_requests(30_000), inputs=_printed_codes),
    Study(
        "fig10_equal",
        (*_FIG10, "rate_scale=[0.5,2]", "planning.size_scaling=none"),
        **_requests(30_000),
        inputs=_printed_codes,
    ),
    Study("fig11", ("replay", "experiment=replay_fig11"), **_requests(40_000, _FEW)),
)

"""Parts of the cases of caches: plans of one and of many, and replays under every policy."""

from ecjax.studies.bench.cases.case import Part, Sizes, Target

# (items, chunks of the capacity, chunks of an item)
_THOUSAND = Sizes((1000, 100, 6), (100, 20, 6))

PARTS = (
    Part("caching_offline", "caching:offline", dict(size=_THOUSAND), {"ecjax *": Target(1e-3)}),
    Part(
        "caching_offline",
        "caching:offline",
        dict(size=(1000, 1000, 15)),
        {"ecjax *": Target(2e-3)},
        quick=False,
    ),
    Part(
        "caching_offline",
        "caching:offline",
        dict(size=(10**6, 10**5, 10)),
        {"ecjax *": Target(5.0)},
        quick=False,
    ),
    # SciPy's integer programme takes seconds beyond
    Part("caching_offline", "caching:beside_scipy", dict(size=(60, 30, 6))),
    Part(
        "caching_batched",
        "caching:batched",
        dict(size=_THOUSAND, caches=Sizes(1000, 3)),
        {"ecjax exact_batched": Target(2.0)},
        memory=True,
    ),
    Part(
        "caching_online",
        "caching:online",
        dict(count=Sizes(10**6, 2000), size=(1000, 1000, 15)),
        {
            "ecjax exact": Target(rows_per_s=3e5, gap=1e-3),
            "ecjax exact, p99.99 of a decision": Target(50e-6),
            "ecjax near_optimal_dp": Target(gap=4e-3),
            "ecjax samplex": Target(gap=15e-3),
        },
    ),
    *(
        Part(
            "caching_learning",
            "caching:learning",
            dict(count=Sizes(10**6, 2000), size=size, exponent=exponent),
            {"ecjax exact, by a mixture": Target(rows_per_s=2e5)},
            quick=size[0] == 2000,
        )
        for size, exponent in (
            ((2000, 600, 6), 1.0),
            ((20_000, 2000, 1), 0.9),
            ((20_000, 8000, 4), 0.9),
            ((200_000, 20_000, 1), 0.8),
        )
    ),
    Part(
        "caching_peers",
        "caching_peers:beside_libcachesim",
        dict(count=Sizes(10**6, 2000), items=1000, room=100),
    ),
)

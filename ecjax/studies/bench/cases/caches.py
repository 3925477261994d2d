"""Cases of caches: plans of one and of many, and replays under every policy."""

from ecjax.studies.bench.cases.case import Part, Sizes, Target, case

# (items, chunks of the capacity, chunks of an item)
_SMALL = (100, 20, 6)
_THOUSAND = Sizes((1000, 100, 6), _SMALL)

CASES = (
    case(
        "caching_offline",
        "plan a cache of 1000 and 10^6 items",
        Part("caching:offline", dict(size=_THOUSAND), {"ecjax exact": Target(1e-3)}),
        Part("caching:offline", dict(size=(1000, 1000, 15)), {"ecjax exact": Target(2e-3)}, quick=False),
        Part("caching:offline", dict(size=(10**6, 10**5, 10)), {"ecjax exact": Target(5.0)}, quick=False),
        # SciPy's integer programme takes seconds beyond
        Part("caching:beside_scipy", dict(size=(60, 30, 6))),
    ),
    case(
        "caching_batched",
        "plan 1000 caches of 1000 items at once",
        Part(
            "caching:batched",
            dict(size=_THOUSAND, caches=Sizes(1000, 3)),
            {"ecjax exact_batched": Target(2.0)},
            memory=True,
        ),
    ),
    case(
        "caching_online",
        "replay 10^6 reads under every policy",
        Part(
            "caching:online",
            dict(count=Sizes(10**6, 2000), size=(1000, 1000, 15)),
            {
                "ecjax exact": Target(rows_per_s=3e5, gap=1e-3),
                "ecjax exact, p99.99 of a decision": Target(50e-6),
                "ecjax near_optimal": Target(gap=4e-3),
                "ecjax samplex": Target(gap=15e-3),
            },
        ),
    ),
)

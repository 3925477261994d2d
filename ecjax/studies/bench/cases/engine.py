"""Parts of the cases of the engine, and of whole commands."""

from ecjax.studies.bench.cases.case import Part, Sizes, Target

PARTS = (
    Part("engine_overhead", "engine:overhead", dict(items=Sizes(1000, 20)), {"*": Target(rows_per_s=500)}),
    Part(
        "engine_commits",
        "engine:commits",
        dict(items=Sizes(10_000, 20)),
        {"*": Target(rows_per_s=500)},
        "once",
    ),
    Part("engine_start", "engine:start"),
    Part(
        "engine_speedup",
        "engine_speedup:two_actors",
        dict(items=Sizes(16, 2), replays=Sizes(100, 1), target_ratio=1.6),
    ),
    Part(
        "engine_scaling",
        "engine_scaling:beside_model",
        dict(
            actors=Sizes((1, 10, 50, 200), (2,)),
            beyond=Sizes((1000,), ()),
            items_s=Sizes((0.01, 0.1, 1.0), (0.01,)),
            most_items=Sizes(4000, 4),
            trips=Sizes(300, 10),
            idle_items=Sizes(1000, 20),
        ),
    ),
    Part("startup", "startup:help_text", targets={"ecjax --help": Target(1.0)}),
    Part(
        "startup",
        "startup:optimize",
        dict(cache="empty"),
        {"*": Target(15.0)},
        "once",
        quick=False,
    ),
    # filled by a run with an empty one
    Part("startup", "startup:optimize", dict(cache="full", small=Sizes(False, True)), {"*": Target(10.0)}),
)

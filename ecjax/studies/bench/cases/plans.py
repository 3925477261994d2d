"""Parts of the cases of planning: the two methods, placement, and plans for service classes."""

from ecjax.studies.bench.cases.case import Part, Sizes, Target

_FILES = Sizes(1000, 100)
_NINE_THETAS = (3.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_ONE = dict(thetas=(100.0,), name="one theta")
_NINE = dict(thetas=_NINE_THETAS, name="nine thetas")
_GAP = 1e-4
_BYTES = 4 * 10**9

PARTS = (
    Part(
        "projection",
        "projection:rivals",
        dict(rows=Sizes(10**6, 20_000)),
        {"ecjax": Target(0.25), "ecjax_lanes": Target(0.25)},
    ),
    Part("jlcm", "jlcm:planned", dict(files=_FILES, **_ONE), {"*": Target(0.5)}),
    Part("jlcm", "jlcm:planned", dict(files=_FILES, **_NINE), {"*": Target(2.0)}),
    Part("jlcm", "jlcm:beside_scipy", dict(files=Sizes(10, 4)), runs="once"),
    Part(
        "jlcm_million",
        "jlcm:planned",
        dict(files=Sizes(10**6, 10_000), eps=0.0, most_iterations=25, **_ONE),
        {"*": Target(40.0, bytes=_BYTES)},
        "once",
        memory=True,
    ),
    *(
        Part(
            "certified",
            "certified:beside_published",
            dict(files=_FILES, load=load, mixed_sizes=mixed_sizes, gap=_GAP),
            {} if mixed_sizes else {"ecjax certified": Target(0.1, gap=_GAP)},
            quick=mixed_sizes or load == 0.9,
        )
        for load, mixed_sizes in ((0.6, False), (0.9, False), (0.6, True))
    ),
    Part(
        "certified_thetas",
        "certified:planned",
        dict(files=_FILES, thetas=Sizes(64, 4), gap=_GAP),
        {"*": Target(10.0, gap=_GAP)},
        "once",
    ),
    Part(
        "certified_thetas",
        "certified:planned",
        dict(files=10**5, thetas=64, gap=_GAP),
        {"*": Target(30.0, gap=_GAP)},
        "once",
        quick=False,
    ),
    Part(
        "certified_wide",
        "certified:planned",
        dict(files=Sizes(10**5, 500), nodes=Sizes(100, 30), gap=1e-3),
        {"*": Target(60.0, gap=1e-3)},
        "once",
        memory=True,
    ),
    *(
        Part(
            "certified_million",
            "certified:planned",
            dict(files=Sizes(files, files // 100), gap=_GAP),
            {"*": Target(1.5, bytes=_BYTES, gap=5e-5)} if files == 10**6 else {},
            # what JAX compiles would hide how the time of the smaller ones grows
            "once" if files == 10**6 else "warm once",
            memory=True,
        )
        for files in (10**4, 10**5, 10**6)
    ),
    Part(
        "certified_racks",
        "certified:planned",
        dict(files=Sizes(10**4, 4000), nodes=Sizes(300, 30), racks=Sizes(20, 10), gap=3e-4),
        {"*": Target(6.0, gap=3e-4)},
        "once",
    ),
    *(
        Part(
            "certified_racks",
            "certified:planned",
            dict(files=10**5, nodes=nodes, racks=racks, gap=gap),
            {"*": Target(seconds, gap=gap)},
            "once",
            quick=False,
            memory=True,
        )
        for nodes, racks, gap, seconds in ((1000, 62, 2e-4, 20.0), (5000, 312, 1e-3, 120.0))
    ),
    Part(
        "certified_streamed",
        "streamed:planned",
        dict(files=Sizes(10**8, 10**4), nodes=12, gap=_GAP),
        {"*beside writing": Target(15.0, gap=_GAP)},
        "once",
        memory=True,
    ),
    *(
        Part(
            "certified_sizes",
            "certified:by_sizes",
            dict(files=Sizes(files, 60), nodes=nodes, sizes=Sizes(sizes, 12), k=k, gap=_GAP),
            {"*": Target(seconds)},
            "warm once",
            quick=k == (4,) and files == 200,
        )
        for files, nodes, sizes, seconds in ((200, 9, 40, 2.0), (2500, 12, 2500, 5.0))
        for k in ((4,), (2, 3, 4, 5, 6))
    ),
    Part("certified_warm", "certified:after_change", dict(files=Sizes(10**5, 1000), gap=_GAP), runs="once"),
    Part("certified_warm", "certified:after_change", dict(files=10**6, gap=_GAP), runs="once", quick=False),
    Part("matching", "matching:matchings", dict(count=1000), {"ecjax_matchings": Target(0.025)}),
    Part("matching", "matching:one_pass", dict(files=Sizes(1000, 200)), {"*": Target(0.3)}),
    Part("matching", "matching:one_pass", dict(files=10**5), {"*": Target(30.0)}, "warm once", quick=False),
    Part("matching", "matching:one_pass", dict(files=10**5, mixed_sizes=True), runs="warm once", quick=False),
    *(
        Part(
            "class_plans",
            "class_plans:planned",
            dict(files=_FILES, queue=queue, start=start),
            {"*": Target(3.0)},
            memory=True,
        )
        for queue in ("priority", "weighted")
        for start in ("certified", "uniform")
    ),
    *(
        Part(
            "read_kinds",
            "read_kinds:planned",
            dict(files=Sizes(files, 12), nodes=Sizes(nodes, 8), load=load, gap=Sizes(1e-3, 0.05)),
            runs="once",
            quick=files == 40,
        )
        for files, nodes in ((40, 12), (300, 12), (1000, 120))
        for load in (0.3, 0.6)
    ),
    Part(
        "codes",
        "startup:codes",
        dict(
            candidates=Sizes("2:9+2:6", "3:4+2:2"),
            files=Sizes(1000, 40),
            nodes_per_site=Sizes(40, 4),
            load=0.4,
        ),
        {"*": Target(60.0, gap=0.01)},
        "warm once",
    ),
    Part("class_plans", "class_plans:beside_scipy", dict(files=Sizes(10, 4)), runs="warm once"),
    *(
        Part(
            "class_plans_large",
            "class_plans:planned",
            dict(files=Sizes(files, 200), queue=queue, start="certified"),
            {"*": Target(300.0)},
            "warm once",
            quick=files == 10**4,
            memory=True,
        )
        for files in (10**4, 10**5)
        for queue in ("priority", "weighted")
    ),
)

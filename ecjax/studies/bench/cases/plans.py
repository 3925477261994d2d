"""Cases of planning: the two methods, placement, and plans for service classes."""

from ecjax.studies.bench.cases.case import Part, Sizes, Target, case

_FILES = Sizes(1000, 100)
_NINE_THETAS = (3.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_GAP = 1e-4

CASES = (
    case(
        "projection",
        "project 10^6 rows of 12 nodes",
        Part(
            "projection:rivals",
            dict(rows=Sizes(10**6, 20_000)),
            {"ecjax": Target(0.25), "ecjax_lanes": Target(0.25)},
        ),
    ),
    case(
        "jlcm",
        "plan 1000 files on 12 nodes; small ones beside SciPy",
        Part("jlcm:planned", dict(files=_FILES, thetas=(100.0,), name="one theta"), {"*": Target(0.5)}),
        Part("jlcm:planned", dict(files=_FILES, thetas=_NINE_THETAS, name="nine thetas"), {"*": Target(2.0)}),
        Part("jlcm:beside_scipy", dict(files=Sizes(10, 4)), runs="once"),
    ),
    case(
        "jlcm_million",
        "plan 10^6 files, 50 iterations",
        Part(
            "jlcm:few_iterations",
            dict(files=Sizes(10**6, 10_000)),
            {"*": Target(40.0, bytes=4 * 10**9)},
            runs="once",
            memory=True,
        ),
    ),
    case(
        "certified",
        "plan 1000 files to a proven gap, beside the published method",
        *(
            Part(
                "certified:beside_published",
                dict(files=_FILES, load=load, mixed_sizes=mixed_sizes, gap=_GAP),
                {} if mixed_sizes else {"ecjax certified": Target(1.0, gap=_GAP)},
            )
            for load, mixed_sizes in ((0.6, False), (0.9, False), (0.6, True))
        ),
    ),
    case(
        "certified_thetas",
        "64 thetas of 1000 files",
        Part(
            "certified:planned",
            dict(files=_FILES, thetas=Sizes(64, 4), gap=_GAP),
            {"*": Target(10.0, gap=_GAP)},
            runs="once",
        ),
    ),
    case(
        "certified_wide",
        "plan 10^5 files on 100 nodes",
        Part(
            "certified:planned",
            dict(files=Sizes(10**5, 500), nodes=Sizes(100, 30), gap=1e-3),
            {"*": Target(60.0, gap=1e-3)},
            runs="once",
            memory=True,
        ),
    ),
    case(
        "certified_million",
        "plan 10^4, 10^5 and 10^6 files",
        # of the smaller ones what JAX compiles would hide how the time grows
        Part("certified:planned", dict(files=Sizes(10**4, 100), gap=_GAP), runs="warm once", memory=True),
        Part("certified:planned", dict(files=Sizes(10**5, 1000), gap=_GAP), runs="warm once", memory=True),
        Part(
            "certified:planned",
            dict(files=Sizes(10**6, 10_000), gap=_GAP),
            {"*": Target(60.0, bytes=4 * 10**9, gap=_GAP)},
            runs="once",
            memory=True,
        ),
    ),
    case(
        "certified_warm",
        "1 % of the files changed, from the old plan",
        Part("certified:after_change", dict(files=Sizes(10**5, 1000), gap=_GAP), runs="once"),
        Part("certified:after_change", dict(files=10**6, gap=_GAP), runs="once", quick=False),
    ),
    case(
        "matching",
        "1000 matchings of 12 x 12 beside SciPy; passes of placement for classes",
        Part("matching:matchings", dict(count=1000), {"ecjax_matchings": Target(0.025)}),
        Part("matching:one_pass", dict(files=Sizes(1000, 200)), {"*": Target(0.3)}),
        Part("matching:one_pass", dict(files=10**5), {"*": Target(30.0)}, runs="warm once", quick=False),
        Part("matching:one_pass", dict(files=10**5, mixed_sizes=True), runs="warm once", quick=False),
    ),
    case(
        "class_plans",
        "plan 1000 files of two service classes",
        *(
            Part(
                "class_plans:planned",
                dict(files=_FILES, queue=queue, start=start),
                {"*": Target(3.0)},
                memory=True,
            )
            for queue in ("priority", "weighted")
            for start in ("certified", "uniform")
        ),
        Part("class_plans:beside_scipy", dict(files=Sizes(10, 4)), runs="warm once"),
    ),
    case(
        "class_plans_large",
        "plan 10^4 and 10^5 files of two classes",
        *(
            Part(
                "class_plans:planned",
                dict(files=files, queue=queue, start="certified"),
                {"*": Target(300.0)},
                runs="warm once",
                memory=True,
            )
            for files in (Sizes(10**4, 200), Sizes(10**5, 400))
            for queue in ("priority", "weighted")
        ),
    ),
)

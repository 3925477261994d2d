"""Parts of the cases of the suite gpu: kernels on JAX's device, with the share of its limits that they reach."""

from ecjax.studies.bench.cases.case import Part, Sizes, Target

_MILLION = Sizes(10**6, 2000)
_FEW = Sizes(1000, 50)

PARTS = (
    Part("gpu_limits", "accelerator:limits"),
    Part("gpu_kernels", "accelerator:choices", dict(files=_MILLION, nodes=12)),
    Part("gpu_kernels", "accelerator:projections", dict(files=_MILLION, nodes=12)),
    Part("gpu_kernels", "accelerator:gradients", dict(files=_MILLION, nodes=12)),
    Part("gpu_kernels", "accelerator:steps_by_kernel", dict(files=_MILLION, nodes=12)),
    Part(
        "gpu_prices",
        "accelerator:prices",
        dict(files=Sizes(10**5, 200), nodes=12, racks=0, lanes=Sizes(64, 2)),
    ),
    Part(
        "gpu_prices",
        "accelerator:prices",
        dict(files=10**4, nodes=300, racks=20, lanes=1),
        runs="warm once",
        quick=False,
    ),
    Part(
        "gpu_general_solvers",
        "general_solvers:raced",
        dict(files=Sizes(1000, 40), nodes=12),
    ),
    Part(
        "gpu_certified",
        "certified:by_devices",
        dict(files=Sizes(10**6, 200), nodes=12, racks=0, thetas=1),
        {"*device=jax": Target(0.2, gap=5e-5)},
    ),
    Part(
        "gpu_certified",
        "certified:by_devices",
        dict(files=10**5, nodes=12, racks=0, thetas=64),
        {"*device=jax": Target(2.0)},
        "warm once",
        quick=False,
    ),
    Part(
        "gpu_certified",
        "certified:by_devices",
        dict(files=10**4, nodes=300, racks=20, thetas=1),
        {"*device=jax": Target(1.0, gap=3e-4)},
        "warm once",
        quick=False,
    ),
    Part(
        "gpu_certified",
        "certified:by_devices",
        dict(files=10**5, nodes=1000, racks=62, thetas=1),
        {"*device=jax": Target(2.0, gap=2e-4)},
        "warm once",
        quick=False,
    ),
    Part(
        "gpu_classes",
        "class_plans:side_by_side",
        dict(files=Sizes(1000, 12), lanes=Sizes(16, 4)),
        runs="warm once",
    ),
    Part(
        "gpu_replay",
        "replay:scanned",
        dict(requests=Sizes(2 * 10**6, 2000), requests_on_cpu=Sizes(20_000, 2000)),
    ),
    Part(
        "gpu_caches",
        "caching:batched",
        dict(size=Sizes((1000, 100, 6), (100, 20, 6)), caches=Sizes(10**4, 3)),
        {"ecjax exact_batched": Target(1.0)},
        "warm once",
        memory=True,
    ),
    Part(
        "gpu_traffic",
        "traffic:recursions",
        dict(bins=Sizes(500_000, 2000), bins_by_jax=Sizes(50_000, 1000)),
        runs="warm once",
    ),
)

"""Lemmas and theorems of the JLCM paper, which small systems decide."""

import numpy as np

from ecjax.errors import UserError
from ecjax.studies.reproduce.claim import Claim, Finding
from ecjax.studies.reproduce.claims.jlcm.formulas import MEAN_S, SECOND_S2, THIRD_S3
from ecjax.studies.reproduce.claims.judging import exact, judge, refuted
from ecjax.studies.reproduce.claims.small import Small, interval, poisson, replayed, wait_by_transform
from ecjax.studies.reproduce.evidence import Evidence

_A, _B = (0, 1, 2, 3), (2, 3, 4)  # nodes of the files of Fig. 1


def _eligible(evidence: Evidence) -> Finding:
    """Reads of one file are counted at a time: so it shows which nodes served it."""
    files = np.array([0, 0, 0, 0, 1, 1, 1])
    waiting = np.zeros(7), files
    strange = 0.0
    fastest = np.inf
    long = poisson([0.4, 0.3], 20_000, 1)
    for arrivals in (waiting, long):
        for file, nodes in ((0, _A), (1, _B)):
            counted = [file == 0, file == 1]
            # the first node of each is nearly instant: two chunks from it would end a read early
            for quick in nodes:
                shift = [0.001 if node == quick else 1.0 for node in range(5)]
                small = Small((2, 2), (_A, _B), shift, [0.0] * 5, counted=counted)
                counts = replayed(small, arrivals, "late_binding")
                at_nodes = counts.sums.sum(axis=0)[1:6, 0]
                strange += sum(at_nodes[node] for node in range(5) if node not in nodes)
                fastest = min(fastest, float(counts.paths[arrivals[1] == file].min()))
    return judge(
        strange == 0 and fastest >= 1.0 - 1e-9,
        strange,
        f"chunks served by nodes that do not keep the file: {strange:.0f}; with one node of 0.001 "
        f"s and the others of "
        f"1 s no read ends before {fastest:.3f} s, so none has two chunks from one node",
    )


def _marginals(evidence: Evidence) -> Finding:
    from ecjax.planning.projection import project_hypersimplex
    from ecjax.simulation import tally
    from ecjax.simulation.system import whole_units

    random = np.random.default_rng(3)
    count, worst = 40_000, 0.0
    for k in (2, 4, 7):
        wanted = random.uniform(0, 1, 10)
        pi = np.asarray(project_hypersimplex(wanted * k / wanted.sum(), float(k), np.ones(10, bool)))
        # two more nodes do not keep the file
        small = Small((k,), (range(10),), [0.0] * 12, [1e-6] * 12, (pi,))
        # as few reads as a tally has batches: each read is a batch, which shows its nodes
        few = replayed(small, _reads(tally.BATCHES), seed=k).batches[1:, :, 0]
        if few.max() > 1 or few[10:].any() or (few.sum(axis=0) != k).any():
            return judge(
                False, None, f"reads of {k} chunks are served by other than {k} nodes that keep the file"
            )
        served = replayed(small, _reads(count), seed=k).sums.sum(axis=0)[1:11, 0]
        if served.sum() != k * count:
            return judge(False, None, f"{served.sum():.0f} chunks served of {count} reads of {k}")
        error = np.sqrt(np.maximum(pi * (1 - pi), 1e-8) / count)
        worst = max(worst, float(abs(served / count - pi).max()))
        scaled = abs(served / count - pi) / error
        if scaled.max() > 4:
            return judge(False, worst, f"k = {k}: a share is {scaled.max():.1f} standard errors off")
    refused = 0
    for wrong in ([0.9, 0.9, 0.9], [1.4, 0.3, 0.3]):
        try:
            whole_units(np.array(wrong), np.array([0, 3]), np.array([2]))
        except (ValueError, UserError):
            refused += 1
    return judge(
        refused == 2,
        worst,
        f"{count} draws for each of k = 2, 4, 7 of 10 nodes: shares within 4 standard errors of pi, and the nodes of "
        f"{tally.BATCHES} further reads, which are told one by one, always k distinct ones that keep the file; sums "
        "other than k and probabilities above 1 are refused",
    )


def _reads(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Arrivals of reads of one file, a second apart."""
    return np.arange(count, dtype=float), np.zeros(count, np.int64)


def _moments(evidence: Evidence) -> Finding:
    from ecjax.queueing import ServiceMoments, fcfs

    errors = []
    for load, shift, mean in ((0.3, 0.5, 0.5), (0.7, 0.9, 0.1), (0.95, 0.0, 1.0)):
        service = ServiceMoments.shifted_exponential(np.array([shift]), np.array([mean]))
        first, second, third = (
            float(np.asarray(part)[0]) for part in (service.first, service.second, service.third)
        )
        wait = wait_by_transform(load, first, second, third)
        delay = fcfs(np.array([load / first]), service)
        errors += [
            abs(float(delay.mean[0]) / (wait[0] + first) - 1),
            abs(float(delay.variance[0]) / (wait[1] + second - first**2) - 1),
        ]
    worst = max(errors)
    small = Small((1,), ((0,),), [0.5], [0.5])
    paths = replayed(small, poisson([0.7], 400_000, 5)).paths[20_000:]
    mean, half = interval(paths)
    service = ServiceMoments.shifted_exponential(np.array([0.5]), np.array([0.5]))
    formula = float(fcfs(np.array([0.7]), service).mean[0])
    finding = exact(
        worst,
        1e-10,
        f"a replayed node at load 0.7 has {mean:.3f} +- {half:.3f} s, the formula {formula:.3f} s; 1.5 half intervals "
        "are allowed",
    )
    return finding if abs(mean - formula) <= 1.5 * half else judge(False, worst, finding.why)


def mixed_bounds(
    load: float, service: tuple[float, float, float], connect_s: float = 0.0, connect_variance: float = 0.0
) -> np.ndarray:
    """Bound on the mean latency of reads of 6 chunks at 12 alike nodes that choose how many chunks a node gives, s.

    A share of the reads takes two chunks from each of 3 nodes, the others one from each of 6 (Lemma 4 with the moments
    of what is served together).

    Args:
        load: of every node.
        service: three moments of the service of a chunk, s, s^2, s^3.
        connect_s: mean connection delay, s; once per node and read.
        connect_variance: its variance, s^2.

    Returns:
        (11,) by share of the reads that take two, 0 to 1.
    """
    import jax

    from ecjax.queueing import latency_bound
    from ecjax.queueing.mg1 import Delay
    from ecjax.queueing.moments import as_float

    first, second, third = service
    pair = (2 * first, 2 * second + 2 * first**2, 2 * third + 6 * first * second)
    shares = np.linspace(0, 1, 11)
    rates = (load / first) * np.stack([1 - shares, shares / 2])  # of ones and of pairs, at every node
    wait = [second, pair[1]] @ rates / (2 * (1 - load))
    spread = [third, pair[2]] @ rates / (3 * (1 - load)) + wait**2
    served = np.array([service, pair]).T[:, :, None]
    mean = served[0] + wait + connect_s
    variance = served[1] - served[0] ** 2 + spread + connect_variance
    delay = Delay(*(as_float(np.repeat(each[..., None], 12, axis=2)) for each in (mean, variance)))
    reads = as_float(np.repeat([[6 / 12], [3 / 12]], 12, axis=1))
    each_share = jax.vmap(latency_bound, in_axes=(None, 0))
    single, paired = np.asarray(jax.jit(jax.vmap(each_share))(reads, delay))
    return (1 - shares) * single + shares * paired


def _superchunks(evidence: Evidence) -> Finding:
    """Every read takes 3 chunks from each of 2 of 12 nodes, one second a chunk."""
    from ecjax.queueing import ServiceMoments, fcfs, latency_bound
    from ecjax.queueing.moments import as_float

    nodes, read, together = 12, 2, 3
    pi = np.full(nodes, read / nodes)
    small = Small((read,), (range(nodes),), [1.0] * nodes, [0.0] * nodes, chunks=together)

    def bound(chunk_rate: float, service_s: float, extra_s: float) -> float:
        constant = ServiceMoments(*(as_float(np.full(nodes, service_s**power)) for power in (1, 2, 3)))
        delay = fcfs(np.full(nodes, chunk_rate), constant)
        return float(latency_bound(pi, delay.plus(extra_s, 0.0)))

    below, ratios, shown = [], [], []
    for load in (0.3, 0.6, 0.8, 0.9):
        per_node = load / together
        # as printed: the wait of single chunks at the rate of chunks, then the three services
        printed = bound(load, 1.0, together - 1.0)
        mended = bound(per_node, float(together), 0.0)
        count = 400_000
        paths = replayed(small, poisson([per_node * nodes / read], count, 7)).paths[count // 20 :]
        mean, half = interval(paths)
        if not mean - half <= mended:
            return judge(
                False, mean, f"the corrected bound, {mended:.2f} s, is below the replay, {mean:.2f} s"
            )
        below.append(printed < mean - half)
        ratios.append(printed / mean)
        shown.append(f"at load {load} replayed {mean:.2f} +- {half:.2f} s, {printed:.2f} and {mended:.2f} s")
    return refuted(
        any(below),
        min(ratios),
        "3 chunks of 1 s from each of 2 of 12 nodes, the printed bound and that with the moments of three chunks "
        f"served together: {'; '.join(shown)}. Chunk moments with the chunk rate treat chunks that come together as if "
        f"they came apart. {mixing()}",
        min(ratios),
        max(ratios),
    )


def mixing() -> str:
    """What it costs to let a tenth, or all, of the reads take two chunks from a node."""
    service = MEAN_S, SECOND_S2, THIRD_S3
    costs = []
    for load in (0.1, 0.5, 0.9):
        bounds = mixed_bounds(load, service, 0.04, 64e-6)
        costs.append((bounds[1] / bounds[0] - 1, bounds[-1] / bounds[0] - 1))
    shown = ", ".join(f"{tenth:.1%} and {whole:.0%}" for tenth, whole in costs)
    long = 1000.0
    same, varied = (
        bounds[-1] - bounds[0] for bounds in (mixed_bounds(0.5, service, long, var) for var in (0.0, long**2))
    )
    return (
        "With the service times of Fig. 6 a tenth, or all, of the reads of 6 chunks that take two chunks from a node "
        f"raise the bound by {shown} at loads 0.1, 0.5 and 0.9. Connections that take long do not change that, as they "
        "are added to either kind; those that vary may, as fewer of them are waited for: at load 0.5 all reads have "
        f"{same:+.0f} s where a connection takes {long:g} s each time, and {varied:+.0f} s where that is the mean of "
        "an exponential time"
    )


def _surrogate(evidence: Evidence) -> Finding:
    pi = np.linspace(0, 1, 201)
    errors, above = [], np.inf
    for beta in (10.0, 1e3, 1e6):
        value = np.log1p(beta * pi) / np.log(beta)
        errors.append(abs(value[-1] - 1))
        for at in (0.0, 0.1, 0.5, 1.0):
            tangent = (np.log1p(beta * at) + beta * (pi - at) / (1 + beta * at)) / np.log(beta)
            above = min(above, float((tangent - value).min()))
    from ecjax.planning.jlcm import occupied
    from ecjax.queueing.moments import as_float

    zero = float(occupied(as_float(np.zeros(1)), 10.0)[0])
    falls = errors[0] > errors[1] > errors[2]
    return judge(
        falls and above >= -1e-12 and zero == 0,
        errors[2],
        f"at pi = 1 the surrogate is off by {errors[0]:.2g}, {errors[1]:.2g}, {errors[2]:.2g} for "
        f"beta = 10, 1e3, 1e6; "
        "0 at pi = 0; no tangent is below it",
        min(errors),
        max(errors),
    )


def _convex(evidence: Evidence) -> Finding:
    """Second differences of the node term, weighted by the rate, and of the term alone."""
    from ecjax.queueing import ServiceMoments, fcfs
    from ecjax.queueing.moments import as_float

    random = np.random.default_rng(11)
    worst, bare = np.inf, np.inf
    loads = np.linspace(0, 0.99, 400)[:, None]
    for _ in range(200):
        z = random.choice([random.uniform(-5, 60), random.uniform(0.5, 3)])
        second = 1 + 10 ** random.uniform(-4, 0.5)
        third = second**2 * (1 + random.exponential(1.0))  # at least m_2^2 / m_1
        service = ServiceMoments(*(as_float(np.array([[moment]])) for moment in (1.0, second, third)))
        rates = loads.T
        # a node for every rate
        delay = fcfs(rates, service)
        distance = np.asarray(delay.mean)[0] - z
        term = 0.5 * (distance + np.sqrt(distance**2 + np.asarray(delay.variance)[0]))
        worst = min(worst, float(np.diff(rates[0] * term, 2).min()))
        bare = min(bare, float(np.diff(term, 2).min()))
    return judge(
        worst >= -1e-9 and bare < 0,
        worst,
        "second differences of rate x term over loads 0 to 0.99, 200 random laws and z. The term alone, which the "
        f"proof argues with, is not convex: {bare:.1e}",
    )


THEOREMS = (
    Claim(
        "jlcm-fig1-fig2-eligible-nodes",
        "Fig. 1, Fig. 2a",
        "A node serves only files it keeps, and never two chunks of one read.",
        _eligible,
        quantity="chunks served elsewhere",
    ),
    Claim(
        "jlcm-thm1-marginals",
        "Theorem 1, eq. 1-2",
        "Reads of k distinct nodes with any given shares pi exist if and only if these lie in [0, 1] and sum to k.",
        _marginals,
        quantity="largest difference of a share from pi",
    ),
    Claim(
        "jlcm-lemma3-moments",
        "Lemma 3, eq. 6-7",
        "Mean and variance of a node's sojourn time follow from its rate and three service moments.",
        _moments,
        quantity="largest relative difference from the transform's derivatives",
    ),
    Claim(
        "jlcm-lemma4-superchunks",
        "Lemma 4, eq. 9-11",
        "With several chunks of a file per node, chunk moments and the chunk rate give a bound.",
        _superchunks,
        quantity="least printed bound / replayed mean, over loads",
    ),
    Claim(
        "jlcm-eq21-25-log-surrogate",
        "eq. 21, 24, 25",
        "V log(beta pi + 1) / log beta tends to V for every pi > 0 as beta grows, and its tangents lie above it.",
        _surrogate,
        quantity="error at pi = 1 for beta = 1e6",
    ),
    Claim(
        "jlcm-lemma6-convex",
        "Lemma 6, eq. 22",
        "The rate-weighted latency term of a node is convex in its chunk rate for fixed z.",
        _convex,
        quantity="least second difference, s",
    ),
)

"""Formulas of the TOFEC paper, which need no study."""

import heapq
import math

import numpy as np

from ecjax.studies.reproduce.claim import Claim, Finding
from ecjax.studies.reproduce.claims.judging import exact, in_shape, judge, texts
from ecjax.studies.reproduce.claims.tofec.setting import (
    FILE_MB,
    K_MAX,
    MB,
    R_MAX,
    THREADS,
    parts,
    read,
    service,
    usage,
)
from ecjax.studies.reproduce.evidence import Evidence

SIZES_MB = (0.5, 0.6, 0.75, 1.0, 1.5, 3.0)


def _plain_ends(
    arrival: np.ndarray, class_of: np.ndarray, codes: list[tuple[int, int]], length: list[float]
) -> np.ndarray:
    """Ends of requests by the rules of the queue, event by event; the tasks of a class all take its ``length``."""
    events = [(time, 0, i) for i, time in enumerate(arrival)]  # arrivals (0), ends of tasks (1)
    heapq.heapify(events)
    free = THREADS
    requests: list[int] = []
    tasks: list[int] = []
    done, end = np.zeros(len(arrival), int), np.full(len(arrival), np.inf)
    running = np.zeros(len(arrival), int)
    while events:
        now, kind, i = heapq.heappop(events)
        if kind == 0:
            requests.append(i)
        elif end[i] == np.inf:
            running[i] -= 1
            free += 1
            done[i] += 1
            if done[i] == codes[class_of[i]][1]:
                end[i] = now
                free += running[i]  # its others are cancelled, running or not
                tasks = [task for task in tasks if task != i]
        while free and (tasks or requests):
            if not tasks:
                first = requests.pop(0)
                tasks = [first] * codes[class_of[first]][0]
            task = tasks.pop(0)
            free -= 1
            running[task] += 1
            heapq.heappush(events, (now + length[class_of[task]], 1, task))
    return end


def _work_conserving(evidence: Evidence) -> Finding:
    """The replay against the rules themselves, with delays of two lengths, so that chunks end in known order."""
    from ecjax.adaptation.delays import BUILT_IN, tasks_of
    from ecjax.adaptation.proxy import WAITING, Strategy
    from ecjax.adaptation.replay import replay

    random = np.random.default_rng(1)
    codes = [(3, 2), (7, 5)]
    classes = [read(3), read(5)]
    law = BUILT_IN["shifted_exp"]._replace(scale_s=0.0, scale_s_per_byte=0.0)
    strategy = Strategy(
        "static",
        WAITING,
        0.0,
        np.empty((2, 0)),
        np.array([[n] for n, _ in codes]),
        np.array([[k] for _, k in codes]),
    )
    length = [parts(law, one.bytes / MB / k)[0] for one, (_, k) in zip(classes, codes, strict=True)]
    errors = []
    for load in (0.3, 0.8, 1.2):
        class_of = random.integers(0, 2, 400)
        rate = load * THREADS / np.mean([n * t for (n, _), t in zip(codes, length, strict=True)])
        arrival = np.cumsum(random.exponential(1 / rate, 400))
        got = replay(arrival, class_of, tasks_of(classes, [law, law]), strategy, THREADS, 0)
        plain = _plain_ends(arrival, class_of, codes, length)
        errors.append(np.abs((arrival + got.latency_s) / plain - 1).max())
    return exact(float(max(errors)), 1e-9)


def _strips(evidence: Evidence) -> Finding:
    from ecjax.adaptation.proxy import WAITING, Strategy
    from ecjax.adaptation.storage import storage

    codes = [(2, 1), (4, 2), (6, 3)]
    strategy = Strategy(
        "static",
        WAITING,
        0.0,
        np.array([[1.0, 2.0]]),
        np.array([[n for n, _ in codes]]),
        np.array([[k for _, k in codes]]),
    )
    row = storage([read()], strategy, 0.0)
    strips = int(row["strips"])
    coded = strips * row["storage_shared"]
    cover = all(
        len({j * strips // k + s for j in chunks for s in range(strips // k)}) == strips
        for n, k in codes
        for chunks in (range(k), range(n - k, n))
    )
    return judge(
        strips == 6 and coded == 12 and cover,
        float(coded),
        f"{strips} strips, {coded:g} coded ones; a chunk has {', '.join(str(strips // k) for _, k in codes)} strips",
    )


def _growth(evidence: Evidence) -> Finding:
    from ecjax.adaptation.proxy import WAITING, Strategy
    from ecjax.adaptation.storage import storage

    shared, unique = [], []
    for most in range(1, K_MAX + 1):
        k = np.arange(1, most + 1)
        strategy = Strategy("static", WAITING, 0.0, np.arange(1.0, most)[None], R_MAX * k[None], k[None])
        row = storage([read(k_max=most)], strategy, 0.0)
        shared.append(row["storage_shared"])
        unique.append(row["storage_unique"])
    return judge(
        np.allclose(shared, R_MAX) and np.allclose(unique, R_MAX * np.arange(1, K_MAX + 1)),
        float(unique[-1]),
        f"bytes per byte of file with 1 to {K_MAX} sizes: Unique Key {texts(unique)}, Shared Key {texts(shared)}",
        float(unique[0]),
        float(unique[-1]),
    )


def _linear(evidence: Evidence) -> Finding:
    """Lines through mean and deviation by chunk size, of each law, from its quantiles."""
    from ecjax.adaptation.delays import BUILT_IN, quantile

    probability = (np.arange(200_000) + 0.5) / 200_000
    size = np.array(SIZES_MB)
    fits, intercepts = [], []
    for law in BUILT_IN.values():
        delays = [quantile(law, megabytes * MB, probability) for megabytes in SIZES_MB]
        for values in (np.mean(delays, axis=1), np.std(delays, axis=1)):
            slope, intercept = np.polyfit(size, values, 1)
            left = values - intercept - slope * size
            fits.append(1 - float((left**2).sum() / ((values - values.mean()) ** 2).sum()))
            intercepts.append(float(intercept))
    return judge(
        min(fits) >= 0.99 and min(intercepts) > 0,
        min(fits),
        f"least R^2 of mean and deviation of the {len(BUILT_IN)} laws; intercepts from {min(intercepts):.3g} s: true "
        "of these laws by construction",
    )


def _model(evidence: Evidence) -> Finding:
    from ecjax.adaptation.delays import BUILT_IN, tasks_of
    from ecjax.adaptation.replay import replay
    from ecjax.adaptation.strategies import static

    law, errors = BUILT_IN["shifted_exp"], []
    count = 200_000
    far = np.arange(count) * 100.0
    for megabytes in SIZES_MB:
        tasks = tasks_of([read(megabytes, 1)], [law])
        delay = replay(far, np.zeros(count, int), tasks, static([(1, 1)]), 1, 3).latency_s
        delta, psi = parts(law, megabytes)
        errors += [
            abs(delay.mean() / (delta + psi) - 1),
            abs(delay.std() / psi - 1),
            abs(delay.min() / delta - 1),
        ]
    falls = all(
        usage(law, n + 1, k) > usage(law, n, k) for k in range(1, K_MAX + 1) for n in range(k, R_MAX * k)
    )
    return judge(
        max(errors) <= 0.01 and falls,
        float(max(errors)),
        f"largest relative difference of mean, deviation and minimum over {len(SIZES_MB)} chunk sizes, {count} delays",
    )


def _service_and_usage(evidence: Evidence) -> Finding:
    from ecjax.adaptation.delays import BUILT_IN, tasks_of
    from ecjax.adaptation.replay import replay
    from ecjax.adaptation.strategies import static

    law, errors = BUILT_IN["shifted_exp"], []
    tasks = tasks_of([read()], [law])
    count = 20_000
    far = np.arange(count) * 100.0
    for k in range(1, K_MAX + 1):
        for n in range(k, R_MAX * K_MAX + 1):
            got = replay(far, np.zeros(count, int), tasks, static([(n, k)]), THREADS, 5)
            errors += [
                abs(got.latency_s.mean() / service(law, n, k) - 1),
                abs(got.busy_s / count / usage(law, n, k) - 1),
            ]
    return exact(float(max(errors)), 0.02, f"{len(errors) // 2} codes, {count} reads each.")


def _split() -> tuple[float, float, float, float]:
    """d_0, d_1, p_0, p_1 of a whole file under the fitted law: Delta(B) = d_0 + d_1 / k, Psi(B) alike."""
    from ecjax.adaptation.delays import BUILT_IN

    law = BUILT_IN["shifted_exp"]
    size = FILE_MB * MB
    return law.shift_s, law.shift_s_per_byte * size, law.scale_s, law.scale_s_per_byte * size


def _code_at_price(price: float) -> tuple[float, float]:
    """The real k and r that are best at a price of thread time, from the library's forms of eq. 6 and 7."""
    from scipy.optimize import brentq

    from ecjax.adaptation.delays import BUILT_IN, linear_delays
    from ecjax.adaptation.static_code import dimension, price_of_code

    delays, size = linear_delays(BUILT_IN["shifted_exp"], np.array([MB])), FILE_MB * MB

    def excess(log_extra: float) -> float:
        extra = np.array(log_extra)
        return float(
            np.log(price_of_code(delays, size, extra, dimension(delays, size, extra))) - np.log(price)
        )

    log_extra = float(brentq(excess, -30, 30, xtol=1e-14))
    return float(dimension(delays, size, np.array(log_extra))), 1 + math.exp(log_extra)


def _unique(evidence: Evidence) -> Finding:
    """The model's mean delay, minimised without its equations from many starts, beside what eq. 6 and 7 say."""
    from scipy.optimize import brentq, minimize

    d0, d1, p0, p1 = _split()
    random = np.random.default_rng(2)
    errors, residuals = [], []

    def used(k: float, r: float) -> float:
        return d0 * k * r + d1 * r + p0 * k + p1

    for load in (0.05, 0.3, 0.8):
        rate = load * THREADS / used(1, 1)

        def delay(point: np.ndarray, rate: float = rate) -> float:
            k, extra = np.exp(point)
            u = used(k, 1 + extra)
            if rate * u >= THREADS:
                return math.inf
            wait = rate * u**2 / (THREADS * (THREADS - rate * u))
            return float(d0 + d1 / k + (p0 + p1 / k) * np.log1p(1 / extra) + wait)

        def excess(log_price: float, rate: float = rate) -> float:
            k, r = _code_at_price(math.exp(log_price))
            x = rate * used(k, r) / THREADS
            return x - 1 + (1 + THREADS * math.exp(log_price)) ** -0.5

        k, r = _code_at_price(math.exp(brentq(excess, -15, 12, xtol=1e-14)))
        x = rate * used(k, r) / THREADS
        log = math.log(r / (r - 1))
        six = k * (p0 * k + p1) / (d0 * k + d1) / (r * (r - 1) * (d1 + p1 * log) / (d0 * r + p0)) - 1
        seven = (2 * x - x**2) / (THREADS * (1 - x) ** 2)
        residuals += [abs(six), abs(seven / ((p0 * k + p1) / (k * r * (r - 1) * (d0 * k + d1))) - 1)]
        starts = 0
        while starts < 20:
            start = random.uniform((-2, -4), (2.5, 1.5))
            if delay(start) == math.inf:
                continue
            starts += 1
            minimum = minimize(
                delay,
                start,
                method="Nelder-Mead",
                options={"xatol": 1e-10, "fatol": 1e-17, "maxiter": 5000, "maxfev": 5000},
            ).x
            errors.append(float(np.abs(minimum - np.log([k, r - 1])).max()))
    return judge(
        max(errors) <= 1e-6 and max(residuals) < 1e-9,
        max(errors),
        f"largest relative difference of k and r - 1 over 20 starts at three rates; residuals of eq. 6 and 7 up to "
        f"{max(residuals):.1g}",
    )


def _price_of_backlog(backlog: float) -> float:
    """(2x - x^2) / (L (1 - x)^2) with x^2 / (1 - x) = Q."""
    x = 2 * backlog / (backlog + math.sqrt(backlog**2 + 4 * backlog))
    idle = x**2 / backlog
    return (2 * x - x**2) / (THREADS * idle**2)


def _decreasing(evidence: Evidence) -> Finding:
    codes = np.array([_code_at_price(_price_of_backlog(q)) for q in np.geomspace(1e-3, 1e3, 200)])
    k, r = codes.T
    steps = [float(np.diff(values).max()) for values in (k * r, k, r)]
    return judge(
        max(steps) < 0, max(steps), "largest step of n, k and r over 200 backlogs from 0.001 to 1000; below 0"
    )


def _thresholds(evidence: Evidence) -> Finding:
    """The thresholds of the strategy beside the middles of backlogs found from eq. 6 and 7 by bisection."""
    from scipy.optimize import brentq

    from ecjax.adaptation.delays import BUILT_IN
    from ecjax.adaptation.strategies import tofec

    strategy = tofec([read()], [BUILT_IN["shifted_exp"]], THREADS)

    def backlog(what: int, value: int) -> float:
        def excess(log_q: float) -> float:
            k, r = _code_at_price(_price_of_backlog(math.exp(log_q)))
            return (k * r, k)[what] - value

        return math.exp(brentq(excess, -18, 18, xtol=1e-14))

    middles = []
    for what, most in ((0, R_MAX * K_MAX), (1, K_MAX)):
        at = np.array([backlog(what, value) for value in range(1, most + 1)])
        middles += list((at[1:] + at[:-1]) / 2)
    edges = strategy.edges[0][np.isfinite(strategy.edges[0])]
    error = max(min(abs(middle / edge - 1) for middle in middles) for edge in edges)
    allowed = bool((strategy.n <= R_MAX * strategy.k).all() and (strategy.k <= K_MAX).all())
    return judge(
        error <= 1e-9 and allowed and strategy.memory == 0.99,
        float(error),
        f"largest relative difference of {len(edges)} thresholds; memory {strategy.memory:g}",
    )


def _fit(evidence: Evidence) -> Finding:
    from ecjax.adaptation.delays import BUILT_IN, linear_delays, quantile
    from ecjax.adaptation.measured import Delays, measured

    random = np.random.default_rng(4)
    sizes = np.array(SIZES_MB) * MB
    count = 2000
    samples = [np.sort(quantile(BUILT_IN["shifted_lognormal"], size, random.random(count))) for size in sizes]
    law = measured(
        Delays(np.repeat(sizes, count), np.concatenate(samples), np.arange(count * len(sizes))), "log"
    ).model
    kept = [sample[: count * 9 // 10] for sample in samples]
    mean, std = np.array([sample.mean() for sample in kept]), np.array([sample.std() for sample in kept])
    psi = np.polyval(np.polyfit(sizes, std, 1), sizes)
    delta = np.polyval(np.polyfit(sizes, mean - std, 1), sizes)
    fit = linear_delays(law, sizes)
    error = max(
        np.abs((fit.delta_s + fit.delta_s_per_byte * sizes) / delta - 1).max(),
        np.abs((fit.psi_s + fit.psi_s_per_byte * sizes) / psi - 1).max(),
    )
    why = (
        f"{count} delays of each of {len(sizes)} sizes without the worst 10 %: Delta and Psi at the sizes differ by up "
        f"to {error:.1g} from least squares on the delays themselves, as the law keeps tabulated quantiles of them"
    )
    return judge(True, float(error), why) if error <= 1e-9 else in_shape(error <= 0.01, float(error), why)


def _exponential(evidence: Evidence) -> Finding:
    """Without a constant part a cancelled task has cost nothing: n tasks and k alike take k Psi."""
    from ecjax.adaptation.delays import BUILT_IN, tasks_of
    from ecjax.adaptation.replay import replay
    from ecjax.adaptation.strategies import static

    law, count = BUILT_IN["shifted_exp"], 200_000
    far = np.arange(count) * 100.0
    spent = {}
    for name, one in (("zero", law._replace(shift_s=0.0, shift_s_per_byte=0.0)), ("positive", law)):
        tasks = tasks_of([read()], [one])
        spent[name] = [
            replay(far, np.zeros(count, int), tasks, static([(n, 3)]), THREADS, 6).busy_s / count
            for n in (3, 4, 6)
        ]
    spread = max(spent["zero"]) / min(spent["zero"]) - 1
    positive = spent["positive"]
    return judge(
        spread <= 0.01 and positive[0] < positive[1] < positive[2],
        float(spread),
        f"spread of thread-seconds of a read with (3,3), (4,3), (6,3) where Delta = 0; {texts(positive)} s with Delta: "
        "capacity is threads over these",
    )


FORMULAS = (
    Claim(
        "tofec-work-conserving",
        "Sec. II-A",
        "No thread is idle while a request or a task waits; a request ends with its k-th task, and the others end too.",
        _work_conserving,
        quantity="relative difference of ends from an event-by-event replay",
    ),
    Claim(
        "tofec-fig3-strips",
        "Fig. 3",
        "6 strips of a 3 MB file, coded into 12, serve as codes with chunks of 3, 1.5 and 1 MB.",
        _strips,
        paper_value="12",
        quantity="coded strips",
    ),
    Claim(
        "tofec-storage-growth",
        "Sec. III-A1",
        "Unique Key's storage is linear in the number of chunk sizes, Shared Key's is constant.",
        _growth,
        quantity="bytes per byte of file, Unique Key, six sizes",
    ),
    Claim(
        "tofec-fig6-linear",
        "Sec. III-B (4), Fig. 6",
        "Mean and deviation of the delay of a task are lines in the chunk size that begin above 0.",
        _linear,
        quantity="least R^2",
    ),
    Claim(
        "tofec-model",
        "Sec. III-B (3), III-C",
        "A task takes Delta + an exponential time with mean Psi, both linear in the chunk size.",
        _model,
        quantity="relative difference of the replay from it",
    ),
    Claim(
        "tofec-service-delay-and-usage",
        "Sec. IV-A",
        "Tasks that start together take Delta + Psi (H_n - H_(n-k)) on average and n Delta + k Psi of thread time.",
        _service_and_usage,
        quantity="relative difference of the replay from it",
    ),
    Claim(
        "tofec-thm1-unique",
        "Theorem 1",
        "The relaxed choice of a code has one optimum, where eq. 6 and 7 hold.",
        _unique,
        quantity="relative difference from a general optimizer",
    ),
    Claim(
        "tofec-cor1-decreasing",
        "Corollary 1",
        "The best n, k and r fall strictly with the expected backlog, and depend on nothing else.",
        _decreasing,
        quantity="largest step of n, k or r",
    ),
    Claim(
        "tofec-thresholds",
        "Sec. IV-C",
        "Thresholds are midway between backlogs of successive lengths, n is at most r_max k, the memory is 0.99.",
        _thresholds,
        paper_value="0.99",
        quantity="relative difference of thresholds",
    ),
    Claim(
        "tofec-fit-trimmed",
        "Sec. V-A",
        "Delta and Psi are fitted by least squares after the worst 10 % of the delays are dropped.",
        _fit,
        paper_value="10 %",
        quantity="relative difference of Delta and Psi",
    ),
    Claim(
        "tofec-exponential-contrast",
        "Sec. VI",
        "More tasks cost capacity where delays have a constant part, and none where they are exponential.",
        _exponential,
        quantity="spread of thread time, Delta = 0",
    ),
)

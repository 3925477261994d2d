"""Roles against all choices of roles; moves within failure domains and counts; scale."""

import itertools

import numpy as np
import pytest
from ceph_dumps import made, write

from ecjax.rados.batches import Limits, batches_of
from ecjax.rados.commands import changes
from ecjax.rados.crush import breaking, broken, rule_domains
from ecjax.rados.files import read_dumps
from ecjax.rados.moves import Moves
from ecjax.rados.plan import copied, demand_of, plan_of, role_load, shortened, with_sets
from ecjax.rados.read import EQUAL, Reading, read_cluster, targets
from ecjax.rados.records import reads_per_osd
from ecjax.rados.roles import RoleProblem, plan_roles
from ecjax.rados.shared import parts_of, shared_demand
from ecjax.rados.spread import least_spread
from ecjax.studies.ceph.scenarios import _drawn


def tiny(seed, groups=5, n=4, k=2, osds=6, equal=False):
    rng = np.random.default_rng(seed)
    osd = np.concatenate([rng.permutation(osds)[:n] for _ in range(groups)])
    work = np.ones(groups) if equal else rng.lognormal(0, 0.6, groups)
    data = np.tile(np.arange(n) < k, groups)
    first = n * np.arange(groups + 1)
    return RoleProblem(
        first, osd, data, work, rng.uniform(0, 0.3, osds) * (not equal), rng.uniform(1, 2, osds)
    )


def every_choice(problem, n, k):
    """Max load and shards copied of all choices of roles."""
    rows = [[place in chosen for place in range(n)] for chosen in itertools.combinations(range(n), k)]
    for chosen in itertools.product(rows, repeat=len(problem.work)):
        data = np.concatenate([np.array(row) for row in chosen])
        yield float(problem.load(data).max()), 2 * int(np.count_nonzero(data & ~problem.data))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("equal", [False, True])
def test_no_choice_is_better_than_the_bounds_say(seed, equal):
    problem = tiny(seed, equal=equal)
    if equal:
        problem = problem._replace(speed=np.ones(6))
    choices = list(every_choice(problem, 4, 2))
    least = min(load for load, _ in choices)
    plan = plan_roles(problem, 0.1)
    load = float(problem.load(plan.data).max())
    assert plan.bound <= least * (1 + 1e-9)
    if equal:
        assert plan.bound == pytest.approx(least)  # of groups that are alike the bound is exact
    assert load <= plan.level * (1 + 1e-9)
    copies = min(copies for other, copies in choices if other <= plan.level * (1 + 1e-9))
    assert plan.copies_bound <= copies <= plan.copies <= max(1.1 * copies, copies)
    assert plan.copies == 2 * np.count_nonzero(plan.data & ~problem.data)
    assert np.add.reduceat(plan.data, problem.first[:-1]).tolist() == [2] * 5


@pytest.mark.parametrize("seed", [3, 4, 6])
def test_few_groups_reach_the_least_load_of_whole_ones(seed):
    problem = tiny(seed, groups=4, osds=9)
    problem = problem._replace(work=problem.work * [6, 1, 1, 3], base=np.zeros(9))
    least = min(load for load, _ in every_choice(problem, 4, 2))
    plan = plan_roles(problem, 0.01)
    assert plan.bound <= least * (1 + 1e-9)
    assert problem.load(plan.data).max() <= 1.01 * least


def test_speeds_may_be_far_apart():
    problem = tiny(2, equal=True)._replace(speed=np.where(np.arange(6) == 3, 1e12, 1.0))
    least = min(load for load, _ in every_choice(problem, 4, 2))
    plan = plan_roles(problem, 0.0)
    assert plan.bound == pytest.approx(least) and problem.load(plan.data).max() == pytest.approx(least)


def test_nothing_to_read_changes_nothing():
    problem = tiny(0)._replace(work=np.zeros(5))
    assert plan_roles(problem, 0.01).copies == 0


def test_more_room_copies_fewer_shards():
    problem = tiny(7, groups=24, osds=8)
    copies = [plan_roles(problem, within).copies for within in (0.15, 0.3, 3.0)]
    assert copies[0] >= copies[1] >= copies[2] == 0


def cluster_of(tmp_path, reading=None, **parts):
    made_parts = made(**parts)
    return read_cluster(read_dumps(write(tmp_path / "dumps", made_parts)), reading or Reading())


def test_a_plan_changes_roles_only_and_keeps_positions(tmp_path):
    cluster = cluster_of(tmp_path, hosts=6, pools=((2, 2, 32), (3, 2, 32)), items=3)
    plan = plan_of(cluster, demand_of(cluster, np.ones(12)), 0.2)
    held = cluster.sets
    assert plan.sets
    for name, osds in plan.sets.items():
        k = 2 if name.startswith("1.") else 3
        assert sorted(osds) == sorted(held[name])
        stayed = set(osds[:k]) & set(held[name][:k]) | set(osds[k:]) & set(held[name][k:])
        assert all(osds.index(osd) == held[name].index(osd) for osd in stayed)
    assert copied(cluster, plan.sets)[0] == plan.shards == plan.roles.copies
    np.testing.assert_allclose(reads_per_osd(cluster, with_sets(cluster, plan.sets)), plan.after)
    assert plan.after.max() <= plan.roles.level * (1 + 1e-9) < plan.before.max()


def test_speeds_share_the_load(tmp_path):
    cluster = cluster_of(tmp_path, hosts=6, pools=((2, 2, 64),))
    speed = np.where(np.arange(12) < 6, 1.0, 1.5)
    plan = plan_of(cluster, demand_of(cluster, speed), 0.2)
    reads = reads_per_osd(cluster, with_sets(cluster, plan.sets))
    assert reads[6:].sum() > 1.3 * reads[:6].sum()
    np.testing.assert_allclose(plan.after, reads / speed)


def test_an_osd_that_is_down_is_left_alone(tmp_path):
    parts = made(hosts=6, pools=((2, 2, 32),))
    parts["osd"]["osds"][3]["up"] = 0
    cluster = read_cluster(read_dumps(write(tmp_path, parts)))
    plan = plan_of(cluster, demand_of(cluster, np.ones(12)), 0.2, tolerance=1)
    held = cluster.sets
    assert plan.sets and all(3 not in osds and 3 not in held[name] for name, osds in plan.sets.items())


def test_a_group_that_breaks_its_rule_is_left_alone(tmp_path):
    parts = made(hosts=6, pools=((2, 2, 32),), equal=True)
    for dump in parts["groups"]:
        for group in dump["pg_map"]["pg_stats"][:31]:
            group["up"] = group["acting"] = [0, 1, 4, 6]  # two shards on the first host
    cluster = read_cluster(read_dumps(write(tmp_path, parts)))
    assert len(breaking(cluster)) == 31
    plan = plan_of(cluster, demand_of(cluster, np.ones(12)), 0.0)
    assert set(plan.sets) <= set(cluster.groups.ids) - set(breaking(cluster))


def test_moves_cost_less_and_keep_domains_and_counts(tmp_path):
    cluster = cluster_of(tmp_path, hosts=8, pools=((2, 2, 48),))
    demand = demand_of(cluster, np.ones(16))
    swaps, moves = (plan_of(cluster, demand, 0.2, tolerance) for tolerance in (None, 2))
    assert moves.shards < swaps.shards
    assert moves.after.max() <= swaps.after.max() * (1 + 1e-9)
    for osds in moves.sets.values():
        assert broken(cluster.domains[0], osds) is None
    share = targets(cluster, 0)
    before, after = (
        np.bincount(osd, minlength=16) for osd in (cluster.groups.osd, with_sets(cluster, moves.sets))
    )
    assert np.all(np.abs(after - share) <= np.maximum(np.abs(before - share), 2) + 1e-9)


def two_levels(steps, buckets=(), seed=0, groups=48):
    """A cluster of 3 hosts with 4 OSDs each, two shards of every group on each host, by other steps of its rule."""
    parts, rng = made(hosts=3, per_host=4, pools=((4, 2, groups),)), np.random.default_rng(seed)
    for place in range(groups):
        osds = [4 * int(host) + int(osd) for host in rng.permutation(3) for osd in rng.permutation(4)[:2]]
        for dump in parts["groups"]:
            each = dump["pg_map"]["pg_stats"][place]
            each["up"] = each["acting"] = osds
    parts["crush"]["rules"][0]["steps"][2:3] = steps
    parts["crush"]["buckets"].extend(buckets)
    return parts


TWO_OF_A_HOST = [
    {"op": "choose_indep", "num": 3, "type": "host"},
    {"op": "choose_indep", "num": 2, "type": "osd"},
]


def test_a_host_takes_no_more_shards_than_its_rule_puts_there(tmp_path):
    # so few groups that roles alone do not even out their load
    parts = two_levels(TWO_OF_A_HOST, seed=1, groups=16)
    cluster = read_cluster(read_dumps(write(tmp_path, parts)))
    moves = Moves(cluster, {}, cluster.groups.rate, tolerance=16)
    for group in range(len(cluster.groups.ids)):
        held = cluster.osd_ids(group).tolist()
        for position, osd in enumerate(held):
            takers = cluster.osds[moves.takers(group, position)].tolist()
            # only the two OSDs of the same host that are free
            assert takers == [each for each in range(12) if each // 4 == osd // 4 and each not in held]
    plan = plan_of(cluster, demand_of(cluster, np.ones(12)), 0.01, tolerance=4)
    assert sum(on_others(cluster, plan).values()) > 3
    for osds in plan.sets.values():
        assert sorted(osd // 4 for osd in osds) == [0, 0, 1, 1, 2, 2]
    draw = np.random.default_rng(0)
    for _ in range(50):
        assert sorted(_drawn(cluster, cluster.domains[0], 6, draw) // 4) == [0, 0, 1, 1, 2, 2]


def test_numbers_of_steps_multiply_to_shards_of_a_domain(tmp_path):
    racks = [
        {"id": -90 - place, "name": f"r{place}", "type_name": "rack", "items": [{"id": -2 - place}]}
        for place in range(3)
    ]
    steps = [
        {"op": "choose_indep", "num": 2, "type": "rack"},
        {"op": "choose_indep", "num": 2, "type": "host"},
        {"op": "choose_indep", "num": 3, "type": "osd"},
    ]
    parts = two_levels(steps, racks)
    parts["crush"]["buckets"][0]["items"] = [{"id": -90 - place} for place in range(3)]
    assert [level.shards for level in rule_domains(parts["crush"], 1).levels] == [6, 3, 1]
    steps[1]["num"] = 0
    assert [level.shards for level in rule_domains(parts["crush"], 1).levels] == [0, 3, 1]  # 0: any number


def test_equal_rates_reach_whole_groups(tmp_path):
    cluster = cluster_of(tmp_path, Reading(EQUAL), hosts=6, pools=((4, 2, 50),))
    plan = plan_of(cluster, demand_of(cluster, np.ones(12)), 0.0)
    assert plan.after.max() == plan.roles.bound == 17.0  # 200 read positions on 12 OSDs: 16.7


@pytest.mark.slow
def test_a_thousand_osds(tmp_path):
    pools = ((4, 2, 8192), (8, 3, 8192), (4, 2, 4096), (6, 3, 4096), (2, 2, 8192))
    cluster = cluster_of(tmp_path, hosts=125, per_host=8, pools=pools)
    plan = plan_of(cluster, demand_of(cluster, np.ones(1000)), 0.01)
    assert len(cluster.groups.ids) == 32768
    assert plan.after.max() <= 1.02 * plan.roles.bound
    assert (
        plan.shards <= 1.25 * plan.roles.copies_bound
    )  # a linear program's, which whole groups do not reach


def by_brute_force(cluster, demand):
    """Least max load of all choices of roles and primaries."""
    groups = [cluster.osd_ids(place).tolist() for place in range(len(cluster.groups.ids))]
    k = cluster.pools[0].k
    choices = [
        [(first, data) for data in itertools.combinations(osds, k) for first in data] for osds in groups
    ]
    best = np.inf
    for chosen in itertools.product(*choices):
        load = demand.base.copy()
        for work, (first, data) in zip(demand.work, chosen, strict=True):
            load[list(data)] += work
            load[first] += demand.primary * work
        best = min(best, (load / demand.speed).max())
    return best


@pytest.mark.parametrize("seed", range(4))
def test_primaries_are_spread_beside_the_best_of_all_choices(tmp_path, seed):
    cluster = cluster_of(tmp_path, hosts=4, per_host=1, pools=((2, 1, 5),), seed=seed)
    demand = demand_of(cluster, np.ones(4), primary=0.8)
    plan = plan_of(cluster, demand, 0.0)
    best = by_brute_force(cluster, demand)
    assert plan.roles.bound <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= plan.after.max() <= 1.1 * best  # five groups leave exchanges little room
    without = plan_of(cluster, demand._replace(primary=0.0), 0.0)
    assert plan.after.max() <= role_load(cluster, demand, without.sets).max() * (1 + 1e-9)


@pytest.mark.parametrize(("primary", "tolerance"), [(0.0, 2), (0.5, None), (0.5, 2)])
def test_a_hot_group_is_in_the_least_possible(tmp_path, primary, tolerance):
    """One group has nearly all reads: k OSDs bear all of them, and one of these the work of the primary."""
    parts = made(hosts=8, pools=((2, 2, 24),))
    for group in parts["groups"][-1]["pg_map"]["pg_stats"]:
        group["stat_sum"]["num_read"] += 10**6 * (group["pgid"] == "1.7")
    cluster = read_cluster(read_dumps(write(tmp_path, parts)))
    demand = demand_of(cluster, np.ones(16), primary=primary)
    plan = plan_of(cluster, demand, 0.0, tolerance)
    hottest = (1 + primary) * demand.work[cluster.groups.ids.index("1.7")]
    assert hottest == pytest.approx((1 + primary) * demand.work.max())
    assert hottest * (1 - 1e-9) <= plan.roles.bound <= plan.after.max() * (1 + 1e-9)
    assert plan.after.max() <= 1.001 * hottest


def test_primaries_of_many_groups_are_spread_evenly(tmp_path):
    cluster = cluster_of(tmp_path, hosts=8, pools=((4, 2, 64),))
    demand = demand_of(cluster, np.ones(16), primary=0.75)
    plan = plan_of(cluster, demand, 0.05)
    assert plan.after.max() <= 1.06 * plan.roles.bound < role_load(cluster, demand, {}).max()
    assert plan.shards == copied(cluster, plan.sets)[0]
    for name, osds in plan.sets.items():
        assert set(osds) == set(cluster.sets[name])
    batches = batches_of(cluster, changes(cluster, plan.sets), demand, plan.before, Limits(0.05, np.inf))
    np.testing.assert_allclose(batches[-1].load, plan.after)


def every_load(cluster, demand):
    """(choices, m) loads of all choices of roles, with what is counted in ``demand.base``."""
    rows = []
    for work, name in zip(demand.work, cluster.groups.ids, strict=True):
        osds = list(cluster.sets[name])
        chosen = list(itertools.combinations(osds, cluster.pools[0].k))
        loads = np.zeros((len(chosen), len(cluster.osds)))
        for row, read in zip(loads, chosen, strict=True):
            row[list(read)] = work
        rows.append(loads)
    total = demand.base[None, :]
    for loads in rows:
        total = (total[:, None, :] + loads[None, :, :]).reshape(-1, len(cluster.osds))
    return total


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tolerance", [None, 5])
def test_an_osd_that_holds_nothing_that_may_change_bounds_nothing(tmp_path, seed, tolerance):
    """Another root, hot: of the others the busiest has the least that any choice of roles, or placement, has."""
    parts = made(hosts=5, per_host=1, pools=((2, 2, 5),), seed=seed)
    parts["osd"]["osds"].append({"osd": 5, "up": 1, "in": 1, "weight": 1})
    parts["crush"]["devices"].append({"id": 5, "name": "osd.5", "class": "ssd"})
    item = {"id": 5, "weight": 65536, "pos": 0}
    parts["crush"]["buckets"].append({"id": -90, "name": "fast", "type_name": "root", "items": [item]})
    cluster = read_cluster(read_dumps(write(tmp_path, parts)))
    demand = demand_of(cluster, np.ones(6))
    demand = demand._replace(base=np.array([0, 0, 0, 0, 0, 1e3 * demand.work.sum()]))
    shared = shared_demand(cluster, demand, tolerance)
    assert shared.counted.tolist() == [True] * 5 + [False]
    plan = plan_of(cluster, shared.demand, 0.0, tolerance)
    load = role_load(cluster, demand, plan.sets)
    best = every_load(cluster, demand)[:, :5].max(axis=1).min()
    assert load[5] == demand.base[5]
    assert plan.roles.bound <= best * (1 + 1e-9) and plan.after.max() == pytest.approx(load[:5].max())
    if tolerance is None:
        assert best * (1 - 1e-9) <= load[:5].max() <= 1.01 * best


@pytest.mark.parametrize("seed", range(3))
def test_an_osd_that_has_too_much_by_what_stays_reads_nothing(tmp_path, seed):
    """Two of them: of all choices in which they read nothing, the others have the least largest load."""
    cluster = cluster_of(tmp_path, hosts=6, per_host=1, pools=((2, 3, 4),), seed=seed)
    demand = demand_of(cluster, np.ones(6))
    total = float(demand.work.sum())
    demand = demand._replace(base=total * np.array([0, 9.0, 0.1, 0, 2.0, 0]))
    shared = shared_demand(cluster, demand, None)
    assert np.flatnonzero(~shared.counted).tolist() == [1, 4]
    loads = every_load(cluster, demand)
    best = loads[(loads[:, [1, 4]] == demand.base[[1, 4]]).all(axis=1)][:, [0, 2, 3, 5]].max(axis=1).min()
    plan = plan_of(cluster, shared.demand, 0.0)
    load = role_load(cluster, demand, plan.sets)
    np.testing.assert_allclose(load[[1, 4]], demand.base[[1, 4]])
    assert plan.roles.bound <= best * (1 + 1e-5) and load[[0, 2, 3, 5]].max() <= 1.01 * best
    # of all choices: what counts of the two is no more than the others have at least
    counted = (loads - shared.beyond).max(axis=1)
    assert plan.roles.bound <= counted.min() * (1 + 1e-9) and plan.after.max() <= 1.01 * counted.min()
    batches = batches_of(cluster, changes(cluster, plan.sets), shared.demand, plan.before, Limits(0.2, 1e30))
    assert {change.group for batch in batches for change in batch.changes} == set(plan.sets)


@pytest.mark.parametrize("tolerance", [None, 5])
def test_any_number_of_osds_may_have_too_much_by_what_stays(tmp_path, monkeypatch, tolerance):
    """30 of 60, no two alike: the others read both of their shards of every group, four groups each."""
    parts, osds = made(hosts=60, per_host=1, pools=((2, 2, 60),), equal=True), np.arange(60)
    for dump in parts["groups"]:
        for place, each in enumerate(dump["pg_map"]["pg_stats"]):
            heavy, others = (place % 30, (place + 7) % 30), (30 + place % 30, 30 + (place + 1) % 30)
            each["up"] = each["acting"] = [*heavy, *others]
    cluster = read_cluster(read_dumps(write(tmp_path, parts)))
    stays = np.where(osds < 30, 1000.0 + osds, 0.0)
    demand = demand_of(cluster, np.ones(60))._replace(base=stays)
    asked = []

    def counted(*words):
        asked.append(words)
        return least_spread(*words)

    monkeypatch.setattr("ecjax.rados.shared.least_spread", counted)
    shared = shared_demand(cluster, demand, tolerance)
    assert len(asked) <= 6  # halvings of 60
    assert np.flatnonzero(shared.counted).tolist() == list(range(30, 60))
    np.testing.assert_allclose(shared.demand.base, np.where(osds < 30, 4.0, 0.0), rtol=1e-5)
    plan = plan_of(cluster, shared.demand, 0.0, tolerance)
    np.testing.assert_allclose(role_load(cluster, demand, plan.sets), np.where(osds < 30, stays, 4.0))


@pytest.mark.parametrize("seed", range(6))
def test_what_counts_is_the_least_beside_all_choices_of_full_osds(tmp_path, seed):
    """Of OSDs alone the least max load is the largest that stays, or that of all being alike."""
    cluster = cluster_of(tmp_path, hosts=6, per_host=1, pools=((2, 2, 6),), seed=seed)
    draw, work = np.random.default_rng(seed), 2 * demand_of(cluster, np.ones(6)).work.sum()
    speed, base = draw.uniform(1, 3, 6), work * draw.lognormal(-1, 2, 6)
    choices = [list(osds) for count in range(1, 7) for osds in itertools.combinations(range(6), count)]
    level = min(
        max((base[osds] / speed[osds]).max(), (base[osds].sum() + work) / speed[osds].sum())
        for osds in choices
    )
    shared = shared_demand(cluster, demand_of(cluster, speed)._replace(base=base), 2)
    beyond = np.maximum(base / speed - level, 0.0)
    np.testing.assert_allclose(shared.beyond, beyond, rtol=0, atol=1e-5 * level)
    assert shared.counted.tolist() == (beyond == 0).tolist()


@pytest.mark.parametrize(("tolerance", "primary"), [(2, 0.0), (None, 1.0)])
def test_what_stays_may_be_beyond_comparison_with_what_is_read(tmp_path, tolerance, primary):
    """Each OSD has a hundred million times the reads of all groups and more; what the least busy one has counts."""
    cluster = cluster_of(tmp_path, hosts=4, per_host=1, pools=((1, 3, 4),))
    demand = demand_of(cluster, np.ones(4), primary=primary)
    base = 1e8 * demand.work.sum() * np.array([4.0, 2.0, 1.0, 3.0])
    shared = shared_demand(cluster, demand._replace(base=base), tolerance)
    np.testing.assert_allclose(shared.demand.base, base.min(), rtol=1e-5)
    plan = plan_of(cluster, shared.demand, 0.01, tolerance)
    assert plan.after.max() <= plan.before.max() * (1 + 1e-9)
    none = np.zeros(0)
    assert least_spread(np.ones(1), np.zeros((1, 0), bool), none, none) is None


def test_pools_are_divided_by_the_osds_that_they_may_load(tmp_path):
    """Of four pools the first two share osd.2, and the third is alone on three OSDs; the last is not read."""
    parts = made(hosts=6, per_host=1, pools=((1, 1, 2), (1, 1, 2), (1, 1, 4), (1, 1, 1)))
    sets = [(0, 1), (1, 2), (2, 0), (2, 0), (3, 4), (3, 5), (3, 5), (4, 5), (0, 5)]
    for later, dump in enumerate(parts["groups"]):
        for each, osds in zip(dump["pg_map"]["pg_stats"], sets, strict=True):
            each["up"] = each["acting"] = list(osds)
            each["stat_sum"]["num_read"] = 0 if each["pgid"] == "4.0" else 600 * later
    cluster = read_cluster(read_dumps(write(tmp_path, parts)))
    demand = demand_of(cluster, np.ones(6))
    first, last = parts_of(cluster, demand, None)
    assert (first.pools, last.pools) == ((0, 1), (2,))
    assert np.flatnonzero(first.counted).tolist() == [0, 1, 2]
    assert np.flatnonzero(last.counted).tolist() == [3, 4, 5]
    # four reads/s on three OSDs each, in fractions
    assert first.least == pytest.approx(4 / 3) == pytest.approx(last.least)
    # osd.5 has more than the two others have with all reads
    busy = demand._replace(base=np.array([0, 0, 0, 0, 0, 9.0]))
    last = parts_of(cluster, busy, None)[1]
    assert np.flatnonzero(last.counted).tolist() == [3, 4] and last.least == pytest.approx(2.0)
    # under one rule all of them may be anywhere
    assert parts_of(cluster, demand, 1) == []


def test_an_ordinary_demand_is_shared_as_it_is(tmp_path):
    cluster = cluster_of(tmp_path, hosts=6, pools=((2, 2, 24),))
    demand = demand_of(cluster, np.ones(12), primary=0.5)
    for tolerance in (None, 2):
        shared = shared_demand(cluster, demand, tolerance)
        assert shared.counted.all() and shared.demand.base.tolist() == demand.base.tolist()


def on_others(cluster, plan):
    """Shards by the OSD that takes them from outside of its group."""
    taken = [osd for name, osds in plan.sets.items() for osd in set(osds) - set(cluster.sets[name])]
    return {osd: taken.count(osd) for osd in taken}


@pytest.mark.parametrize("primary", [0.5, 3.0])
def test_primaries_that_do_much_leave_the_load_even(tmp_path, primary):
    cluster = cluster_of(tmp_path, hosts=6, pools=((2, 2, 48),), seed=3)
    demand = demand_of(cluster, np.ones(12), primary=primary)
    plan = plan_of(cluster, demand, 0.02)
    # no placement is more even than one without any difference
    even = role_load(cluster, demand, {}).mean()
    assert plan.roles.bound == pytest.approx(even, rel=0.01)
    assert plan.after.max() <= 1.03 * even < 1.2 * even < plan.before.max()


def test_what_no_longer_helps_is_left_out(tmp_path):
    cluster = cluster_of(tmp_path, hosts=6, pools=((2, 2, 48),), seed=3)
    demand = demand_of(cluster, np.ones(12))
    plan = plan_of(cluster, demand, 0.02)
    busiest = int(np.argmax(plan.after))
    idle = next(
        name
        for name, osds in cluster.sets.items()
        if name not in plan.sets and busiest in osds[2:] and busiest != osds[0]
    )
    # the busiest OSD is to read here, too
    osds = list(cluster.sets[idle])
    place = osds.index(busiest)
    osds[0], osds[place] = osds[place], osds[0]
    more = plan._replace(sets=plan.sets | {idle: tuple(osds)})
    batches = batches_of(cluster, changes(cluster, more.sets), demand, plan.before, Limits(0.05, np.inf))
    listed = {change.group for batch in batches for change in batch.changes}
    assert idle not in listed and listed <= set(plan.sets)
    less = shortened(cluster, demand, more, listed)
    assert set(less.sets) == listed and less.shards == copied(cluster, less.sets)[0] <= plan.shards
    np.testing.assert_allclose(less.after, batches[-1].load)
    assert less.after.max() <= plan.after.max() * (1 + 1e-9)


def test_an_osd_without_weight_takes_nothing_and_its_groups_stay(tmp_path):
    parts = made(hosts=8, pools=((2, 2, 48),))
    for node in parts["tree"]["nodes"]:
        node["crush_weight"] = 0.0 if node["id"] == 5 else 1.0
    cluster = read_cluster(read_dumps(write(tmp_path / "dumps", parts)))
    plan = plan_of(cluster, demand_of(cluster, np.ones(16)), 0.05, tolerance=3)
    assert plan.sets and not any(5 in (*osds, *cluster.sets[name]) for name, osds in plan.sets.items())
    assert on_others(cluster, plan) and targets(cluster, 0)[5] == 0


def test_osds_of_another_root_change_nothing(tmp_path):
    parts = made(hosts=8, pools=((2, 2, 48),))
    alone = read_cluster(read_dumps(write(tmp_path / "alone", parts)))
    for osd in range(16, 22):
        parts["osd"]["osds"].append({"osd": osd, "up": 1, "in": 1, "weight": 1})
        parts["crush"]["devices"].append({"id": osd, "name": f"osd.{osd}", "class": "ssd"})
    items = [{"id": osd, "weight": 65536, "pos": 0} for osd in range(16, 22)]
    parts["crush"]["buckets"].append({"id": -90, "name": "fast", "type_name": "root", "items": items})
    beside = read_cluster(read_dumps(write(tmp_path / "beside", parts)))
    before, after = (
        plan_of(each, demand_of(each, np.ones(len(each.osds))), 0.05, tolerance=3) for each in (alone, beside)
    )
    assert on_others(alone, before) and on_others(beside, after) and max(on_others(beside, after)) < 16
    assert after.roles.bound == pytest.approx(before.roles.bound)
    assert after.after.max() == pytest.approx(before.after.max(), rel=0.05)


def test_full_osds_take_nothing(tmp_path):
    parts = made(hosts=8, pools=((2, 2, 48),))
    cluster = read_cluster(read_dumps(write(tmp_path / "before", parts)))
    plan = plan_of(cluster, demand_of(cluster, np.ones(16)), 0.05, tolerance=3)
    full, nearly = sorted(on_others(cluster, plan), key=on_others(cluster, plan).get)[-2:]
    parts["osd"]["osds"][full]["state"] = ["exists", "up", "backfillfull"]
    parts["osd"]["backfillfull_ratio"] = 0.9
    for node in parts["tree"]["nodes"]:
        # shards have 2^29 bytes; this one has room for one of them
        node["kb_used"] = int(0.9 * node["kb"]) - 600 * 2**10 if node["id"] == nearly else 0
    cluster = read_cluster(read_dumps(write(tmp_path / "after", parts)))
    assert any(f"so full that Ceph backfills no more to them (osd.{full})" in each for each in cluster.notes)
    plan = plan_of(cluster, demand_of(cluster, np.ones(16)), 0.05, tolerance=3)
    assert plan.sets and on_others(cluster, plan).get(nearly, 0) <= 1
    assert not any(full in (*osds, *cluster.sets[name]) for name, osds in plan.sets.items())

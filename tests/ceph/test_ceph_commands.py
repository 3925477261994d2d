"""Commands against the monitor's rules: nothing vanishes, nobody goes home in between, undo is exact."""

import numpy as np
import pytest
from ceph_dumps import made, write
from hypothesis import given
from hypothesis import strategies as st

from ecjax.rados.batches import Limits, batches_of
from ecjax.rados.commands import PREPARE, changes, commands_of, expected_entries, preparing, undo_of
from ecjax.rados.crush import rule_domains
from ecjax.rados.files import read_dumps
from ecjax.rados.monitor import Map, Refused, applied, judged
from ecjax.rados.plan import demand_of, plan_of
from ecjax.rados.raw import own_sets, with_items
from ecjax.rados.read import read_cluster
from ecjax.rados.records import Entries
from ecjax.rados.verify import Expected, findings, moved_on, same_entries

DOMAINS = rule_domains(made(hosts=6)["crush"], 1)  # 12 OSDs, two per host
RAW = (0, 2, 4, 6)


def one_group(upmap=None, items=None, out=()):
    entries = Entries({} if upmap is None else {"1.0": upmap}, {} if items is None else {"1.0": items})
    return Map({"1.0": RAW}, {"1.0": DOMAINS}, frozenset(out), entries)


@pytest.mark.parametrize(
    ("upmap", "items", "out", "left"),
    [
        # a set that breaks the rule: all entries go
        ((0, 1, 4, 6), ((2, 8),), (), ({}, {})),
        (None, ((0, 3),), (), ({}, {})),
        # CRUSH's own set: its items go, too
        (RAW, ((0, 8),), (), ({}, {})),
        # an item whose a CRUSH did not choose, alone or beside others; with the last one goes the pg_upmap
        ((2, 0, 4, 6), ((8, 10),), (), ({}, {})),
        ((2, 0, 4, 6), ((8, 10), (0, 9)), (), ({"1.0": (2, 0, 4, 6)}, {"1.0": ((0, 9),)})),
        (None, ((0, 8), (9, 10)), (), ({}, {"1.0": ((0, 8),)})),
        (None, ((0, 8),), (8,), ({}, {})),
        # a pg_upmap on an OSD that is out stays, and is ignored
        ((8, 2, 4, 6), None, (8,), ({"1.0": (8, 2, 4, 6)}, {})),
        ((2, 0, 4, 6), None, (), ({"1.0": (2, 0, 4, 6)}, {})),
    ],
)
def test_rules_of_the_monitor(upmap, items, out, left):
    after = judged(one_group(upmap, items, out))
    assert (after.entries.upmap, after.entries.items) == left
    if upmap and out:
        assert after.up("1.0") == RAW


def test_items_are_taken_in_order_and_cannot_swap():
    assert with_items(RAW, ((0, 8), (8, 10))) == (10, 2, 4, 6)
    assert with_items(RAW, ((0, 2), (2, 0))) == RAW
    assert with_items(RAW, ((0, 8),), frozenset([8])) == RAW


def test_unknown_commands_are_refused():
    for line in (
        "ceph osd pg-upmap 1.9 1 2",
        "ceph osd out 3 4",
        "ceph osd pg-upmap-items 1.0 3",
        "rm -r 1 2",
    ):
        with pytest.raises(Refused):
            applied(one_group(), [line])


sets_of_domains = st.permutations(range(6)).flatmap(
    lambda hosts: st.tuples(*(st.sampled_from((2 * host, 2 * host + 1)) for host in hosts[:4]))
)


@given(
    raw=sets_of_domains,
    new=sets_of_domains,
    old=st.one_of(st.none(), sets_of_domains),
    picks=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 11)), max_size=2),
)
def test_every_command_survives_and_undo_is_exact(raw, new, old, picks):
    items = tuple(dict((raw[place], osd) for place, osd in picks).items())
    entries = Entries({} if old is None else {"1.0": old}, {"1.0": items} if items and old is None else {})
    state = judged(Map({"1.0": raw}, {"1.0": DOMAINS}, frozenset(), entries))
    before = state.up("1.0")
    forth = commands_of("1.0", new, state.entries, raw)
    on_the_way = state
    for line in forth:
        on_the_way = applied(on_the_way, [line])
        # home in between only where items would move shards of the new set
        home = (raw,) if with_items(new, items) != new else ()
        assert on_the_way.up("1.0") in (new, before, *home)
    assert on_the_way.up("1.0") == new
    assert on_the_way.entries.upmap == ({} if new == raw else {"1.0": new}) and not on_the_way.entries.items
    back = applied(on_the_way, undo_of("1.0", new, state.entries, raw))
    assert back.entries == state.entries and back.up("1.0") == before


def test_items_that_would_act_on_the_new_set_go_first():
    """An item to an OSD that the group has already sleeps until the new set leaves that OSD."""
    raw, items, new = (0, 2, 4, 6), ((0, 2),), (0, 8, 4, 6)
    state = judged(Map({"1.0": raw}, {"1.0": DOMAINS}, frozenset(), Entries({}, {"1.0": items})))
    assert state.entries.items == {"1.0": items} and state.up("1.0") == raw
    after = applied(state, commands_of("1.0", new, state.entries, raw))
    assert after.up("1.0") == new and after.entries == Entries({"1.0": new}, {})
    # the same the other way round, where two shards would meet on one host
    old, pairs, to = (8, 2, 4, 6), ((8, 3),), (8, 10, 2, 6)
    state = judged(Map({"1.0": old}, {"1.0": DOMAINS}, frozenset(), Entries({}, {"1.0": pairs})))
    after = applied(state, commands_of("1.0", to, state.entries, old))
    assert after.up("1.0") == to


@pytest.mark.parametrize(
    ("min_client", "lines"),
    [
        ("", [PREPARE]),
        ("unknown", [PREPARE]),
        ("hammer", [PREPARE]),
        ("jewel", [PREPARE]),
        ("kraken", [PREPARE]),
    ]
    + [(release, []) for release in ("luminous", "mimic", "nautilus", "octopus", "pacific", "quincy", "reef")]
    + [(release, []) for release in ("squid", "tentacle", "umbrella")],
)
def test_clients_that_are_required_are_never_older_than_before(min_client, lines):
    assert preparing(min_client) == lines


def test_a_set_with_an_osd_without_weight_is_dropped():
    state = one_group()._replace(weightless=frozenset([8]))
    assert applied(state, ["ceph osd pg-upmap 1.0 8 2 4 6"]).entries == Entries({}, {})
    assert applied(state, ["ceph osd pg-upmap 1.0 10 2 4 6"]).entries.upmap == {"1.0": (10, 2, 4, 6)}


def planned(tmp_path, within=0.3, tolerance=None, **parts):
    cluster = read_cluster(read_dumps(write(tmp_path / "dumps", made(**parts))))
    demand = demand_of(cluster, np.ones(len(cluster.osds)))
    plan = plan_of(cluster, demand, within, tolerance)
    return cluster, demand, plan, changes(cluster, plan.sets)


def state_of(cluster):
    names = cluster.groups.ids
    domains = {name: cluster.domains[cluster.groups.pool[place]] for place, name in enumerate(names)}
    return Map(cluster.raw, domains, frozenset(), cluster.entries)


@pytest.mark.parametrize("tolerance", [None, 2])
def test_a_plan_comes_about_and_goes(tmp_path, tolerance):
    cluster, _, plan, listed = planned(
        tmp_path, tolerance=tolerance, hosts=8, pools=((2, 2, 32), (4, 2, 32)), items=12
    )
    state = state_of(cluster)
    assert judged(state).entries == cluster.entries
    assert {name: state.up(name) for name in cluster.sets} == cluster.sets
    after = applied(state, [line for change in listed for line in change.commands])
    assert {name: after.up(name) for name in cluster.sets} == cluster.sets | plan.sets
    assert after.entries == expected_entries(cluster.entries, listed, cluster.raw)
    assert any(change.group in cluster.entries.items for change in listed)
    back = applied(after, [line for change in listed[::-1] for line in change.undo])
    assert back.entries == cluster.entries
    assert same_entries(cluster.entries, after.entries, plan.sets) == sorted(
        plan.sets, key=list(plan.sets).index
    )


def test_batches_are_small_and_never_make_it_worse(tmp_path):
    cluster, demand, plan, listed = planned(tmp_path, within=0.15, hosts=8, pools=((2, 2, 48), (4, 2, 32)))
    batches = batches_of(cluster, listed, demand, plan.before, Limits(0.05, float("inf")))
    assert len(batches) > 1
    assert sorted(change.group for batch in batches for change in batch.changes) == sorted(plan.sets)
    most = [plan.before.max(), *(batch.load.max() for batch in batches)]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in zip(most, most[1:], strict=False))
    np.testing.assert_allclose(batches[-1].load, plan.after)
    for batch in batches:
        for pool, shards in ((1, 48 * 4), (2, 32 * 6)):
            moved = sum(
                a != b
                for change in batch.changes
                if change.group.startswith(f"{pool}.")
                for a, b in zip(change.before, change.after, strict=True)
            )
            assert moved <= 0.05 * shards
    few = batches_of(cluster, listed, demand, plan.before, Limits(1.0, 3 * 2**29))
    assert all(batch.bytes <= 3 * 2**29 or len(batch.changes) == 1 for batch in few)
    assert batches_of(cluster, [], demand, plan.before, Limits(1.0, 1.0)) == []


def test_what_is_not_in_force_is_named_with_its_reason(tmp_path):
    cluster, _, plan, _ = planned(tmp_path, hosts=8, pools=((2, 2, 32),))
    held = cluster.sets
    expected = Expected(cluster.fsid, {name: held[name] for name in plan.sets}, plan.sets)
    assert {each.group for each in findings(expected, cluster)} == set(plan.sets)
    assert all("no entry" in each.why for each in findings(expected, cluster))
    assert moved_on(expected, cluster) == []
    name = next(iter(plan.sets))
    other = cluster._replace(entries=Entries({name: plan.sets[name]}, {}))
    assert "pg dump lags" in findings(expected, other)[0].why
    gone = Expected(cluster.fsid, {"9.0": (1, 2)}, {"9.0": (2, 1)})
    assert "gone" in findings(gone, cluster)[0].why and moved_on(gone, cluster)


def test_own_sets_are_not_told_where_they_cannot_be():
    entries = Entries({"1.1": (1, 2)}, {"1.0": ((0, 8), (8, 10))})
    assert own_sets({"1.0": (10, 2), "1.1": (1, 2), "1.2": (3, 2147483647)}, entries) == {"1.0": (0, 2)}

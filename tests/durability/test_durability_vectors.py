"""Durability against cases whose values were computed in 50 digits, and against simulations."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ecjax.durability.clusters import cluster_loss, fatal_share, power_loss
from ecjax.durability.domain_chain import Chain, chain_loss_rates, mds_survives, plain_rates
from ecjax.durability.lrc import decodable_patterns, lrc_loss_rate, lrc_product_rate
from ecjax.durability.mds_chain import (
    fixed_windows_loss,
    loss_within,
    mean_years_to_loss,
    product_years_to_loss,
)
from ecjax.durability.outages import unavailable_rate
from ecjax.durability.repair_times import RepairCluster, repair_load, repair_time

CASES = json.loads((Path(__file__).parent / "durability_vectors.json").read_text())["cases"]


def repairs(inputs):
    return [8766 / hours for hours in inputs["repair_hours"]]


def fixed_windows(inputs):
    return {
        "annual_loss": fixed_windows_loss(inputs["n"], inputs["m"], inputs["rate_per_year"], inputs["days"])
    }


def mds_chain(inputs):
    chain = inputs["n"], inputs["rate_per_year"], repairs(inputs)
    return {
        "mttdl_years": mean_years_to_loss(*chain),
        "mttdl_product_years": product_years_to_loss(*chain),
        "rate_loss_per_year": 1 / mean_years_to_loss(*chain),
        "first_year_loss": loss_within(1, *chain),
    }


def lrc_chain(inputs):
    chain = (inputs["k"], inputs["l"], inputs["g"]), inputs["rate_per_year"], repairs(inputs)
    return {
        "mttdl_years": 1 / lrc_loss_rate(*chain),
        "mttdl_lumped_product_years": 1 / lrc_product_rate(*chain),
    }


def domain_chain(inputs):
    chain = Chain(
        tuple(inputs["chunks_per_domain"]),
        mds_survives(inputs["m"]),
        np.array(inputs["rate_per_year"]),
        np.array(inputs["domain_rate_per_year"]),
        plain_rates(repairs(inputs)),
        np.array(0.0),
    )
    return {"mttdl_years": 1 / float(sum(chain_loss_rates(chain).values()))}


def cluster(inputs):
    share = fatal_share(inputs["n"], inputs["hosts"], inputs["disks_per_host"], 0, inputs["m"] + 1)
    loss = cluster_loss(inputs["groups"], inputs["group_rate_per_year"], share)
    return {
        "share_probability": loss.share,
        "events_per_year": loss.events,
        "annual_loss": loss.annual_loss,
        "groups_per_event": loss.groups_per_event,
    }


def repaired_cluster(inputs):
    return RepairCluster(
        inputs["hosts"],
        inputs["disks_per_host"],
        inputs["groups"],
        inputs["user_bytes"],
        inputs["disk_bytes_per_s"],
        inputs["cluster_bytes_per_s"],
        inputs["detect_s"],
    )


def repair(inputs):
    code = inputs["n"], inputs["k"], inputs["read_chunks"]
    return repair_time(repaired_cluster(inputs), *code, inputs["hosts_lost"], inputs["disks_lost"])._asdict()


def planned_outages(inputs):
    chain = inputs["n"], inputs["rate_per_year"], repairs(inputs)
    outage = inputs["outages_per_domain_year"], inputs["outage_hours"] / 8766
    return {
        "unavailable_per_year": unavailable_rate(*chain, *outage),
        "unavailable_per_year_started_when_whole": unavailable_rate(*chain, *outage, True),
    }


def lrc_decodable(inputs):
    patterns = decodable_patterns(inputs["k"], inputs["l"], inputs["g"])
    return {f"decodable {f}": ways for f, ways in enumerate(patterns)}


KINDS = {
    "fixed_windows": fixed_windows,
    "mds_chain": mds_chain,
    "lrc_chain": lrc_chain,
    "domain_chain": domain_chain,
    "cluster": cluster,
    "repair_time": repair,
    "planned_outages": planned_outages,
    "lrc_decodable": lrc_decodable,
}


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["kind"] in KINDS], ids=lambda case: case["kind"]
)
def test_a_case_is_met_to_its_precision(case):
    computed, expected = KINDS[case["kind"]](case["inputs"]), dict(case["expected"])
    for missing, (decodable, _) in expected.pop("patterns", {}).items():
        expected[f"decodable {missing}"] = decodable
    assert {name: computed[name] for name in expected} == pytest.approx(expected, rel=1e-10, abs=0)


def test_published_tables_of_copysets():
    # Cidon et al., ATC 2013: 5000 nodes of which 1 % die, three copies, scatter width 2; random copies
    copysets = 5000 * 2 / (3 * 2)
    assert power_loss(5000, 50, 3, round(copysets)) == pytest.approx(0.00157, rel=5e-3)
    assert power_loss(5000, 50, 3, 40_000_000) == pytest.approx(1.0)


def test_repair_that_keeps_all_disks_busy_has_a_load_above_one():
    slow = RepairCluster(12, 10, 1024, 500e12, 1e4, 6e9, 600)
    assert repair_load(slow, 11, 8, 8, 0.015) > 1
    assert repair_load(slow._replace(disk_bytes_per_s=1e8), 11, 8, 8, 0.015) < 0.01


def simulated_losses(chunks, m, rates, repair_years, seed, losses):
    """Groups of chunks in domains, repaired one at a time, until `losses` of them are lost: years, and domains lost."""
    random = np.random.default_rng(seed)
    failure, domain = rates
    years, lost = 0.0, Counter()
    while lost.total() < losses:
        missing, gone = [0] * len(chunks), [False] * len(chunks)
        while sum(missing) <= m:
            alive = [(c - a) * failure for c, a in zip(chunks, missing, strict=True)]
            whole = [domain if a < c else 0.0 for c, a in zip(chunks, missing, strict=True)]
            repair_rate = 1 / repair_years if any(missing) else 0.0
            total = sum(alive) + sum(whole) + repair_rate
            years += random.exponential(1 / total)
            event = random.choice(2 * len(chunks) + 1, p=np.array([*alive, *whole, repair_rate]) / total)
            if event < len(chunks):
                missing[event] += 1
            elif event < 2 * len(chunks):
                missing[event - len(chunks)] = chunks[event - len(chunks)]
                gone[event - len(chunks)] = True
            else:
                worst = max(range(len(chunks)), key=lambda i: (missing[i], -chunks[i]))
                missing[worst] -= 1
                gone[worst] &= missing[worst] > 0
        lost[sum(gone)] += 1
    return years, lost


@pytest.mark.parametrize("seed", range(20))
def test_random_systems_at_accelerated_rates_agree_with_the_chain(seed):
    random = np.random.default_rng(seed)
    chunks = tuple(int(c) for c in random.integers(1, 3, random.integers(2, 5)))
    m = int(random.integers(1, min(3, sum(chunks))))
    rates, repair_years = (float(random.uniform(0.5, 2)), float(random.uniform(0.1, 0.5))), 0.2
    by_domains = chain_loss_rates(
        Chain(
            chunks,
            mds_survives(m),
            np.array(rates[0]),
            np.array(rates[1]),
            plain_rates([1 / repair_years] * m),
            np.array(0.0),
        )
    )
    losses = 250
    years, lost = simulated_losses(chunks, m, rates, repair_years, seed, losses)
    assert losses / years == pytest.approx(float(sum(by_domains.values())), rel=4 / losses**0.5)
    assert set(lost) <= set(by_domains)
    for domains, rate in by_domains.items():
        expected = float(rate) * years
        assert abs(lost[domains] - expected) <= 4 * expected**0.5 + 2

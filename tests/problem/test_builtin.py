"""The built-in cluster: the numbers it promises, and mistakes in its options."""

import math

import numpy as np
import pytest

from ecjax.errors import UserError
from ecjax.problem import builtin
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.tables.read import read_input


def tables(**options):
    chosen = ClusterOptions(**options)
    return (
        read_input(builtin.nodes(chosen), "nodes").to_pandas(),
        read_input(builtin.files(chosen), "files").to_pandas(),
    )


def mean_service(node, size):
    """Seconds for a chunk of ``size`` bytes."""
    if hasattr(node, "service_mean_s"):
        return node.service_mean_s * size / node.reference_bytes
    return node.delta_s + node.psi_s + (node.delta_s_per_byte + node.psi_s_per_byte) * size


def even_loads(nodes, files):
    """rho when every node serves k / m of the chunks of every file, by loops."""
    loads = np.zeros(len(nodes))
    for j, node in enumerate(nodes.itertuples()):
        for file in files.itertuples():
            loads[j] += file.rate_per_s * file.k / len(nodes) * mean_service(node, file.bytes / file.k)
    return loads


def drawn_disk(count, size):
    """Service times of a disk, drawn move by move: seek, rotation, and a transfer from where the bytes are."""
    random = np.random.default_rng(1)
    distance = np.abs(random.random(count) - random.random(count))
    seek = 8.5e-3 * np.sqrt(distance) / (8 / 15)  # the mean of the square root of the distance is 8/15
    radius = np.sqrt(random.uniform(0.25, 1, count))  # bytes are spread evenly over the area
    return seek + random.uniform(0, 60 / 7200, count), size / (250e6 * radius)


def test_a_chunk_takes_what_a_disk_of_7200_turns_needs():
    nodes, files = tables()
    size = 4 * 2**20
    positioning, transfer = drawn_disk(200_000, size)
    mean = np.array([mean_service(node, size) for node in nodes.itertuples()])
    assert mean[0] == pytest.approx(np.mean(positioning + transfer), rel=2e-3)
    assert nodes["psi_s"][0] == pytest.approx(np.std(positioning), rel=5e-3)
    assert mean[0] == pytest.approx(0.035, rel=2e-3) and np.all(nodes["psi_s_per_byte"] == 0)
    np.testing.assert_allclose(mean / mean[0], np.repeat([1, 1.3, 1.6], 4), rtol=1e-12)
    assert nodes["node_id"][5] == "rack-2-host-2" and nodes["site"].unique().tolist() == [
        "rack-1",
        "rack-2",
        "rack-3",
    ]
    np.testing.assert_allclose(nodes["cost_per_byte_dollars"] * 1e12, np.repeat([20, 14, 10], 4), rtol=1e-12)
    np.testing.assert_allclose(files["bytes"] / files["k"], size, rtol=1e-12)
    assert len(nodes) == 12 and len(files) == 1000 and np.all(files["min_extra_chunks"] == 2)
    assert even_loads(nodes, files).max() == pytest.approx(0.6, rel=1e-9)
    assert math.isclose(nodes["connect_var_s2"][0], (0.2 * 0.0005) ** 2)


def test_the_testbed_of_the_paper_is_the_one_described():
    nodes, files = tables(hardware="tahoe")
    assert len(nodes) == 12 and len(files) == 1000
    assert nodes["site"].value_counts().tolist() == [4, 4, 4]
    np.testing.assert_allclose(nodes["service_mean_s"] / 13.9, np.repeat([1, 1.3, 1.6], 4), rtol=1e-12)
    deviation = np.sqrt(nodes["service_second_s2"] - nodes["service_mean_s"] ** 2)
    np.testing.assert_allclose(deviation / 4.3, np.repeat([1, 1.3, 1.6], 4), rtol=1e-9)
    np.testing.assert_allclose(nodes["service_third_s3"][:4], 3476.8, rtol=1e-12)
    assert np.all(nodes["reference_bytes"] == 12.5e6)
    price = nodes["cost_per_byte_dollars"] * 12.5e6
    np.testing.assert_allclose(price, np.repeat([2, 1.5, 1], 4), rtol=1e-12)
    np.testing.assert_allclose(files["bytes"] / files["k"], 12.5e6, rtol=1e-12)
    various = tables(hardware="tahoe", bytes=[50e6, 100e6])[1]
    assert various["bytes"].between(50e6, 100e6).all() and various["bytes"].nunique() == 1000
    assert np.all(files["min_extra_chunks"] == 2)
    classes = files.groupby("service_class")
    assert classes["k"].unique().map(list).tolist() == [[6], [7], [6], [4]]
    assert classes.size().tolist() == [250] * 4
    rates = classes["rate_per_s"].mean()
    np.testing.assert_allclose(rates / rates[1], [1, 236 / 354, 236 / 354, 1], rtol=1e-9)
    assert even_loads(nodes, files).max() == pytest.approx(0.6, rel=1e-9)
    assert "group" not in files


@pytest.mark.parametrize("hardware", ["disk", "tahoe"])
@pytest.mark.parametrize(
    "options",
    [
        {"load": 0.8, "bytes": 200e6, "k": [6, 7, 4], "rates": [1, 2, 3], "files": 50},
        {"files": 7, "nodes_per_site": 2},
        {"files": 21, "sizes": [50e6, 100e6, 150e6], "k": [4, 3], "rates": [1, 22]},
    ],
)
def test_load_is_that_of_the_busiest_node_under_round_robin(options, hardware):
    assert even_loads(*tables(hardware=hardware, **options)).max() == pytest.approx(
        options.get("load", 0.6), rel=1e-9
    )


def test_grouped_classes_and_one_size():
    _, files = tables(grouped=True, bytes=5e7, files=40)
    assert np.all(files["bytes"] == 5e7)
    assert files.groupby("group")["service_class"].nunique().tolist() == [1, 1, 1, 1]


def test_sizes_follow_the_seed():
    one, again, other = (tables(files=20, seed=seed, bytes=[50e6, 100e6])[1]["bytes"] for seed in (1, 1, 2))
    assert one.equals(again) and not one.equals(other)
    # the ends of a range in either order
    assert one.equals(tables(files=20, seed=1, bytes=[100e6, 50e6])[1]["bytes"])


def test_sizes_in_turn_are_alike_in_every_class():
    _, files = tables(files=12, k=[4, 3, 2], rates=[1, 1, 1], sizes=[5e7, 1e8])
    assert files["bytes"].tolist() == [5e7, 1e8] * 6
    _, files = tables(files=10, k=[4, 4], rates=[1, 1], sizes=[1.0, 2.0, 3.0])
    assert files["bytes"].tolist() == [1, 2, 3, 1, 2] * 2
    assert files.groupby("service_class")["rate_per_s"].nunique().tolist() == [1, 1]


@pytest.mark.parametrize(
    "options, words",
    [
        ({"files": 3}, "cluster.files: found 3; allowed: at least 4, one file per class"),
        ({"files": 10.5}, "cluster.files: found 10.5"),
        ({"nodes_per_site": 0}, "cluster.nodes_per_site: found 0; allowed: a whole number from 1 to 100000"),
        ({"seed": -1}, "cluster.seed: found -1"),
        ({"k": [2.5, 3, 4, 5]}, "cluster.k: found [2.5, 3, 4, 5]; allowed: a whole number of at least 1"),
        (
            {"k": [0, 3, 4, 5]},
            "cluster.k: found [0, 3, 4, 5]; allowed: a whole number of at least 1, or",
        ),
        ({"k": "six"}, "cluster.k: found six"),
        ({"k": []}, "cluster.k: found []"),
        ({"rates": [1.0, 2.0]}, "cluster.rates: found [1.0, 2.0]; allowed: 4 numbers, one per class"),
        ({"rates": [1.0, 2.0, float("nan"), 1.0]}, "cluster.rates: found"),
        (
            {"bytes": [1e6, 2e6, 3e6]},
            "cluster.bytes: found [1000000.0, 2000000.0, 3000000.0]; allowed: a number above 0, or a list of at most 2",
        ),
        (
            {"sizes": [1e6, 0]},
            "cluster.sizes: found [1000000.0, 0]; allowed: a number above 0, or a list of them",
        ),
        ({"sizes": []}, "cluster.sizes: found []"),
        (
            {"sizes": [1e6], "bytes": 1e6},
            "cluster.sizes: found cluster.bytes=[1000000.0] too; allowed: one of both, sizes in turn or bytes",
        ),
        ({"bytes": -5e6}, "cluster.bytes: found -5000000.0; allowed: a number above 0"),
        ({"bytes": float("inf")}, "cluster.bytes: found inf"),
        (
            {"slowdown": [1.0, -2.0]},
            "cluster.slowdown: found [1.0, -2.0]; allowed: a number above 0, or a list",
        ),
        (
            {"slowdown": [1.0, 2.0]},
            "cluster.dollars_per_tb: found [20.0, 14.0, 10.0]; allowed: 2 numbers, one per site",
        ),
        (
            {"connect_mean_s": [0.0, 1.0]},
            "cluster.connect_mean_s: found [0.0, 1.0]; allowed: 3 numbers, one per site",
        ),
        ({"dollars_per_tb": 1.0}, "cluster.dollars_per_tb: found [1.0]; allowed: 3 numbers, one per site"),
        ({"n": [12, 10]}, "cluster.n: found [12, 10]; allowed: 4 numbers, one per class, from its k to 12"),
        ({"n": [6, 7, 6, 3]}, "cluster.n: found [6, 7, 6, 3]"),
        ({"n": [6, 7, 6, 13]}, "cluster.n: found [6, 7, 6, 13]"),
        ({"hardware": "tape"}, "cluster.hardware: found 'tape'; allowed: disk, tahoe"),
        ({"load": 1.0}, "cluster.load: found 1.0; allowed: a number between 0 and 1"),
        ({"load": "high"}, "cluster.load: found high"),
    ],
)
def test_mistakes_name_the_option(options, words):
    with pytest.raises(UserError) as error:
        tables(**options)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_files_with_a_code_length_lie_on_random_nodes():
    """As many different nodes each as the code of their class is long, every node as likely."""
    nodes, files = tables(files=4000, n=[12, 10, 9, 8])
    lengths = files["nodes"].map(len)
    assert files.groupby("service_class")["nodes"].agg(lambda each: {len(own) for own in each}).tolist() == [
        {12},
        {10},
        {9},
        {8},
    ]
    assert (files["nodes"].map(lambda each: len(set(each))) == lengths).all()
    last = files[files["service_class"] == 4]["nodes"].explode().value_counts()
    assert set(last.index) == set(nodes["node_id"])
    # 1000 files take 8 of 12 nodes: binomial(1000, 2/3) at each
    assert abs(last - 1000 * 2 / 3).max() < 4.5 * np.sqrt(1000 * 2 / 9)
    again = tables(files=4000, n=[12, 10, 9, 8])[1]["nodes"]
    assert all((one == other).all() for one, other in zip(files["nodes"], again, strict=True))
    assert "nodes" not in tables(files=40)[1].columns


def test_files_of_a_group_lie_on_the_same_nodes():
    _, files = tables(files=12, grouped=True, n=[12, 10, 9, 8])
    lists = files.assign(nodes=files["nodes"].map(tuple)).groupby("group")["nodes"].unique()
    assert [[len(each) for each in of_group] for of_group in lists] == [[12], [10], [9], [8]]

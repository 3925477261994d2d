"""What runs where, in words."""

from ecjax.engine.nodes import Nodes, Seen, now


def test_now():
    assert now([]) == ""
    workers = [Seen("a", True), Seen("a", False), Seen("b", True), Seen("", False), Seen("", True)]
    assert now(workers) == "a 1 of 2 busy, b 1 of 1 busy, 2 starting"


def test_now_on_many_nodes():
    """Those where workers wait come first."""
    workers = [Seen(f"n{node}", node != 7) for node in range(9) for _ in range(4)]
    assert now(workers) == "n7 0 of 4 busy, n0 4 of 4 busy, n1 4 of 4 busy, 6 more nodes 24 of 24"


def test_what_was_done():
    nodes = Nodes()
    nodes.of("b").items += 1200
    nodes.of("b").busy_s += 61.25
    nodes.of("a").lost += 1
    assert nodes.lines() == [
        "node a: 0 done in 0.0 s of its workers, 1 of its workers lost",
        "node b: 1,200 done in 61.2 s of its workers",
    ]
    for number in range(40):
        nodes.of(f"n{number}")
    assert len(nodes.lines()) == 21 and nodes.lines()[-1] == "and 22 more nodes"

"""Feasibility of all constraints together against trying every placement, and the message of each failure."""

import itertools
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import problems
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.problem.arrays import placement_rows
from ecjax.problem.feasibility import broken, check_feasible

CASE = problems.tiny()
PROBLEM = CASE.problem()
M = 4
NODES = pa.table({"node_id": ["p", "q", "r", "s"]})
SITE = np.array([0, 0, 1, 1], np.int32)


def instance(lengths, masks=None, per_site=None, capacity=None, weights=None, row=None):
    """A problem that has only what feasibility looks at, and its files table."""
    rows = len(lengths)
    count = rows if row is None else len(row)
    problem = replace(
        PROBLEM,
        row=None if row is None else jnp.asarray(row),
        k=jnp.ones(rows),
        floor=jnp.asarray(np.array(lengths, float)),
        price_chunks=jnp.asarray(np.ones(rows) if weights is None else np.array(weights, float)),
        allowed=None if masks is None else jnp.asarray(np.array(masks, bool)),
        site=jnp.asarray(SITE),
        per_site=per_site,
        capacity=None if capacity is None else jnp.asarray(np.array(capacity, float)),
    )
    return problem, pa.table({"file_id": [f"f{i}" for i in range(count)]})


def refused(*arguments, **options) -> str:
    problem, files = instance(*arguments, **options)
    with pytest.raises(UserError) as caught:
        check_feasible(problem, NODES, files)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def possible(lengths, masks, per_site, capacity) -> bool:
    """Whether some placement of exactly so many chunks keeps everything, by trying all."""
    choices = []
    for length, mask in zip(lengths, masks, strict=True):
        own = [
            chosen
            for chosen in itertools.combinations(np.flatnonzero(mask), length)
            if per_site is None or np.bincount(SITE[list(chosen)], minlength=2).max() <= per_site
        ]
        choices.append(own)
    for placement in itertools.product(*choices):
        held = np.bincount([j for chosen in placement for j in chosen], minlength=M)
        if np.all(held <= capacity):
            return True
    return False


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 1, 2]), st.booleans())
def test_what_is_refused_is_what_no_placement_keeps(seed, per_site, masked):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 4, 4)
    masks = random.random((4, M)) < 0.75 if masked else np.ones((4, M), bool)
    masks[1] = masks[0]  # classes of several rows
    capacity = random.integers(0, 5, M)
    problem, files = instance(lengths, masks if masked else None, per_site, capacity)
    if possible(lengths, masks, per_site, capacity):
        check_feasible(problem, NODES, files)
    else:
        with pytest.raises(UserError):
            check_feasible(problem, NODES, files)


def test_too_few_allowed_nodes():
    masks = np.ones((3, M), bool)
    masks[1, :2] = masks[2, 1] = False
    assert refused([3, 3, 4], masks) == (
        "files: column forbidden_nodes, row 1 (file_id=f1): leaves 2 of 4 nodes; at least 3 are needed, "
        "max(k + min_extra_chunks, d)"
    )
    message = refused([4, 3], [[True] * 3 + [False], [True] * 4], row=[1, 0, 0])
    assert message.startswith(
        "files: column forbidden_nodes, row 1 (file_id=f1): leaves 3 of 4 nodes; at least 4 are"
    )


def test_chunks_that_a_node_keeps_together_are_counted_as_chunks():
    problem, files = instance([4, 4, 3], per_site=1)
    with pytest.raises(
        UserError, match="max_chunks_per_site=2 leaves room for 4 chunks .* at least 8 are needed"
    ):
        check_feasible(problem, NODES, files, per_node=2)
    problem, files = instance([4, 4], capacity=[1, 1, 2, 2])
    with pytest.raises(UserError, match="found room for 12 chunks in all; the files need at least 16"):
        check_feasible(problem, NODES, files, per_node=2)
    problem, files = instance([3, 3, 3], capacity=[1, 1, 8, 8])
    with pytest.raises(UserError, match="have room for 4 chunks in all; at least 6 can only go there"):
        check_feasible(problem, NODES, files, per_node=2)


def test_messages_name_what_was_set_and_say_how_many_chunks_a_node_keeps():
    """Of three chunks to a site one node with two is left, at each of two sites."""
    problem, files = instance([4, 4, 3], per_site=3 // 2)
    with pytest.raises(UserError) as caught:
        check_feasible(problem, NODES, files, per_node=2, max_chunks_per_site=3)
    assert str(caught.value) == (
        "files: row 0 (file_id=f0): max_chunks_per_site=3 leaves room for 4 chunks at the sites of its nodes; at least "
        "8 are needed, for max(k + min_extra_chunks, d) chunks, 2 to a node"
    )
    problem, files = instance([1, 2], capacity=[3, 2, 2, 2], weights=[1, 3], row=[0, 1, 1, 1])
    with pytest.raises(UserError) as caught:
        check_feasible(problem, NODES, files, per_node=2)
    assert str(caught.value) == (
        "files: row 1 (file_id=f1): its group has 3 files, and 1 of its nodes can hold 2 chunks of each "
        "(capacity_chunks); at least 2 are needed, for max(k + min_extra_chunks, d) chunks, 2 to a node"
    )
    masks = [[True] * 4, [True, True, False, False]]
    problem, files = instance([4, 3], masks)
    with pytest.raises(
        UserError, match="leaves 2 of 4 nodes; at least 3 are needed, for max.* chunks, 2 to a node"
    ):
        check_feasible(problem, NODES, files, per_node=2)


def test_too_little_room_at_the_sites():
    expected = (
        "files: row 2 (file_id=f2): max_chunks_per_site=1 leaves room for 2 chunks at the sites of its nodes; at least "
        "3 are needed, max(k + min_extra_chunks, d)"
    )
    assert refused([1, 2, 3], per_site=1) == expected
    masks = np.ones((3, M), bool)
    masks[2, 0] = False
    assert refused([1, 2, 3], masks, per_site=1) == expected
    masks[2] = [True, True, True, False]
    check_feasible(*_pair(instance([4, 4, 3], masks, per_site=2)))


def _pair(made):
    problem, files = made
    return problem, NODES, files


def test_too_little_room_in_all():
    assert refused([2, 2, 2], capacity=[1, 2, 1, 1.0]) == (
        "nodes: column capacity_chunks: found room for 5 chunks in all; the files need at least 6"
    )


def test_groups_go_to_nodes_that_hold_a_chunk_of_every_file():
    """Three files of a group, of two chunks each: split among the nodes they would fit."""
    group = {"weights": [1, 3], "row": [0, 1, 1, 1]}
    assert refused([1, 2], capacity=[3, 2, 2, 2], **group) == (
        "files: row 1 (file_id=f1): its group has 3 files, and 1 of its nodes can hold a chunk of each "
        "(capacity_chunks); at least 2 are needed, max(k + min_extra_chunks, d)"
    )
    check_feasible(*_pair(instance([1, 2], capacity=[3, 3, 1, 0], **group)))
    # both nodes with room for the group are at one site
    assert "and 1 of its nodes" in refused([1, 2], per_site=1, capacity=[3, 3, 2, 2], **group)
    # what else may only use these nodes no longer finds room there
    masks = [[True, True, False, False], [True] * 4]
    assert "'p', 'q' have room for 6 chunks" in refused([1, 2], masks, capacity=[3, 3, 1, 1], **group)


def test_nodes_that_too_many_files_need():
    """Two files that may use only p and q, which hold one chunk each; a third has all the rest."""
    masks = [[True, True, True, True], [True, True, False, False], [True, True, False, False]]
    assert refused([2, 1, 2], masks, capacity=[1, 1, 9, 9]) == (
        "nodes: column capacity_chunks: 'p', 'q' have room for 2 chunks in all; at least 3 can only go there; first "
        "of their files: row 1 (file_id=f1)"
    )
    # without masks: the file of four chunks needs every node
    assert refused([3, 3, 4], capacity=[0, 9, 9, 9]) == (
        "nodes: column capacity_chunks: 'p' have room for 0 chunks in all; at least 1 can only go there; first of "
        "their files: row 2 (file_id=f2)"
    )


def test_sites_and_capacities_together():
    """One chunk per site each: the two nodes of a site must hold a chunk of every file."""
    message = refused([2, 2, 2], per_site=1, capacity=[1, 1, 9, 9])
    assert message == (
        "nodes: column capacity_chunks: 'p', 'q' have room for 2 chunks in all; at least 3 can only go there; first "
        "of their files: row 0 (file_id=f0)"
    )
    check_feasible(*_pair(instance([2, 2, 2], per_site=1, capacity=[1, 2, 3, 0])))


def test_a_group_counts_with_all_its_files():
    message = refused([2, 1], capacity=[3, 3, 0, 0], weights=[3, 1], row=[0, 1, 0, 0])
    assert (
        message == "nodes: column capacity_chunks: found room for 6 chunks in all; the files need at least 7"
    )
    message = refused([3, 2], capacity=[9, 3, 3, 0], weights=[3, 1], row=[1, 0, 0, 0])
    # nine of the group and one of the other file, of which p takes three and one
    assert "'q', 'r', 's' have room for 6 chunks in all; at least 7 can only go there" in message


def test_many_classes_of_masks_are_told_apart():
    """More nodes than bits of a byte, and lengths that differ under one mask."""
    random = np.random.default_rng(0)
    m, rows = 19, 400
    masks = random.random((rows, m)) < 0.5
    masks[::3] = masks[0]
    lengths = np.minimum(masks.sum(axis=1), np.resize([1, 2, 3], rows))
    base = problems.Case(problems.moment_nodes(0, m), problems.mixed_files(0, rows)).problem()
    nodes = pa.table({"node_id": range(m)})
    files = pa.table({"file_id": range(rows)})
    total = int(lengths.sum())
    problem = replace(base, floor=jnp.asarray(lengths.astype(float)), allowed=jnp.asarray(masks))
    # row 0's mask alone: its nodes hold just what its rows need, and the other nodes have room for the others
    mine, others = masks[0], ~masks[0]
    own = lengths[np.all(masks == masks[0], axis=1)].sum()
    ample = np.where(others, float(total), 0.0)
    ample[np.flatnonzero(mine)] = np.ceil(own / mine.sum()) + 40
    for capacity in (ample, np.where(mine, 1.0, ample)):
        limited = replace(problem, capacity=jnp.asarray(capacity))
        if fits(masks, lengths, capacity):
            check_feasible(limited, nodes, files)
        else:
            with pytest.raises(UserError, match="can only go there"):
                check_feasible(limited, nodes, files)


def fits(masks, lengths, capacity) -> bool:
    """The same by linear programming, row by row (its polytope has whole corners)."""
    from scipy import sparse
    from scipy.optimize import linprog

    row, node = np.nonzero(masks)
    entries = np.ones(len(row))
    each = np.arange(len(row))
    of_rows = sparse.coo_array((entries, (row, each)), shape=(len(masks), len(row)))
    of_nodes = sparse.coo_array((entries, (node, each)), shape=(masks.shape[1], len(row)))
    found = linprog(
        np.zeros(len(row)), A_ub=of_nodes, b_ub=capacity, A_eq=of_rows, b_eq=lengths, bounds=(0, 1)
    )
    return found.status == 0


def test_broken_constraints_are_told_in_words():
    case = problems.grouped()
    problem = case.problem()
    files = case.tables()[1]
    rows = placement_rows(files)
    nodes = case.tables()[0]
    stored = np.zeros((problem.rows, problems.NODES), bool)
    stored[:, :4] = True
    assert broken(problem, stored, nodes, rows) == []
    allowed = np.ones_like(stored)
    allowed[0, 1] = allowed[3, 2] = False
    stored[4, :] = False
    crowded = replace(
        problem,
        allowed=jnp.asarray(allowed),
        site=jnp.asarray(np.array([0, 0, 0, 1, 1, 1])),
        per_site=2,
        capacity=jnp.asarray(np.array([100.0, 100, 5, 0, 0, 0])),
    )
    count = problem.rows
    assert broken(crowded, stored, nodes, rows) == [
        f"1 of {count} rows have fewer chunks than max(k + min_extra_chunks, d), first file_id=f7",
        "2 chunks are on forbidden nodes, first of group=a",
        f"{count - 1} of {count} rows have more chunks at a site than max_chunks_per_site, first group=a",
        "2 nodes hold more chunks than their capacity_chunks, first node_id=n2",
    ]

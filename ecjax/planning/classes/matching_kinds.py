"""Fewer kinds of files than there are, for trying moves where every file may have a size of its own."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from ecjax.planning.classes.model import ClassModel

MOST_KINDS = 64
_MERGED = 32  # kinds in place of more


def fewer_kinds(model: ClassModel) -> ClassModel:
    """The model itself where it has at most ``MOST_KINDS`` kinds; otherwise one that has fewer, and ``mix``.

    The kinds of a class are merged in the order of their sizes into groups of about the same weight, half by their
    reads and half by the bytes read, so that rare large files stay apart. A group has the mean size of its reads, so
    that what a node does is right to first order in the spread of sizes within a group.
    """
    if model.mix is not None and len(model.kind_bytes) <= MOST_KINDS:
        return model
    problem, classes = model.problem, model.classes
    most = max(1, _MERGED // classes)
    reads = jax.ops.segment_sum(
        problem.share * problem.files.k, model.kind_of_file, num_segments=len(model.kind_bytes)
    )
    sizes = reads * model.kind_bytes
    weight = reads / jnp.sum(reads) + sizes / jnp.sum(sizes)
    # kinds ascend by class and, within one, by size
    of_class = jnp.matmul(model.member, weight, precision="highest")
    before = (jnp.cumsum(of_class) - of_class)[model.kind_class]
    rank = (jnp.cumsum(weight) - 0.5 * weight - before) / of_class[model.kind_class]
    group = jnp.clip((rank * most).astype(jnp.int32), 0, most - 1)
    of_kind = model.kind_class * most + group
    count = classes * most
    total, total_bytes = (
        jax.ops.segment_sum(values, of_kind, num_segments=count) for values in (reads, sizes)
    )
    of_file = of_kind[model.kind_of_file]
    row = jnp.arange(problem.rows) if problem.row is None else problem.row
    number = jnp.repeat(jnp.arange(classes, dtype=jnp.int32), most)
    return replace(
        model,
        kind_class=number,
        kind_bytes=total_bytes / jnp.where(total > 0, total, 1.0),
        member=(number[None] == jnp.arange(classes, dtype=jnp.int32)[:, None]).astype(total.dtype),
        mix=jnp.zeros((count, problem.rows)).at[of_file, row].add(problem.share),
        kind_of_file=of_file,
    )

"""Columns of the result datasets of ``ecjax reproduce``, with units. Imports nothing heavy."""

from ecjax.tables.result_schemas import job_tables
from ecjax.tables.schemas import FLOAT, INTEGER, STRING, Column

TABLES = job_tables(
    "reproduce",
    runs=(
        Column("paper", STRING, "", "jlcm, differentiated, ..."),
        Column("size", STRING, "", "of its studies: small or full"),
        Column("claim_count", INTEGER, "", "claims that were looked at"),
        Column("holds", INTEGER, "", "how many of them hold"),
        Column("holds_in_shape", INTEGER, "", "... hold in shape"),
        Column("does_not_hold", INTEGER, "", "... do not hold"),
        Column("testbed", INTEGER, "", "... are seconds of the authors' machines"),
        Column("not_judged", INTEGER, "", "... could not be judged, as a study failed"),
    ),
    claims=(
        Column("id", STRING, "", "name of the claim"),
        Column("paper", STRING, "", "whose it is"),
        Column("size", STRING, "", "of its studies: small or full"),
        Column("where", STRING, "", "figure, table, section or equation"),
        Column("claim", STRING, "", "what the paper says, in other words"),
        Column("paper_value", STRING, "", "as printed; null where nothing is printed"),
        Column("quantity", STRING, "", "what ours is, with its unit"),
        Column("ours", FLOAT, "", "the same quantity here; null where the claim is no number"),
        Column("ours_low", FLOAT, "", "from where: 95 % interval, or the least of several"),
        Column("ours_high", FLOAT, "", "to where: 95 % interval, or the largest of several"),
        Column("verdict", STRING, "", "holds, holds in shape, does not hold, testbed, or not judged"),
        Column("why", STRING, "", "evidence; always there unless the claim holds"),
        Column("command", STRING, "", "what computes it"),
    ),
)

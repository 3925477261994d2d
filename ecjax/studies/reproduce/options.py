"""Options of ``ecjax reproduce``. Imports nothing heavy: the command line reads it before anything else."""

from dataclasses import dataclass

from ecjax.options import Listed, Text, Whole, Words, option

PAPERS = ("jlcm", "differentiated", "tofec", "dtarget", "samplex")
SMALL, FULL = "small", "full"


@dataclass(frozen=True)
class ReproduceOptions:
    """Everything that ``ecjax reproduce`` can be told."""

    out: str = option(
        "results/reproduce",
        "folder of the verdicts, on this machine; what the studies write is below, by their names",
    )
    papers: list[str] | None = option(
        None,
        "names of papers, one or a list; default: all (jlcm: joint latency and cost; differentiated: service classes; "
        "tofec: codes at a proxy; dtarget: transfers of reads; samplex: caches)",
        Listed(Words(*PAPERS), empty=True),
    )
    claims: list[str] | None = option(
        None, "ids of claims, one or a list; default: all of the papers", Listed(Text(), empty=True)
    )
    size: str = option(
        SMALL, "of the studies; small: a minute or two per paper; full: as in the papers", Words(SMALL, FULL)
    )
    resume: bool = option(True, "skip runs of the studies that are finished in out")
    processes: int | None = option(
        None,
        "studies and claims at a time, each in a process of its own (what is timed runs alone); default: one per core, "
        "no more than studies, and than there are 4 GiB of memory for each",
        Whole(1),
    )

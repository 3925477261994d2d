"""Options of ``ecjax analyze``. Imports nothing heavy: the command line reads it before anything else."""

from dataclasses import dataclass

from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.options import Listed, Number, Text, Whole, Words, option, section
from ecjax.studies.analyze.tables import TABLES
from ecjax.studies.spine.log_options import RatedLogOptions


@dataclass(frozen=True)
class AnalyzeOptions(RatedLogOptions):
    """Everything that ``ecjax analyze`` can be told."""

    trace: str | None = option(
        None,
        "access log: a file, or a folder of files; or the folder of an analysis: the log that it read",
    )
    out: str = option("results/analyze", "folder of the result tables and figures")
    nodes: str | None = option(
        None,
        "nodes table with what a log does not tell: prices, sites, capacities; its service law gives way to the log's",
    )
    catalog: str | None = option(
        None,
        "catalog table of what is stored, names and sizes: objects never read get rate 0, others their size",
    )
    k: int | None = option(
        None, "chunks that rebuild a file; overrides what chunk accesses tell", Whole(1), identifies=True
    )
    reference_bytes: float | None = option(
        None,
        "give node moments for a chunk of this size, instead of an affine law where sizes vary",
        Number(above=0),
        identifies=True,
    )
    background: list[str] | None = option(
        None,
        "work of nodes that is no reads of users: classes of the log's service_class (repair, scrub); writes: all of "
        "them, instead of write rates of files. Nodes get their measured background_load",
        Listed(Text(), together=True),
        identifies=lambda options: options.background is not None,
    )
    seed: int = option(0, "seed of the spreading of ties and of the sample of requests", Whole(0, 2**63 - 1))
    figures: bool = option(True, "draw figures in out/figures")
    engine: EngineOptions = section(EngineOptions, "where it runs: engine=serial, engine=ray")
    resume: bool = option(True, "keep a finished analysis of the same trace in out")
    write: list[str] | None = option(
        None,
        "datasets to write besides runs; default: all; finished runs keep theirs (unless resume=false)",
        Listed(Words("runs", *TABLES.names)),
    )

    def completed(self) -> "AnalyzeOptions":
        """These options, if there is something to read.

        Raises:
            UserError: there is not.
        """
        if self.trace is None:
            raise UserError("trace: missing; allowed: the path of an access log")
        return self

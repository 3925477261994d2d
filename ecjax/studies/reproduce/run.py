"""Studies run one after the other in this process, each once; then every claim is judged by its rule."""

import gc
import io
import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from ecjax.console import MESSAGES, OutputMode, log, printing
from ecjax.errors import UserError
from ecjax.studies.reproduce.claim import Claim, Finding, Paper, Study, Verdict
from ecjax.studies.reproduce.evidence import Evidence, Made
from ecjax.studies.reproduce.options import SMALL
from ecjax.studies.spine.study import collected_outcomes

# options of a job from its name and the words of its command line
OptionsOf = Callable[[str, list[str]], Any]
_ERROR = 40  # level of log lines


@dataclass(frozen=True)
class Judged:
    """A claim, what became of it, and the command that computes it."""

    claim: Claim
    finding: Finding
    command: str


@dataclass(frozen=True)
class Setting:
    """How studies run.

    Attributes:
        out: folder below which they write.
        size: small or full.
        resume: whether runs that are finished there are left as they are.
        options_of: options of a job from the words of its command line.
    """

    out: Path
    size: str
    resume: bool
    options_of: OptionsOf

    def folder(self, paper: Paper, name: str) -> str:
        """Where a study writes."""
        return str(self.out / paper.name / name)


def judged(paper: Paper, claims: Iterable[Claim], setting: Setting) -> list[Judged]:
    """Run the studies that the claims need, and judge them.

    Args:
        paper: whose they are.
        claims: those to judge.
        setting: how studies run.

    Returns:
        The claims in their order; one whose study fails is not judged, and says so.
    """
    claims = list(claims)
    replayed = {study.name: study.replays for study in paper.studies if study.replays}
    needed = {name for claim in claims for name in claim.studies}
    needed |= {replayed[name] for name in needed if name in replayed}
    made: dict[str, Made] = {}
    errors: dict[str, str] = {}
    commands: dict[str, str] = {}
    for study in paper.studies:
        if study.name not in needed:
            continue
        began = time.perf_counter()
        words = _words(paper, study, setting)
        command = shlex.join(["ecjax", study.job, *words])
        if study.replays:
            command = f"{commands[study.replays]} out={setting.folder(paper, study.replays)}; {command}"
        commands[study.name] = command
        try:
            made[study.name] = _run(paper, study, words, setting)
        except (UserError, RuntimeError, MemoryError) as error:
            errors[study.name] = f"study {study.name}: {error}"
            log.error("%s", errors[study.name])
        log.info("%s: %s took %.1f s", paper.name, study.name, time.perf_counter() - began)
        gc.collect()
    evidence = Evidence(setting.size, made)
    own = f"ecjax reproduce {paper.name}" + ("" if setting.size == SMALL else f" size={setting.size}")
    return [
        Judged(
            claim,
            _finding(claim, evidence, errors),
            "; ".join(commands[name] for name in claim.studies) or f"{own} claims={claim.id}",
        )
        for claim in claims
    ]


def _words(paper: Paper, study: Study, setting: Setting) -> list[str]:
    """Words of the command of a study, its inputs made."""
    words = study.sized(setting.size)
    if study.inputs is not None:
        folder = Path(setting.folder(paper, f"{study.name}_inputs"))
        folder.mkdir(parents=True, exist_ok=True)
        words = (*words, *study.inputs(folder, setting.size))
    if study.replays:
        words = (*words, f"plan={setting.folder(paper, study.replays)}")
    return list(words)


def _run(paper: Paper, study: Study, words: list[str], setting: Setting) -> Made:
    """Run a study without a word and without figures."""
    out = setting.folder(paper, study.name)
    figures = [] if any(word.startswith("figures=") for word in words) else ["figures=[]"]
    resume = f"resume={str(setting.resume).lower()}"
    options = setting.options_of(study.job, [*words, *figures, f"out={out}", resume])
    run_study = getattr(import_module(f"ecjax.studies.{study.job}.study"), f"{study.job}_study")
    before = MESSAGES.quiet, log.level
    MESSAGES.quiet = True
    log.setLevel(_ERROR)
    try:
        with printing(OutputMode.QUIET), collected_outcomes() as outcomes:
            log.setLevel(_ERROR)
            run_study(options, Console(file=io.StringIO(), quiet=True))
    finally:
        MESSAGES.quiet = before[0]
        log.setLevel(before[1])
    return Made(out, outcomes[-1].runs)


def _finding(claim: Claim, evidence: Evidence, errors: Mapping[str, str]) -> Finding:
    failed = [errors[name] for name in claim.studies if name in errors]
    if failed:
        return Finding(Verdict.NOT_JUDGED, why="; ".join(failed))
    try:
        finding = claim.rule(evidence)
    except (UserError, LookupError, ValueError, ArithmeticError) as error:
        log.error("%s: %s", claim.id, error)
        return Finding(Verdict.NOT_JUDGED, why=f"its rule failed: {type(error).__name__}: {error}")
    if any(
        value is not None and not np.isfinite(value) for value in (finding.ours, finding.low, finding.high)
    ):
        return Finding(Verdict.NOT_JUDGED, why=f"its rule found {finding.ours}: {finding.why}")
    if finding.verdict is not Verdict.HOLDS and not finding.why:
        raise ValueError(f"{claim.id}: {finding.verdict} without a reason")
    return finding

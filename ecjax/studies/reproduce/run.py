"""Studies run each once, some at a time, and a claim is judged by its rule as soon as its studies are there."""

import gc
import io
import shlex
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from ecjax.console import MESSAGES, OutputMode, log, printing
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.reproduce.claim import Claim, Finding, Judged, Paper, Study, Verdict
from ecjax.studies.reproduce.evidence import Evidence, Made
from ecjax.studies.reproduce.options import FULL, SMALL
from ecjax.studies.reproduce.order import Task, carry_out
from ecjax.studies.reproduce.workers import WorkerEnded
from ecjax.studies.spine.study import collected_outcomes

# options of a job from its name and the words of its command line
OptionsOf = Callable[[str, list[str]], Any]
_ERROR = 40  # level of log lines
_LONG_S = 1.0  # rules that take less are not told of


@dataclass(frozen=True)
class Setting:
    """How studies run.

    Attributes:
        out: folder below which they write.
        size: small or full.
        resume: whether runs that are finished there are left as they are.
        options_of: options of a job from the words of its command line.
        executor: runs studies and rules.
        processes: how many of them at a time.
    """

    out: Path
    size: str
    resume: bool
    options_of: OptionsOf
    executor: Executor
    processes: int

    def folder(self, paper: Paper, name: str) -> str:
        """Where a study writes: another folder at each size, as a replay takes every plan of its folder."""
        return str(self.out / paper.name / (FULL if self.size == FULL else "") / name)


@dataclass
class Work:
    """A paper while its claims are judged; what is done is put down here.

    Attributes:
        paper: whose claims they are.
        setting: how studies run.
        study_count: how many of its studies are needed.
        claim_count: how many claims are judged.
        made: what came of studies, by name.
        errors: of those that failed, by name.
        commands: of studies, by name.
        findings: what became of claims, by id.
        seconds: without compiling, of all processes together.
    """

    paper: Paper
    setting: Setting
    study_count: int
    claim_count: int
    made: dict[str, Made] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    seconds: float = 0.0

    def study(self, study: Study, *, alone: bool) -> Task:
        """The task that runs a study."""
        began = 0.0

        def begin() -> Future[Any]:
            nonlocal began
            began = time.perf_counter()
            job, out = study.job, self.setting.folder(self.paper, study.name)
            words = self._words(study)
            self._put_down(study, words)
            try:
                if study.replays in self.errors:
                    raise UserError(self.errors[study.replays])
                figures = [] if any(word.startswith("figures=") for word in words) else ["figures=[]"]
                resume = f"resume={str(self.setting.resume).lower()}"
                options = self.setting.options_of(job, [*words, *figures, f"out={out}", resume])
            except UserError as error:
                failed: Future[Any] = Future()
                failed.set_exception(error)
                return failed
            return self.setting.executor.submit(_run, job, options, out)

        def end(future: Future[Any]) -> None:
            try:
                made, seconds = future.result()
                made = self._of_its_plans(study, made)
                _check(made.runs)
                self.made[study.name] = made
                self.seconds += seconds
            except (UserError, RuntimeError, MemoryError) as error:
                self.errors[study.name] = f"study {study.name}: {error}"
                log.error("%s", self.errors[study.name])
            took = time.perf_counter() - began
            done = f"{len(self.made) + len(self.errors)} of {self.study_count}"
            log.info("%s: %s took %.1f s (%s studies)", self.paper.name, study.name, took, done)

        return Task(study.name, begin, end, frozenset({study.replays} - {""}), alone)

    def claim(self, claim: Claim) -> Task:
        """The task that judges a claim."""
        began = 0.0

        def begin() -> Future[Any]:
            nonlocal began
            began = time.perf_counter()
            failed = [self.errors[name] for name in claim.studies if name in self.errors]
            if failed:
                future: Future[Any] = Future()
                future.set_result((Finding(Verdict.NOT_JUDGED, why="; ".join(failed)), 0.0))
                return future
            evidence = Evidence(self.setting.size, {name: self.made[name] for name in claim.studies})
            return self.setting.executor.submit(_finding, claim, evidence)

        def end(future: Future[Any]) -> None:
            try:
                self.findings[claim.id], seconds = future.result()
                self.seconds += seconds
            except WorkerEnded as error:
                self.findings[claim.id] = Finding(Verdict.NOT_JUDGED, why=f"its rule failed: {error}")
            took = time.perf_counter() - began
            if took > _LONG_S:
                done = f"{len(self.findings)} of {self.claim_count}"
                log.info("%s: %s took %.1f s (%s claims)", self.paper.name, claim.id, took, done)

        return Task(claim.id, begin, end, frozenset(claim.studies), claim.timed)

    def _of_its_plans(self, study: Study, made: Made) -> Made:
        """What a study made of the plans that it is to replay; its folder may have plans of another version."""
        if not study.replays:
            return made
        runs, plans = made.runs, self.made[study.replays].runs
        return Made(made.out, runs[runs["plan_run"].isin(plans["run_id"])].reset_index(drop=True))

    def _words(self, study: Study) -> list[str]:
        """Words of the command of a study, its inputs made."""
        words = study.sized(self.setting.size)
        if study.inputs is not None:
            folder = Path(self.setting.folder(self.paper, f"{study.name}_inputs"))
            folder.mkdir(parents=True, exist_ok=True)
            words = (*words, *study.inputs(folder, self.setting.size))
        if study.replays:
            words = (*words, f"plan={self.setting.folder(self.paper, study.replays)}")
        return list(words)

    def _put_down(self, study: Study, words: list[str]) -> None:
        """The command of a study, after that of the plans that it replays."""
        command = shlex.join(["ecjax", study.job, *words])
        if study.replays:
            out = self.setting.folder(self.paper, study.replays)
            command = f"{self.commands[study.replays]} out={out}; {command}"
        self.commands[study.name] = command


def judged(paper: Paper, claims: Iterable[Claim], setting: Setting) -> tuple[list[Judged], float]:
    """Run the studies that the claims need, and judge them.

    Args:
        paper: whose they are.
        claims: those to judge.
        setting: how studies run.

    Returns:
        The claims in their order (one whose study fails is not judged, and says so), and the seconds of all processes
        together, without compiling.
    """
    claims = list(claims)
    replayed = {study.name: study.replays for study in paper.studies if study.replays}
    needed = {name for claim in claims for name in claim.studies}
    needed |= {replayed[name] for name in needed if name in replayed}
    timed = {name for claim in claims if claim.timed for name in claim.studies}
    work = Work(paper, setting, len(needed), len(claims))
    studies = [work.study(each, alone=each.name in timed) for each in paper.studies if each.name in needed]
    carry_out([*studies, *(work.claim(claim) for claim in claims)], setting.processes)
    command = f"ecjax reproduce {paper.name}" + ("" if setting.size == SMALL else f" size={setting.size}")
    return [
        Judged(
            claim,
            work.findings[claim.id],
            "; ".join(work.commands[name] for name in claim.studies) or f"{command} claims={claim.id}",
        )
        for claim in claims
    ], work.seconds


def _run(job: str, options: Any, out: str) -> tuple[Made, float]:
    """Run a study without a word; what it made, and its seconds without compiling."""
    run_study = getattr(import_module(f"ecjax.studies.{job}.study"), f"{job}_study")
    before = MESSAGES.quiet, log.level
    MESSAGES.quiet = True
    try:
        with (
            printing(OutputMode.QUIET),
            collected_outcomes() as outcomes,
            Stopwatch(of_process=True) as stopwatch,
        ):
            log.setLevel(_ERROR)
            run_study(options, Console(file=io.StringIO(), quiet=True))
    finally:
        MESSAGES.quiet = before[0]
        log.setLevel(before[1])
    gc.collect()
    return Made(out, outcomes[-1].runs), stopwatch.own_s


def _check(runs: pd.DataFrame) -> None:
    """Make sure that no run failed: rules would judge by those that did not.

    Raises:
        UserError: one did.
    """
    failed = runs[runs["status"] == str(Status.FAILED)]
    if len(failed):
        first = failed.iloc[0]
        raise UserError(f"run {first['run_id']} of {len(runs)} failed: {first['error']}")


def _finding(claim: Claim, evidence: Evidence) -> tuple[Finding, float]:
    """What a rule decides, and its seconds without compiling."""
    with Stopwatch(of_process=True) as stopwatch:
        try:
            finding = claim.rule(evidence)
        except (UserError, LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            log.error("%s: %s", claim.id, error)
            finding = Finding(Verdict.NOT_JUDGED, why=f"its rule failed: {type(error).__name__}: {error}")
    if any(
        value is not None and not np.isfinite(value) for value in (finding.ours, finding.low, finding.high)
    ):
        finding = Finding(Verdict.NOT_JUDGED, why=f"its rule found {finding.ours}: {finding.why}")
    if finding.verdict is not Verdict.HOLDS and not finding.why:
        raise ValueError(f"{claim.id}: {finding.verdict} without a reason")
    return finding, stopwatch.own_s

"""The command ``ecjax JOB key=value ...``.

Exit codes: 0 all well, 1 some items failed, 2 the user's mistake, 130 interrupted.
"""

import errno
import os
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import fields, is_dataclass

from ecjax import __version__
from ecjax.command_words import check_words
from ecjax.display import displayed
from ecjax.errors import UserError
from ecjax.jobs_index import COMMANDS, JOBS, Command, Job, experiments
from ecjax.options import rule_of, shown

EXIT_FAILED, EXIT_USER, EXIT_INTERRUPTED = 1, 2, 130
# what XLA, the system and the loader of libraries say where memory ends
_NO_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "can't start new thread", "failed to map segment")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _dispatch(words)
    except UserError as error:
        print(f"ecjax: {error}", file=sys.stderr)
        return EXIT_USER
    except KeyboardInterrupt:
        print(
            "ecjax: interrupted; what was finished is kept, and the same command goes on from there",
            file=sys.stderr,
        )
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # the reader of a pipe has gone (ecjax ... | head); what is still buffered goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (MemoryError, OSError, RuntimeError, ImportError) as error:
        line, code = _of_the_machine(error)
        if line is None:
            raise
        print(f"ecjax: {line}", file=sys.stderr)
        return code


def _of_the_machine(error: Exception) -> tuple[str | None, int]:
    """The line and exit code for an error that memory or a file is to blame for; None where it is neither."""
    no_memory = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    if no_memory or any(words in str(error) for words in _NO_MEMORY):
        what = "; what was finished is kept, and the same command goes on from there where there is more"
        return f"out of memory{what}", EXIT_FAILED
    if isinstance(error, OSError) and error.errno and error.filename is not None:
        return displayed(f"{error.filename}: {os.strerror(error.errno)}"), EXIT_USER
    return None, EXIT_FAILED


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if words[0] in ("-V", "--version"):
        print(f"ecjax {__version__}")
        return 0
    name, rest = words[0], words[1:]
    if name not in (*JOBS, *COMMANDS):
        raise UserError(f"found job {name!r}; allowed: {', '.join((*JOBS, *COMMANDS))} (ecjax --help)")
    if any(word in ("-h", "--help") for word in rest):
        print(_command_help(COMMANDS[name]) if name in COMMANDS else _help(JOBS[name]))
        return 0
    if name in COMMANDS:
        return COMMANDS[name].run(rest)  # Arrow is slow to import
    check_words(JOBS[name], rest)
    from ecjax.hydra_run import run_job  # Hydra is slow to import

    return run_job(JOBS[name], rest)


def _overview() -> str:
    width = max(map(len, (*JOBS, *COMMANDS)))
    lines = [
        f"ecjax {__version__}: batch optimizer and trace analyzer for erasure-coded storage",
        "",
        "usage: ecjax JOB [key=value ...]      ecjax JOB --help lists the keys",
        "",
    ]
    lines += [f"  {job.name:{width}}  {job.summary}" for job in JOBS.values()]
    lines += [
        f"  {one.name:{width}}  {one.summary} (ecjax {one.name} {one.usage})" for one in COMMANDS.values()
    ]
    lines += [
        "",
        "Lists are written key=a,b,c (or 'key=[a,b,c]'). -m before or after the overrides runs Hydra sweeps.",
        "Exit codes: 0 all well, 1 some items failed, 2 a mistake in what was given, 130 interrupted.",
    ]
    return "\n".join(lines)


def _command_help(command: Command) -> str:
    usage = f"usage: ecjax {command.name} {command.usage}"
    return f"ecjax {command.name}: {command.summary}\n\n{usage}\n\n{command.about}"


def _help(job: Job) -> str:
    lines = [f"ecjax {job.name}: {job.summary}", "", f"usage: ecjax {job.name} [key=value ...]", ""]
    lines += _keys(job.options_class(), "")
    named = experiments(job.name)
    if named:
        lines += ["", "named studies, experiment=NAME:"]
        lines += [f"  {name:14} {text}" for name, text in named.items()]
    return "\n".join(lines)


def _keys(options: object, prefix: str) -> list[str]:
    lines = []
    for item in fields(options):  # type: ignore[arg-type]
        value = getattr(options, item.name)
        text = item.metadata.get("help", "")
        if is_dataclass(value):
            lines += [f"  {prefix}{item.name}.*: {text}", *_keys(value, f"{prefix}{item.name}.")]
            continue
        listed = f"[{','.join(map(shown, value))}]" if isinstance(value, list) else shown(value)
        lines += [f"  {prefix}{item.name}={listed}", f"      {text}"]
        allowed = rule_of(item).allowed
        if allowed not in ("a text", "true, false"):
            lines += textwrap.wrap(
                f"allowed: {allowed}", 96, initial_indent=" " * 6, subsequent_indent=" " * 6
            )
    return lines


if __name__ == "__main__":
    sys.exit(main())

"""The command ``ecjax JOB key=value ...``.

Exit codes: 0 all well, 1 some items failed, 2 the user's mistake, 130 interrupted, 143 told to end (SIGTERM).
"""

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress

from ecjax import __version__, interrupts
from ecjax.address_space import limit_warning
from ecjax.command_words import check_words, split_flags
from ecjax.completion import candidates, completion_script
from ecjax.display import displayed
from ecjax.errors import EXIT_USER, UserError
from ecjax.garbage import collect_seldom
from ecjax.guides import page
from ecjax.job_help import command_help, job_help, overview
from ecjax.jobs_index import COMMANDS, JOBS
from ecjax.pipes import discard, is_read, write_out

EXIT_FAILED = 1
# what XLA, the system and the loader of libraries say where memory ends
_NO_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "can't start new thread", "failed to map segment")
# what a disk says, whichever file it is of
_FULL, _UNWRITABLE = (errno.ENOSPC, errno.EDQUOT), (errno.EROFS, errno.EIO)

_PRINTED = ("--json", "--quiet")


def command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line as a program of its own, which Ctrl-C ends soon; returns the exit code."""
    collect_seldom()
    with interrupts.answered():
        code = main(arguments)
    if code in (interrupts.EXIT_INTERRUPTED, interrupts.EXIT_TERMINATED):
        interrupts.end_now(code)  # threads may be at work for long
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _dispatch(words)
        write_out(sys.stdout)
        return code
    except UserError as error:
        print(f"ecjax: {error}", file=sys.stderr)
        return EXIT_USER
    except KeyboardInterrupt as interrupt:
        print(interrupts.LINE, file=sys.stderr)
        return interrupts.exit_code(interrupt)
    except BrokenPipeError:
        if is_read(sys.stdout):
            raise  # another pipe
        discard(sys.stdout)
        return 0
    except (MemoryError, OSError, RuntimeError, ImportError) as error:
        with suppress(OSError):
            write_out(sys.stdout)  # the interpreter would try it again at its end
        line, code = _of_the_machine(error)
        if line is None:
            raise
        print(f"ecjax: {line}", file=sys.stderr)
        return code


def _of_the_machine(error: Exception) -> tuple[str | None, int]:
    """The line and exit code for an error that memory or a file is to blame for; None where it is neither."""
    what = "; what was finished is kept, and the same command goes on from there where there is more"
    no_memory = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    if no_memory or any(words in str(error) for words in _NO_MEMORY):
        return f"out of memory{what}", EXIT_FAILED
    if not isinstance(error, OSError) or not error.errno:
        return None, EXIT_FAILED
    reason = os.strerror(error.errno)
    if error.filename is not None:
        return displayed(f"{error.filename}: {reason}"), EXIT_USER
    if error.errno in _FULL:
        return f"{reason}{what}", EXIT_USER
    return (reason, EXIT_USER) if error.errno in _UNWRITABLE else (None, EXIT_FAILED)


def _refuse_other_encodings(words: Iterable[str]) -> None:
    """Refuse bytes that are no UTF-8 before they get into tables, whose text they cannot be.

    Raises:
        UserError: names the word.
    """
    for word in words:
        if not word.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise UserError(displayed(f"{word}: holds bytes that are not UTF-8; allowed: names in UTF-8"))


def _dispatch(words: list[str]) -> int:
    _refuse_other_encodings(words)
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview(__version__))
        return 0
    if words[0] in ("-V", "--version"):
        print(f"ecjax {__version__}")
        return 0
    if words[0] == "--completion":
        print(completion_script(words[1:]))
        return 0
    if words[0] == "--complete":
        sys.stdout.writelines(f"{word}\n" for word in candidates(words[1:]))
        return 0
    name, (what, rest) = words[0], _what_to_print(words[1:])
    if name not in (*JOBS, *COMMANDS):
        raise UserError(f"found job {name!r}; allowed: {', '.join((*JOBS, *COMMANDS))} (ecjax --help)")
    if any(word in ("-h", "--help") for word in rest):
        print(command_help(COMMANDS[name]) if name in COMMANDS else job_help(JOBS[name]))
        return 0
    if name in JOBS and "--guide" in rest:
        sources = [word for word in rest if word != "--guide"]
        if name == "analyze" and sources:
            from ecjax.tables.importers.access_logs.guide import source_guide  # Arrow is slow to import

            print(source_guide(sources[0]), end="")
            return 0
        print(page(name))
        return 0
    if name == "ceph" and "--collect" in rest:
        from ecjax.rados.live import collect_script  # NumPy is slow to import

        print(collect_script("dumps", 60.0, "ceph"), end="")
        return 0
    if name in COMMANDS:
        with _printing(what):
            return COMMANDS[name].run(rest)  # Arrow is slow to import
    check_words(JOBS[name], rest)
    if what is not None and split_flags(rest)[0]:
        raise UserError(
            f"found {what} with one of Hydra's flags, {split_flags(rest)[0][0]}; allowed: one of them"
        )
    warning = limit_warning()
    if warning is not None:
        print(f"ecjax: {warning}", file=sys.stderr)
    from ecjax.hydra_run import run_job  # Hydra is slow to import

    with _printing(what):
        return run_job(JOBS[name], rest)


def _what_to_print(words: list[str]) -> tuple[str | None, list[str]]:
    """``--json`` or ``--quiet``, if it is among the words, and the others.

    Raises:
        UserError: both are.
    """
    flags = sorted({word for word in words if word in _PRINTED})
    if len(flags) > 1:
        raise UserError(f"found {' and '.join(flags)}; allowed: one of them")
    return flags[0] if flags else None, [word for word in words if word not in _PRINTED]


def _printing(what: str | None) -> AbstractContextManager[None]:
    """The context in which a command prints what its flags say."""
    if what is None:
        return nullcontext()
    from ecjax.console import OutputMode, printing  # not for help and mistakes

    return printing(OutputMode(what))


if __name__ == "__main__":
    sys.exit(command())

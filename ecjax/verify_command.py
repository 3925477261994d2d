"""The command ``ecjax verify OUT``: reads all files of a folder of results; says which are not as they were written."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ecjax.console import OUTPUT, OutputMode, conclude, output_mode, say
from ecjax.jobs_index import folder_of_results
from ecjax.units import count_text

if TYPE_CHECKING:
    from ecjax.tables.verify import Verified

EXIT_DAMAGED = 1


def run_verify(words: Sequence[str]) -> int:
    """Verify a folder; returns the exit code: 0, or 1 where something is damaged.

    Raises:
        UserError: no or several folders are named, or it holds no results.
    """
    out = folder_of_results("verify", words)
    from ecjax.studies.spine.as_json import print_object
    from ecjax.studies.spine.printed import print_table
    from ecjax.tables.verify import verify

    verified = verify(out)
    # files of a dataset may be in folders of their own, as those of scripts
    wrong = [
        name
        for finding in verified.findings
        for name in verified.files
        if finding.file.startswith(f"{name}/")
    ]
    rows = [
        (name, f"{len(sizes):,}", f"{sum(sizes):,}", str(wrong.count(name)))
        for name, sizes in verified.files.items()
    ]
    code = EXIT_DAMAGED if verified.findings else 0
    if output_mode() is OutputMode.JSON:
        print_object(
            {
                "job": "verify",
                "out": out,
                "datasets": [
                    {"dataset": name, "files": len(sizes), "bytes": sum(sizes), "wrong": wrong.count(name)}
                    for name, sizes in verified.files.items()
                ],
                "findings": [finding._asdict() for finding in verified.findings],
                "inputs": [source._asdict() | {"state": state} for source, state in verified.sources.items()],
                "exit_code": code,
            }
        )
        return code
    print_table(OUTPUT, out, ("dataset", "files", "bytes", "wrong"), rows, ("dataset",), least=("bytes",))
    for finding in verified.findings:
        say(OUTPUT, f"{finding.file}: {finding.what}; {finding.cure}", "yellow", soft_wrap=True)
    for source, state in sorted(verified.sources.items()):
        say(OUTPUT, f"input {source.option}={source.path}: {state}", soft_wrap=True)
    conclude(OUTPUT, _sentence(verified))
    return code


def _sentence(verified: "Verified") -> str:
    """What came of it."""
    files, wrong = (
        sum(map(len, verified.files.values())),
        len({finding.file for finding in verified.findings}),
    )
    text = (
        f"{wrong} of {count_text(files, 'file')} {'is' if wrong == 1 else 'are'} not as written"
        if wrong
        else count_text(files, "file is as written", "files are as written")
    )
    states = list(verified.sources.values())
    others = len(states) - states.count("same")
    if others:
        return (
            f"{text}; {others} of {len(states)} inputs {'is' if others == 1 else 'are'} no longer the same."
        )
    return text + ("; so are the inputs." if states and not wrong else ".")

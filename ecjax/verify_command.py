"""The command ``ecjax verify OUT``: reads all files of a folder of results; says which are not as they were written."""

from collections.abc import Sequence

from ecjax.console import OUTPUT, say
from ecjax.errors import UserError

EXIT_DAMAGED = 1


def run_verify(words: Sequence[str]) -> int:
    """Verify a folder; returns the exit code: 0, or 1 where something is damaged.

    Raises:
        UserError: no or several folders are named, or it holds no results.
    """
    if len(words) != 1 or words[0].startswith("-"):
        found = " ".join(words) or "nothing"
        raise UserError(f"verify: found {found}; allowed: one folder of results, ecjax verify OUT")
    from ecjax.studies.spine.printed import print_table
    from ecjax.tables.verify import verify

    verified = verify(words[0].removeprefix("out="))
    wrong = [finding.file.rpartition("/")[0] for finding in verified.findings]
    rows = [
        (name, f"{len(sizes):,}", f"{sum(sizes):,}", str(wrong.count(name)))
        for name, sizes in verified.files.items()
    ]
    print_table(
        OUTPUT, f"{words[0]}", ("dataset", "files", "bytes", "wrong"), rows, ("dataset",), least=("bytes",)
    )
    for finding in verified.findings:
        say(OUTPUT, f"{finding.file}: {finding.what}; {finding.cure}", soft_wrap=True)
    for source, state in sorted(verified.sources.items()):
        say(OUTPUT, f"input {source.option}={source.path}: {state}", soft_wrap=True)
    return EXIT_DAMAGED if verified.findings else 0

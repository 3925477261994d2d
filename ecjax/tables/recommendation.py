"""What a study recommends, in a sentence, and where that is kept: the file ``recommended.json`` of its results."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ecjax.errors import UserError
from ecjax.tables.folder import publishing, write_errors
from ecjax.tables.formats import user_errors

FILE = "recommended.json"


@dataclass(frozen=True)
class Recommendation:
    """What to do, by the results of a study.

    Attributes:
        sentence: what is recommended, by how much it is better, under which condition, and what it costs.
        run_id: of the run that is recommended; None where the sentence says why none is.
        among: why the run was chosen, in a few words: ``the knee``, ``the cheapest with max_latency_s=0.05``.
        remarks: what the results assume, and what of them to doubt, as it was printed.
        run_count: runs that it was chosen among, those of one command; None: not known.
    """

    sentence: str
    run_id: str | None = None
    among: str = ""
    remarks: tuple[str, ...] = ()
    run_count: int | None = None


def write_recommendation(out: Path, recommendation: Recommendation) -> None:
    """Write the recommendation beside the results, in place of that of an earlier command.

    Raises:
        UserError: it cannot be written.
    """
    with write_errors(out), publishing(out / FILE) as file:
        file.write_text(json.dumps(asdict(recommendation), indent=1) + "\n")


def remove_recommendation(out: Path) -> None:
    """Remove the recommendation of an earlier command, as the last one has none.

    Raises:
        UserError: it cannot be removed.
    """
    path = out / FILE
    with write_errors(out):
        if path.exists():  # where there is nothing to remove, nobody asks for the right to
            path.unlink(missing_ok=True)


def read_recommendation(out: Path) -> Recommendation | None:
    """The recommendation of the last command that wrote to ``out``; None where there is none.

    Raises:
        UserError: the file is damaged.
    """
    path = out / FILE
    with user_errors(path):
        if not path.exists():
            return None
        with path.open("rb") as file:
            text = file.read()
    try:
        values = json.loads(text)
        return Recommendation(**values | {"remarks": tuple(values.get("remarks", ()))})
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: damaged; remove it, or run the command that made it again") from error

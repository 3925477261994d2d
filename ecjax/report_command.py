"""The command ``ecjax report OUT [OUT2 ...]``: studies as one page of HTML, and their figures as pictures."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ecjax import __version__
from ecjax.console import OUTPUT, OutputMode, conclude, output_mode, say
from ecjax.display import displayed
from ecjax.errors import UserError
from ecjax.jobs_index import folder_of_results

if TYPE_CHECKING:
    from ecjax.report.parts import Listing, Section
    from ecjax.report.results import Results

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WORDS = ("page", "pictures", "figures")


def run_report(words: Sequence[str]) -> int:
    """Write the page, or pictures; returns the exit code, 0.

    Raises:
        UserError: no folder is named, one holds no results, or what was to be written cannot be.
    """
    outs, settings = _told(words)
    # slow to import
    from ecjax.report.page import document
    from ecjax.report.results import read_study
    from ecjax.studies.spine.as_json import print_object
    from ecjax.tables.folder import location, publishing, write_errors

    studies = [read_study(out) for out in outs]
    if "pictures" in settings:
        return _pictures(outs, settings)
    rows = _side_by_side(studies)
    path = location(settings["page"]) if "page" in settings else location(outs[0]) / "report.html"
    shown = [displayed(out) for out in outs]
    title = f"ecjax {studies[0].job}: {shown[0]}" if len(studies) == 1 else f"ecjax: {', '.join(shown)}"
    with write_errors(path.parent), publishing(path) as file:
        # names of folders may hold bytes that are no characters
        file.write_text(document(title, rows, __version__), "utf-8", errors="replace")
    if output_mode() is OutputMode.JSON:
        print_object({"job": "report", "outs": outs, "page": str(path), "exit_code": 0})
        return 0
    conclude(OUTPUT, f"{path}: open it in a browser")
    return 0


def _told(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Folders and settings of a command line.

    Raises:
        UserError: there is no folder, or a setting stands there twice or without its folder.
    """
    settings: dict[str, str] = {}
    outs = []
    for word in words:
        key, mark, value = word.partition("=")
        if not mark or key not in _WORDS:
            outs.append(word.removeprefix("out="))
        elif key in settings or not value:
            raise UserError(f"report: {word}: found {key} twice or empty; allowed: {key}= once, with a value")
        else:
            settings[key] = value
    if not outs or any(out.startswith("-") for out in outs):
        folder_of_results("report", outs[:1])
    if "figures" in settings and "pictures" not in settings:
        raise UserError("report: figures= says which pictures; allowed: with pictures=FOLDER")
    if "page" in settings and "pictures" in settings:
        raise UserError("report: found page= and pictures=; allowed: one of them")
    if not settings.get("page", ".html").lower().endswith((".html", ".htm")):
        raise UserError(f"report: found page={settings['page']}; allowed: a file that ends in .html")
    return outs, settings


def _pictures(outs: Sequence[str], settings: dict[str, str]) -> int:
    from ecjax.pictures import write_pictures
    from ecjax.studies.spine.as_json import print_object

    names = [name for name in settings.get("figures", "").split(",") if name]
    drawn = write_pictures(outs, settings["pictures"], names)
    if output_mode() is OutputMode.JSON:
        print_object(
            {
                "job": "report",
                "outs": list(outs),
                "pictures": settings["pictures"],
                "figures": drawn,
                "exit_code": 0,
            }
        )
        return 0
    say(OUTPUT, f"figures, PNG and SVG: {', '.join(drawn)}")
    conclude(OUTPUT, f"{settings['pictures']}: pictures of {', '.join(outs)}")
    return 0


def _side_by_side(studies: Sequence["Results"]) -> "list[list[Section]]":
    """Sections in rows: of several studies those of one kind beside each other, below what tells the studies apart."""
    from ecjax.report.parts import Section
    from ecjax.report.sections.registry import kinds_of

    kinds = [kinds_of(study) for study in studies]
    if len(studies) == 1:
        return [[section] for section in kinds[0].values()]
    names = [_LETTERS[place] if place < len(_LETTERS) else str(place + 1) for place in range(len(studies))]
    sentences = [f"{name}: {displayed(study.out)}" for name, study in zip(names, studies, strict=True)]
    for name, study in zip(names[1:], studies[1:], strict=True):
        sentence = _difference(studies[0], study)
        sentences.append(sentence if name == "B" else f"{name} in the place of B: {sentence}")
    rows = [[Section("Difference", sentences, listings=_numbers(studies[0], studies[1]))]]
    for kind in dict.fromkeys(title for each in kinds for title in each):
        rows.append(
            [
                replace(each[kind], title=f"{name}: {each[kind].title}")
                for name, each in zip(names, kinds, strict=True)
                if kind in each
            ]
        )
    return rows


def _difference(one: "Results", other: "Results") -> str:
    """How the other differs, in a sentence."""
    from ecjax.comparison import QUANTITIES, sentence, side_of
    from ecjax.report.difference import difference

    if one.job != other.job or one.job not in QUANTITIES:
        return difference(one, other)
    try:
        return sentence(side_of(one.out, None), side_of(other.out, None))
    except UserError as error:
        return f"The two are not compared run by run: {error}"


def _numbers(one: "Results", other: "Results") -> "list[Listing]":
    """What both recommended plans or replays have a number for."""
    import pyarrow as pa

    from ecjax.comparison import QUANTITIES, compared, side_of
    from ecjax.report.parts import Listing

    if one.job != other.job or one.job not in QUANTITIES:
        return []
    try:
        rows = compared(side_of(one.out, None), side_of(other.out, None))
    except UserError:
        return []
    table = pa.Table.from_pylist(
        [{"quantity": name, "A": before, "B": after} for name, before, after in rows]
    )
    return [Listing("A and B", table)] if rows else []

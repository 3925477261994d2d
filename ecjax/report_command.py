"""The command ``ecjax report OUT [OUT2 ...]``: studies as one page of HTML."""

from collections.abc import Sequence
from dataclasses import replace

from ecjax import __version__
from ecjax.console import OUTPUT, OutputMode, conclude, output_mode
from ecjax.errors import UserError
from ecjax.jobs_index import folder_of_results


def run_report(words: Sequence[str]) -> int:
    """Write the page; returns the exit code, 0.

    Raises:
        UserError: no folder is named, or one holds no results.
    """
    pages = [word for word in words if word.startswith("page=")]
    outs = [word.removeprefix("out=") for word in words if word not in pages]
    if not outs or len(pages) > 1 or any(out.startswith("-") for out in outs):
        folder_of_results("report", outs[:1] if len(pages) < 2 else pages)
    # slow to import
    from ecjax.report.page import document
    from ecjax.report.parts import Section
    from ecjax.report.results import read_study
    from ecjax.report.sections.registry import sections_of
    from ecjax.studies.spine.as_json import print_object
    from ecjax.tables.folder import location, publishing

    studies = [read_study(out) for out in outs]
    sections = []
    if len(studies) > 1:
        sections.append(Section("Difference", [_difference(outs)]))
    for study in studies:
        prefix = f"{study.out}: " if len(studies) > 1 else ""
        sections += [replace(section, title=prefix + section.title) for section in sections_of(study)]
    path = location(pages[0].removeprefix("page=")) if pages else location(outs[0]) / "report.html"
    title = f"ecjax {studies[0].job}: {outs[0]}" if len(studies) == 1 else f"ecjax: {', '.join(outs)}"
    with publishing(path) as file:
        file.write_text(document(title, sections, __version__), "utf-8")
    if output_mode() is OutputMode.JSON:
        print_object({"job": "report", "outs": outs, "page": str(path), "exit_code": 0})
        return 0
    conclude(OUTPUT, f"{path}: open it in a browser")
    return 0


def _difference(outs: Sequence[str]) -> str:
    """The first two studies in a sentence."""
    from ecjax.comparison import sentence, side_of

    try:
        return sentence(*(side_of(out, None) for out in outs[:2]))
    except UserError as error:
        return f"The two are not compared run by run: {error}"

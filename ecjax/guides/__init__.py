"""The pages that ``ecjax JOB --guide`` and ``ecjax guide PAGE`` print: Markdown, beside this file."""

from pathlib import Path

from ecjax.errors import UserError, among

_FOLDER = Path(__file__).parent


def pages() -> dict[str, str]:
    """Titles of the pages by name."""
    return {
        path.stem: path.read_text().partition("\n")[0].removeprefix("# ")
        for path in sorted(_FOLDER.glob("*.md"))
    }


def page(name: str) -> str:
    """A page.

    Raises:
        UserError: there is none of this name.
    """
    names = pages()
    if name not in names:
        raise UserError(f"guide: found {name!r}{among(name, names)}")
    return (_FOLDER / f"{name}.md").read_text()

"""The pages that ``ecjax JOB --guide`` and ``ecjax guide PAGE`` print: Markdown, beside this file."""

import difflib
from pathlib import Path

from ecjax.errors import UserError

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
        close = difflib.get_close_matches(name, names, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise UserError(f"guide: found {name!r}{hint}; allowed: {', '.join(names)}")
    return (_FOLDER / f"{name}.md").read_text()

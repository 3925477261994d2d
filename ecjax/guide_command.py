"""The command ``ecjax guide [PAGE]``: pages of the guide."""

from collections.abc import Sequence

from ecjax.errors import UserError
from ecjax.guides import page, pages


def run_guide(words: Sequence[str]) -> int:
    """Print a page, or the list of pages; returns the exit code, 0.

    Raises:
        UserError: there is no such page.
    """
    if len(words) > 1:
        raise UserError(f"guide: found {' '.join(words)}; allowed: one of {', '.join(pages())}")
    if words:
        print(page(words[0]))
        return 0
    width = max(map(len, pages()))
    print("\n".join(f"{name:{width}}  {title}" for name, title in pages().items()))
    return 0

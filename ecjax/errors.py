"""What a user can get wrong, as one exception whose message is one line."""

import difflib
from collections.abc import Collection

from ecjax.display import displayed

EXIT_USER = 2  # exit code of what ends with one


class UserError(ValueError):
    """A mistake in what the user gave: names the place, what was found and what is allowed.

    The command line prints the message as one line and exits with code 2; in the library it is an ordinary
    ``ValueError``. Whatever an id or a path in it holds, the message can be shown anywhere (``display.displayed``).
    """

    def __init__(self, message: str) -> None:
        super().__init__(displayed(" ".join(message.split())))


class Infeasible(UserError):
    """No placement has the chunks that files need: of a scenario, or of a code, an answer."""


def among(name: str, names: Collection[str], prefix: str = "") -> str:
    """End of a message about a name that is none of these: what may have been meant, and what is allowed.

    Args:
        name: what was written.
        names: what is allowed.
        prefix: of the names, ``"generate."``.
    """
    with_it = [each for each in names if name in each.split("_")]
    close = with_it if len(with_it) == 1 else difflib.get_close_matches(name, names, n=1)
    hint = f" (did you mean {prefix}{close[0]}?)" if close else ""
    return f"{hint}; allowed: {', '.join(prefix + each for each in names)}"

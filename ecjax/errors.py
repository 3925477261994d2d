"""What a user can get wrong, as one exception whose message is one line."""


class UserError(ValueError):
    """A mistake in what the user gave: names the place, what was found and what is allowed.

    The command line prints the message as one line and exits with code 2; in the library it is an ordinary
    ``ValueError``.
    """

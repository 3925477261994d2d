"""Strings from data and from other programs, as consoles, logs, errors and figures show them. Imports nothing heavy.

Ids, paths and messages may hold anything: codes that steer a terminal, marks that turn the direction of writing,
markup, a hundred thousand letters, the password of an object store. All that people see of them passes ``displayed``.
"""

import re

LINE, WORD, CELL = 2000, 120, 60  # characters of a message, of a word in a longer one, and of an id or label
_INSTEAD = "\N{REPLACEMENT CHARACTER}"
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def displayed(value: object, most: int = LINE) -> str:
    """A value as one line that can be shown anywhere.

    Addresses lose user information and query, line feeds and tabs become spaces, other characters that steer rather
    than print become U+FFFD, and a text that is too long loses the middle of
    its long words, then its own.

    Args:
        value: shown as its ``str``.
        most: characters, at least 2.
    """
    text = str(value)
    if "://" in text:
        text = "".join(map(without_secrets, re.split(r"(\s+)", text)))
    if len(text) > most:
        text = _cut("".join(_cut(word, WORD) for word in re.split(r"(\s+)", text)), most)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else " " if each.isspace() else _INSTEAD for each in text)


def _cut(text: str, most: int) -> str:
    """The text without its middle where it is longer."""
    if len(text) <= most:
        return text
    end = most // 3
    return text[: most - end - 1] + _ELLIPSIS + text[len(text) - end :]


def without_secrets(address: str) -> str:
    """An address without the user information and the query that it may have; any other text as it is.

    What stands before the scheme, and quotes and punctuation behind the query, stay.
    """
    scheme, mark, rest = address.partition("://")
    if not mark:
        return address
    rest, question, query = rest.partition("?")
    end = ""
    if question:
        quote = max(query.rfind("'"), query.rfind('"'))
        end = query[quote if quote >= 0 else len(query.rstrip(":;,.)]")) :]
    # several addresses may stand in a word
    parts = [part.partition("/") for part in rest.split(mark)]
    places = mark.join(f"{authority.rpartition('@')[2]}{slash}{path}" for authority, slash, path in parts)
    return f"{scheme}{mark}{places}{end}"

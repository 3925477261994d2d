"""The words of a command, checked before anything is imported that takes time. Imports nothing heavy.

What Hydra's grammar says of a word is left to Hydra; names of options, and values that are plainly a number, a word,
true, false, null or a list of these, are held against the option's rule at once.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import Field, fields, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args

from ecjax.errors import UserError, among
from ecjax.jobs_index import GROUPS, Job, choices, engines, folder
from ecjax.options import MOST_VALUES, Listed, Series, Special, Wrong, checked, rule_of

FLAGS = (
    "-m",
    "--multirun",
    "--cfg",
    "-c",
    "--info",
    "-i",
    "--resolve",
    "--package",
    "-p",
    "--hydra-help",
    "--config-dir",
    "-cd",
)
_CONFIG_DIR, _CFG, _INFO, _PACKAGE = (
    ("--config-dir", "-cd"),
    ("--cfg", "-c"),
    ("--info", "-i"),
    ("--package", "-p"),
)
_WITH_VALUE = (*_CFG, *_PACKAGE, *_CONFIG_DIR)
_CONFIGURATIONS = ("job", "hydra", "all")
_INFORMATION = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
_CHOICES = dict.fromkeys(_CFG, _CONFIGURATIONS) | dict.fromkeys(_INFO, _INFORMATION)
_BRACKETS = {"[": "]", "{": "}", "(": ")"}
_QUOTES = "'\""
_MOST_NESTED, _MOST_DIGITS = 20, 400
_DIGITS = re.compile(rf"\d{{{_MOST_DIGITS + 1},}}")
# a name and numbers in brackets, not in quotes, and Hydra's own names
_CALL = re.compile(r"(?<![\w'\"])([A-Za-z][\w.-]*)\([\d,\s]*\)(?!['\"])")
_FUNCTIONS = ("choice", "range", "interval", "glob", "sort", "shuffle", "tag", "bool", "float", "int", "str")
_WORD = re.compile(r"[A-Za-z_][\w./-]*")
_WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)")
_NUMBER = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?")


class _NotPlain(Exception):
    """A value that only Hydra's grammar can tell."""


def split_flags(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Hydra's flags, those with a value as in ``--cfg=job``, and all other words.

    Raises:
        UserError: a flag is not one of Hydra's, or has no value that it may have, or they do not go together.
    """
    flags: list[str] = []
    plain: list[str] = []
    rest = list(words)[::-1]
    while rest:
        word = rest.pop()
        if word.startswith("-"):
            flags.append(_flag(word, rest))
        elif word.upper() == "HYDRA.MODE=MULTIRUN":
            flags.append("-m")
        else:
            plain.append(word)
    _check_together(flags)
    return flags, plain


def _flag(word: str, rest: list[str]) -> str:
    """A flag with its value, which may be the next word.

    Args:
        word: the flag, perhaps with a value.
        rest: words after it, the next one last; one that is the value leaves it.

    Raises:
        UserError: see above.
    """
    name, equals, value = word.partition("=")
    if name not in FLAGS:
        raise UserError(
            f"found {word}; allowed: key=value, --help, --json, --quiet, or one of Hydra's {', '.join(FLAGS)}"
        )
    if not equals and name in _INFO:
        # alone it stands for all
        return f"{name}={rest.pop()}" if rest and rest[-1] in _INFORMATION else name
    if not equals and name not in _WITH_VALUE:
        return name
    if not equals and rest:
        value = rest.pop()
    allowed = _CHOICES.get(name)
    if allowed is not None and value not in allowed:
        raise UserError(f"{name}: found {value or 'no value'}; allowed: {', '.join(allowed)}")
    if name in _PACKAGE and not value:
        raise UserError(f"{name}: found no value; allowed: a key of the configuration, as in {name}=engine")
    if name not in (*_WITH_VALUE, *_INFO):
        raise UserError(f"found {word}; allowed: {name}, which takes no value")
    return f"{name}={value}"


def _check_together(flags: Iterable[str]) -> None:
    """Check that flags go together.

    Raises:
        UserError: they do not.
    """
    by_name = {flag.partition("=")[0]: flag for flag in flags}
    shown, information = (
        next((by_name[name] for name in names if name in by_name), None) for names in (_CFG, _INFO)
    )
    if shown is not None and information is not None:
        raise UserError(f"found {shown} with {information}; allowed: one of them")
    for name in ("--resolve", *_PACKAGE):
        if name in by_name and shown is None:
            raise UserError(
                f"found {by_name[name]} without --cfg; allowed: with --cfg={', '.join(_CONFIGURATIONS)}"
            )


def config_folders(flags: Iterable[str]) -> tuple[list[str], list[Path]]:
    """Hydra's other flags, and the user's folders of configuration: those of ``--config-dir``, then ``conf`` of here.

    Args:
        flags: as ``split_flags`` returns them.

    Raises:
        UserError: there is no such folder.
    """
    others: list[str] = []
    named: list[str] = []
    for flag in flags:
        name, _, value = flag.partition("=")
        if name in _CONFIG_DIR:
            named.append(value)
        else:
            others.append(flag)
    for name in named:
        if not name or not Path(name).is_dir():
            raise UserError(
                f"--config-dir: found {name or 'no folder'}; allowed: a folder with experiment/NAME.yaml, "
                "engine/NAME.yaml, ..."
            )
    folders = [Path(name).resolve() for name in named]
    here = Path("conf").resolve()
    if here.is_dir() and here != folder("conf").resolve() and here not in folders:
        folders.append(here)
    return others, folders


def check_words(job: Job, words: Iterable[str]) -> None:
    """Check the words of a command as far as they are plain; where all are, also what options say of each other.

    Raises:
        UserError: an option is unknown, or what is plain is not allowed.
    """
    flags, plain = split_flags(words)
    options = job.options_class()
    complete = not flags
    earlier: dict[str, str] = {}
    for word in plain:
        key, equals, text = word.partition("=")
        name = key.lstrip("+~")
        if equals and name in earlier:
            # as a shell makes of braces without quotation marks, too
            raise UserError(
                f"found {earlier[name]} and {word}; allowed: {name} once, several values in quotation marks, "
                f"'{name}=[...]' or '{name}={{...}}'"
            )
        if equals:
            earlier[name] = word
        if equals and not name:
            raise UserError(f"found {word} without a key; allowed: key=value, no space before or after =")
        if not equals or is_group(job, name) or is_hydras(name):
            complete = False
            continue
        item = option_of(job, name)
        if not flags:
            text = bracketed(name, item, text)
        check_written(name, item, text)
        if item is None or is_dataclass(item.type) or flags:
            complete = False
            continue
        try:
            value = text if is_text(item.type) and not is_written(text, item.type) else _plain(text)
        except _NotPlain:
            complete = False
            continue
        options = _with_option(options, name.split("."), _checked(name, item, value))
    if complete:
        checked(options)


def _checked(name: str, item: Field[Any], value: Any) -> Any:
    """The value under the rule of its option."""
    if value is None and type(None) in get_args(item.type):
        return None
    rule = rule_of(item)
    try:
        return rule(value)
    except Wrong as wrong:
        raise UserError(f"{name}: found {wrong.found}; allowed: {wrong.allowed or rule.allowed}") from None


def _with_option(options: Any, path: list[str], value: Any) -> Any:
    """Options with another value at a path of names."""
    if len(path) > 1:
        value = _with_option(getattr(options, path[0]), path[1:], value)
    return replace(options, **{path[0]: value})


def bracketed(name: str, item: Field[Any] | None, text: str) -> str:
    """The value of an option, with the brackets that a list of values may lack: ``1,2`` is ``[1,2]``.

    Names that look like a call of one of Hydra's functions, ``lrc(12,2,2)``, get quotes.

    Raises:
        UserError: there are several values of an option that takes one.
    """
    if item is None or is_dataclass(item.type) or is_text(item.type):
        return text
    rule = rule_of(item)
    if isinstance(rule, Special):
        text = _CALL.sub(lambda call: call[0] if call[1] in _FUNCTIONS else f"'{call[0]}'", text)
    if not _has_comma_outside(text):
        return text
    if not isinstance(rule, Listed | Series | Special):
        raise UserError(f"{name}: found {text}; allowed: {rule.allowed}; several values only with -m")
    return f"[{text}]"


def _has_comma_outside(text: str) -> bool:
    """Whether a comma stands outside of all brackets and quotes."""
    depth = 0
    for _, letter in _unquoted(text):
        depth += (letter in _BRACKETS) - (letter in _BRACKETS.values())
        if letter == "," and depth == 0:
            return True
    return False


def _unquoted(text: str) -> Iterator[tuple[int, str]]:
    """The characters outside of quotes that no backslash precedes, and their places from 1.

    A quote that is not closed comes last.
    """
    quote, escaped = 0, False
    for place, letter in enumerate(text, 1):
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif quote:
            quote = 0 if letter == text[quote - 1] else quote
        elif letter in _QUOTES:
            quote = place
        else:
            yield place, letter
    if quote:
        yield quote, text[quote - 1]


def check_written(name: str, item: Field[Any] | None, text: str) -> None:
    """Check how a value is written, as far as Hydra's grammar would take long, or say it without the option.

    Args:
        name: of the option.
        item: its field; None of a key within a mapping.
        text: the value.

    Raises:
        UserError: brackets or quotes do not match, or there is too much of something.
    """
    if item is not None and is_text(item.type) and not is_written(text, item.type):
        return
    long = _DIGITS.search(text)
    if long:
        raise UserError(
            f"{name}: found a number of {len(long[0])} digits; allowed: at most {_MOST_DIGITS} digits"
        )
    values = sum(letter == "," for _, letter in _unquoted(text)) + 1
    if values > MOST_VALUES:
        raise UserError(f"{name}: found {values} values; allowed: at most {MOST_VALUES}")
    _check_brackets(name, text)


def _check_brackets(name: str, text: str) -> None:
    """Check that brackets and quotes are closed, in their order."""
    still_open: list[tuple[str, int]] = []
    for place, letter in _unquoted(text):
        if letter in _BRACKETS or letter in _QUOTES:
            still_open.append((letter, place))
            if len(still_open) > _MOST_NESTED:
                raise UserError(
                    f"{name}: found brackets nested {_MOST_NESTED + 1} deep; allowed: {_MOST_NESTED}"
                )
        elif letter in _BRACKETS.values():
            if not still_open or _BRACKETS[still_open.pop()[0]] != letter:
                raise UserError(
                    f"{name}: found {text}, where {letter!r} (character {place}) closes nothing; allowed: brackets "
                    "that match"
                )
    if still_open:
        letter, place = still_open[-1]
        raise UserError(
            f"{name}: found {text}, where {letter!r} (character {place}) is not closed; allowed: {name}=... with "
            f"{_BRACKETS.get(letter, letter)!r} at its end, in quotation marks where it holds spaces"
        )


def is_hydras(name: str) -> bool:
    """Whether a key belongs to Hydra itself."""
    return name.split("@")[0].split(".")[0] == "hydra" or name.startswith("hydra/")


def is_text(kind: Any) -> bool:
    """Whether an option of this type may be a text, so that its value on the command line is one as it stands."""
    return kind is str or (isinstance(kind, UnionType) and str in get_args(kind))


def is_written(text: str, kind: Any) -> bool:
    """Whether the value of a text option is written in Hydra's grammar: quoted, null, and a list or mapping.

    Args:
        text: the value.
        kind: type of the option. Of one that is a text or nothing, brackets are letters, as of a pattern of files.
    """
    only_text = kind is str or set(get_args(kind)) == {str, type(None)}
    brackets = ("${",) if only_text else ("[", "{", "${")
    return text.startswith(("'", '"', *brackets)) or text in ("null", "")


def is_group(job: Job, name: str) -> bool:
    """Whether a key chooses files of ``conf`` for this job."""
    return name == "experiment" or (name in GROUPS and bool(choices(job.name, name)))


def check_choice(job: Job, group: str, name: str, folders: Iterable[Path] = ()) -> None:
    """Check the name of a study, or of another file of ``conf``.

    Args:
        job: whose.
        group: of ``GROUPS``.
        name: of the file.
        folders: of the user's configuration.

    Raises:
        UserError: the job has none of this name, or the user has another one.
    """
    names = choices(job.name, group)
    file = _own_file(group, name, folders)
    if file is None and name not in names:
        raise UserError(f"{group}: found {name!r}; allowed: one of {', '.join(names) or 'none'}")


def check_engine(name: str, folders: Iterable[Path] = ()) -> None:
    """Check the name of an engine, a file of ``conf/engine``; arguments as above.

    Raises:
        UserError: there is none of this name, or the user has another one.
    """
    if _own_file("engine", name, folders) is None and name not in engines():
        raise UserError(f"engine: found {name!r}; allowed: {', '.join(engines())} (or engine.KEY=...)")


def _own_file(group: str, name: str, folders: Iterable[Path]) -> Path | None:
    """The file that the user's configuration has of this name, if there is one.

    Raises:
        UserError: ecjax has one of this name too, which Hydra would take, and they differ.
    """
    place = Path(group, f"{name}.yaml")
    file = next((each / place for each in folders if (each / place).is_file()), None)
    ours = folder("conf") / place
    if file is not None and ours.is_file() and ours.read_bytes() != file.read_bytes():
        raise UserError(f"{group}={name}: found {file}, and one of ecjax of this name; allowed: another name")
    return file


def option_of(job: Job, name: str) -> Field[Any] | None:
    """The field of an option by its dotted name; None of a key within a mapping.

    Raises:
        UserError: there is no such option.
    """
    options: Any = job.options_class()
    item: Field[Any] | None = None
    parts = name.split(".")
    for depth, part in enumerate(parts):
        if not is_dataclass(options):
            if item is not None and depth and _takes_mapping(item):
                return None
            names: dict[str, Field[Any]] = {}
        else:
            names = {each.name: each for each in fields(options)}
        if part not in names:
            prefix = "".join(piece + "." for piece in parts[:depth])
            raise UserError(f"found option {name!r}{among(part, names, prefix)}")
        item = names[part]
        options = getattr(options, part)
    return item


def _takes_mapping(item: Field[Any]) -> bool:
    return "dict" in str(item.type)


def _plain(text: str) -> Any:
    """The value that a plain text stands for.

    Raises:
        _NotPlain: it is not plain.
    """
    if text.startswith("[") and text.endswith("]") and "[" not in text[1:]:
        inner = text[1:-1]
        return [_plain(part.strip()) for part in inner.split(",")] if inner.strip() else []
    lower = text.lower()
    if lower == "null":
        return None
    if lower in ("true", "false"):
        return lower == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    if lower not in ("inf", "nan") and _WORD.fullmatch(text):
        return text
    raise _NotPlain

"""What values an option may have: rules that turn a value into its type, or say what is allowed instead."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

MOST_WHOLE = 2**31 - 1  # where a rule says nothing else
MOST_NUMBER = 1e30  # on both sides of 0, where a rule says nothing else: its cube is a number too
MOST_VALUES = 2000  # of a list; Hydra parses a thousand a second or two
_MANY_DIGITS = 10**100


class Wrong(ValueError):
    """A value that a rule does not allow.

    Attributes:
        found: the value, as a message shows it.
        allowed: what the rule allows; None: what it says of itself.
    """

    def __init__(self, found: str, allowed: str | None = None) -> None:
        super().__init__(found)
        self.found, self.allowed = found, allowed


class Rule(Protocol):
    """What an option may be."""

    @property
    def allowed(self) -> str:
        """What is allowed, in words that follow "allowed:"."""
        ...

    def __call__(self, value: Any) -> Any:
        """The value in its type.

        Raises:
            Wrong: it is not allowed.
        """
        ...


def rows_within(value: Any) -> list[Any] | None:
    """The lists of a list of lists; of a list of values it alone."""
    if not isinstance(value, list | tuple) or not value:
        return None
    return list(value) if all(isinstance(each, list | tuple) for each in value) else [value]


def is_number(value: Any) -> bool:
    """Whether ``value`` is a number no further from 0 than ``MOST_NUMBER``; true and false are none."""
    return isinstance(value, Real) and not isinstance(value, bool) and _size(value) <= MOST_NUMBER


def _size(value: Any) -> float:
    return abs(value)


def is_whole(value: Any) -> bool:
    """Whether ``value`` is an integer; true and false are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


@dataclass(frozen=True)
class Number:
    """A finite number within bounds: ``least`` and ``most`` belong to them, ``above`` and ``below`` do not.

    None is further from 0 than ``MOST_NUMBER``, nor nearer than 1 / ``MOST_NUMBER`` where it has to be above 0: what is
    divided by it stays a number.
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    @property
    def allowed(self) -> str:
        """What is allowed."""
        low = self.least if self.above is None else self.above
        high = self.most if self.below is None else self.below
        if low is None and high is None:
            return "a number"
        if high is None:
            return f"a number above {low:g}" if self.least is None else f"a number, at least {low:g}"
        if low is None:
            return f"a number below {high:g}" if self.most is None else f"a number, at most {high:g}"
        if self.least is None:
            until = f"below {high:g}" if self.most is None else f"at most {high:g}"
            return (
                f"a number between {low:g} and {high:g}"
                if self.most is None
                else f"a number above {low:g}, {until}"
            )
        return f"a number from {low:g} to {'below ' if self.most is None else ''}{high:g}"

    def __call__(self, value: Any) -> float:
        """The number as a float."""
        inside = (
            is_number(value)
            and (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and not self._too_near(value)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )
        if not inside:
            far = isinstance(value, Real) and _size(value) > MOST_NUMBER
            allowed = f"{self.allowed}, up to {MOST_NUMBER:g}" if far else None
            near = is_number(value) and value > 0 and self._too_near(value)
            raise Wrong(shown(value), f"{self.allowed}, at least {1 / MOST_NUMBER:g}" if near else allowed)
        return float(value)

    def _too_near(self, value: Any) -> bool:
        """Whether the number is too near to 0, above which it has to be."""
        return self.above == 0 and value < 1 / MOST_NUMBER


@dataclass(frozen=True)
class Whole:
    """An integer from ``least`` to ``most``, by default ``MOST_WHOLE``."""

    least: int
    most: int | None = None

    @property
    def allowed(self) -> str:
        """What is allowed."""
        if self.most is None:
            return f"a whole number of at least {self.least}"
        return f"a whole number from {self.least} to {self.most}"

    def __call__(self, value: Any) -> int:
        """The number as an int."""
        if not is_whole(value) or value < self.least or (self.most is not None and value > self.most):
            raise Wrong(shown(value))
        if self.most is None and value > MOST_WHOLE:
            raise Wrong(shown(value), f"a whole number from {self.least} to {MOST_WHOLE}")
        return int(value)


@dataclass(frozen=True)
class Flag:
    """True or false."""

    allowed: str = "true, false"

    def __call__(self, value: Any) -> bool:
        """The value itself."""
        if not isinstance(value, bool):
            raise Wrong(shown(value))
        return value


@dataclass(frozen=True)
class Text:
    """A text that is not empty: a path, a name. Numbers of a configuration file are taken as they are written."""

    allowed: str = "a text"

    def __call__(self, value: Any) -> str:
        """The text."""
        if not isinstance(value, str | int | float) or isinstance(value, bool) or value == "":
            raise Wrong(repr(value))
        return str(value)


class Words:
    """One of some words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    @property
    def allowed(self) -> str:
        """What is allowed."""
        return ", ".join(self.words)

    def __call__(self, value: Any) -> str:
        """The word."""
        if not isinstance(value, str) or value not in self.words:
            raise Wrong(repr(value))
        return value


@dataclass(frozen=True)
class Listed:
    """One value or a list of values under another rule: a list without repeats.

    Attributes:
        rule: of each value.
        empty: whether the list may be empty.
        null: whether null may stand in it, or for a list of it alone.
        together: whether the values belong to one run; else runs differ in it, and a sweep over them is such a list.
    """

    rule: Rule
    empty: bool = False
    null: bool = False
    together: bool = False

    @property
    def allowed(self) -> str:
        """What is allowed."""
        if isinstance(self.rule, Words):
            return self.rule.allowed
        return f"{'null, ' if self.null else ''}{self.rule.allowed}, or a list of them"

    def __call__(self, value: Any) -> list[Any]:
        """The list."""
        values = list(value) if isinstance(value, list | tuple) else [value]
        if not values and not self.empty:
            raise Wrong("an empty list")
        _check_count(values)
        try:
            return list(dict.fromkeys(None if v is None and self.null else self.rule(v) for v in values))
        except Wrong as wrong:
            # of words the one that is wrong, of numbers all that was there
            raise Wrong(
                wrong.found if isinstance(self.rule, Words) else shown(value), wrong.allowed
            ) from None


@dataclass(frozen=True)
class Series:
    """One value or a list of values under another rule, in their order, repeats kept: a value per class, per site.

    Attributes:
        rule: of each value.
        most: how many there may be.
    """

    rule: Rule
    most: int | None = None

    @property
    def allowed(self) -> str:
        """What is allowed."""
        several = "a list of them" if self.most is None else f"a list of at most {self.most}"
        return f"{self.rule.allowed}, or {several}"

    def __call__(self, value: Any) -> list[Any]:
        """The list."""
        values = list(value) if isinstance(value, list | tuple) else [value]
        if not values or (self.most is not None and len(values) > self.most):
            raise Wrong(shown(value))
        _check_count(values)
        try:
            return [self.rule(each) for each in values]
        except Wrong as wrong:
            raise Wrong(shown(value), wrong.allowed) from None


@dataclass(frozen=True)
class Mapping:
    """Keys with values, as a configuration writes them: {key: value, ...}."""

    allowed: str

    def __call__(self, value: Any) -> dict[str, Any]:
        """The mapping with texts for keys."""
        if not isinstance(value, dict):
            raise Wrong(repr(value))
        return {str(key): each for key, each in value.items()}


@dataclass(frozen=True)
class Special:
    """A rule of one option only.

    Attributes:
        allowed: what is allowed.
        take: turns a value into its type, or raises ``Wrong``.
        runs_of: the values within one that are runs of their own, a list of which is a sweep; None: all is one run's.
    """

    allowed: str
    take: Callable[[Any], Any]
    runs_of: Callable[[Any], list[Any] | None] = lambda value: None

    def __call__(self, value: Any) -> Any:
        """What ``take`` makes of it."""
        return self.take(value)


def _check_count(values: list[Any]) -> None:
    if len(values) > MOST_VALUES:
        raise Wrong(f"{len(values)} values", f"at most {MOST_VALUES}")


def shown(value: Any) -> str:
    """A value in a message, as a configuration writes it."""
    if is_whole(value) and abs(value) >= _MANY_DIGITS:
        return "a number of hundreds of digits"  # which str refuses where they are thousands
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

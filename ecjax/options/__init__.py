"""Options of a job: typed fields that carry default, help and rule, and how they are checked. Imports nothing heavy.

An option stands in one place: the field of a frozen dataclass, made by ``option``. The command line's help, the
composed configuration, the check and the identity of a run all read that field.
"""

from ecjax.options.checking import changed, checked
from ecjax.options.fields import defaults, identifying, option, rule_of, section
from ecjax.options.rules import (
    MOST_NUMBER,
    MOST_VALUES,
    MOST_WHOLE,
    Flag,
    Listed,
    Mapping,
    Number,
    Rule,
    Series,
    Special,
    Text,
    Whole,
    Words,
    Wrong,
    is_number,
    is_whole,
    rows_within,
    shown,
)

__all__ = [
    "MOST_NUMBER",
    "MOST_VALUES",
    "MOST_WHOLE",
    "Special",
    "Flag",
    "Listed",
    "Mapping",
    "Number",
    "Rule",
    "Series",
    "Text",
    "Whole",
    "Words",
    "Wrong",
    "changed",
    "checked",
    "defaults",
    "identifying",
    "is_number",
    "is_whole",
    "option",
    "rows_within",
    "rule_of",
    "section",
    "shown",
]

"""Options: rules, checks, defaults, identity; and that every job's fields agree with their types."""

import json
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass, replace
from typing import get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.jobs_index import JOBS
from ecjax.options import (
    MOST_WHOLE,
    Flag,
    Listed,
    Number,
    Series,
    Text,
    Whole,
    Words,
    Wrong,
    changed,
    checked,
    defaults,
    identifying,
    option,
    rule_of,
    section,
)

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(-5, 5),
    st.just(float("nan")),
    st.just(float("inf")),
    st.text(max_size=3),
    st.lists(st.integers(-3, 3), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


@pytest.mark.parametrize(
    ("rule", "inside", "outside", "allowed"),
    [
        (
            Number(),
            [0, -1.5, -1e30],
            [True, "1", None, float("nan"), float("inf"), 1.1e30, 10**400],
            "a number",
        ),
        (Number(least=0), [0, 2], [-1], "a number, at least 0"),
        (Number(above=0), [1e-9], [0, -1], "a number above 0"),
        (Number(least=0, most=1), [0, 1], [1.1, -0.1], "a number from 0 to 1"),
        (Number(least=0, below=1), [0], [1], "a number from 0 to below 1"),
        (Number(above=0, below=1), [0.5], [0, 1], "a number between 0 and 1"),
        (Number(above=0, most=1), [1], [0], "a number above 0, at most 1"),
        (
            Whole(1),
            [1, MOST_WHOLE],
            [0, 1.0, True, "1", MOST_WHOLE + 1, 10**400],
            "a whole number of at least 1",
        ),
        (Whole(0, 5), [0, 5], [-1, 6], "a whole number from 0 to 5"),
        (Flag(), [True, False], [0, 1, "true", None], "true, false"),
        (Text(), ["a", 3], ["", True, None, ["a"]], "a text"),
        (Words("a", "b"), ["a"], ["c", 1, None, ["a"]], "a, b"),
        (Listed(Words("a", "b")), ["a", ["b", "a"]], ["c", ["a", "c"], []], "a, b"),
        (Listed(Words("a"), empty=True), [[]], ["b"], "a"),
        (Listed(Whole(1)), [1, [2, 1]], [0, [1, 0], []], "a whole number of at least 1, or a list of them"),
        (
            Series(Whole(1), most=2),
            [1, [1, 1]],
            [[1, 1, 1], []],
            "a whole number of at least 1, or a list of at most 2",
        ),
    ],
)
def test_rules_take_what_they_say(rule, inside, outside, allowed):
    assert rule.allowed == allowed
    for value in inside:
        rule(value)
    for value in outside:
        with pytest.raises(Wrong):
            rule(value)


@pytest.mark.parametrize(
    ("rule", "value", "found", "allowed"),
    [
        (Whole(1), 99999999999999999999, "99999999999999999999", "a whole number from 1 to 2147483647"),
        (Listed(Whole(1)), [1, 2**62], str([1, 2**62]), "a whole number from 1 to 2147483647"),
        (Number(above=0), 1e308, "1e+308", "a number above 0, up to 1e+30"),
        (Number(above=0), 1e-300, "1e-300", "a number above 0, at least 1e-30"),
        (Number(above=0), -1e-300, "-1e-300", None),
        (Number(least=0), 10**150, "a number of hundreds of digits", "a number, at least 0, up to 1e+30"),
        (Listed(Number()), [0.5] * 20_000, "20000 values", "at most 2000"),
        (Series(Number()), [0.5] * 20_000, "20000 values", "at most 2000"),
    ],
)
def test_what_is_too_much_is_told_with_its_limit(rule, value, found, allowed):
    with pytest.raises(Wrong) as wrong:
        rule(value)
    assert (wrong.value.found, wrong.value.allowed) == (found, allowed)


@given(value=VALUES, lists=st.booleans())
def test_a_rule_takes_what_it_made_and_types_hold(value, lists):
    for rule, kind in ((Number(), float), (Whole(-3), int), (Flag(), bool), (Text(), str), (Words("a"), str)):
        rule = Listed(rule, empty=True) if lists else rule
        try:
            result = rule(value)
        except Wrong:
            continue
        assert rule(result) == result
        assert all(type(each) is kind for each in (result if lists else [result]))


def test_lists_have_no_repeats_and_series_keep_them():
    assert Listed(Number())([1, 1.0, 2]) == [1.0, 2.0]
    assert Series(Number())([1, 1.0, 2]) == [1.0, 1.0, 2.0]
    assert Listed(Text(), null=True)([None, "a"]) == [None, "a"]


@dataclass(frozen=True)
class Inner:
    size: float = option(1.0, "a size", Number(above=0))


@dataclass(frozen=True)
class Outer:
    """Options like those of a job."""

    count: int = option(3, "how many", Whole(1), identifies=True)
    kinds: list[str] = option(["a"], "which", Listed(Words("a", "b")))
    limit: float | None = option(None, "most", Number(least=0), identifies=lambda options: options.count > 5)
    inner: Inner = section(Inner, "more")

    def completed(self):
        if self.limit is not None and self.limit < self.count:
            raise UserError(f"limit: found {self.limit:g}; allowed: at least count={self.count}")
        return self if self.limit is not None else replace(self, limit=100.0)


def test_checked_options_are_lists_floats_and_complete():
    options = Outer(count=7, kinds="b", inner=Inner(size=2))
    result = checked(options)
    assert (result.kinds, result.limit, result.inner.size, type(result.inner.size)) == (
        ["b"],
        100.0,
        2.0,
        float,
    )
    assert checked(result) == result
    assert options.kinds == "b" and options.limit is None  # as they were
    with pytest.raises(FrozenInstanceError):
        result.count = 1
    assert identifying(result) == {"count": 7, "limit": 100.0}
    assert identifying(checked(Outer())) == {"count": 3}
    assert defaults(Outer()) == {"count": 3, "kinds": ["a"], "limit": None, "inner": {"size": 1.0}}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Outer(count=0), "count: found 0; allowed: a whole number of at least 1"),
        (Outer(count=None), "count: found null; allowed: a whole number of at least 1"),
        (Outer(kinds=["a", "c"]), "kinds: found 'c'; allowed: a, b"),
        (Outer(kinds=[]), "kinds: found an empty list; allowed: a, b"),
        (Outer(limit=2), "limit: found 2; allowed: at least count=3"),
        (Outer(inner=Inner(size=True)), "inner.size: found true; allowed: a number above 0"),
        (Outer(inner=5), "inner: found 5; allowed: inner.KEY=VALUE"),
    ],
)
def test_mistakes_name_option_value_and_what_is_allowed(options, message):
    with pytest.raises(UserError) as error:
        checked(options)
    assert str(error.value) == message


def every_field(options, prefix=""):
    for item in fields(options):
        value = getattr(options, item.name)
        if is_dataclass(value):
            yield from every_field(value, f"{prefix}{item.name}.")
        else:
            yield prefix + item.name, item, value


@pytest.mark.parametrize("job", sorted(JOBS))
def test_options_of_a_job_are_typed_and_their_defaults_allowed(job):
    options = JOBS[job].options_class()
    for name, item, value in every_field(options):
        rule, kinds = rule_of(item), get_args(item.type) or (item.type,)
        assert item.metadata["help"], name
        assert value is not None or type(None) in kinds, name
        if value is not None:
            rule(value)
        if isinstance(rule, Listed | Series):
            assert any(get_origin(kind) is list for kind in (item.type, *kinds)), name
        for plain, kind in ((Number, float), (Whole, int), (Flag, bool), (Text, str), (Words, str)):
            if type(rule) is plain:
                assert kind in kinds, name
    with pytest.raises(FrozenInstanceError):
        options.out = "elsewhere"


def test_identity_is_json():
    for job in JOBS.values():
        json.dumps(identifying(job.options_class()))


@dataclass(frozen=True)
class Depth:
    depth: int = option(1, "", Whole(0))


@dataclass(frozen=True)
class Three:
    counts: list[int] = option([1], "", Listed(Whole(0)))
    share: float | None = option(None, "", Number(least=0))
    inner: Depth = section(Depth, "")
    deep: Depth = section(lambda: Depth(depth=9), "")


def test_options_that_are_not_as_by_default_are_named():
    names = ["counts", "share", "inner", "deep"]
    assert changed(checked(Three()), names) == []
    # one number is a list of one
    assert changed(checked(Three(counts=1)), names) == []
    other = checked(Three(counts=[2, 3], share=0.5, inner=Depth(depth=4)))
    assert changed(other, names) == ["counts=[2, 3]", "share=0.5", "inner.depth=4"]
    assert changed(other, ["share"]) == ["share=0.5"]
    assert changed(Three(deep=Depth(depth=1)), ["deep"]) == ["deep.depth=1"]


@pytest.mark.parametrize(
    ("job", "values"),
    [(job, {"analyze": {"trace": "a log"}, "ceph": {"dumps": "a folder"}}.get(job, {})) for job in JOBS]
    + [("bench", {"suite": "gpu"}), ("cache", {"partitions": 4}), ("replay", {"trace": "a log"})],
)
def test_options_of_jobs_may_be_checked_again(job, values):
    """As a command does: once when it is composed, and once by the study."""
    once = checked(JOBS[job].options_class(**values))
    assert checked(once) == once

"""Strings from data on their way to people: one line, printable, short, without secrets, never markup or math."""

import io
import logging
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from rich.console import Console

from ecjax import console as consoles
from ecjax.console import say
from ecjax.display import CELL, LINE, displayed, without_secrets
from ecjax.errors import UserError
from ecjax.plotting.saving import save_png
from ecjax.plotting.texts import LABEL, NAME, entry
from ecjax.studies.spine.printed import print_table

NASTY = [
    "[/bold]",
    "[red]",
    "\x1b[31mred\x07",
    r"$\frac{$",
    "a$b$c",
    "_x",
    "a\u202eb",
    "n\nx",
    "x" * 100_000,
    "\\",
]
texts = st.one_of(st.text(), st.text("[]/$\\_{}^ab\x1b\u202e\n\u2028\ud800"), st.sampled_from(NASTY))


def nasty(test):
    for text in NASTY:
        test = example(text)(test)
    return test


@nasty
@given(texts)
def test_displayed_is_one_printable_short_line(text):
    shown = displayed(text, CELL)
    assert len(shown) <= CELL
    assert shown.isprintable()
    shown.encode()
    if text.isprintable() and len(text) <= CELL and "://" not in text:
        assert shown == text


@given(
    st.text(string.ascii_letters + "!$&'()*+,;=:@", min_size=1),
    st.text(string.ascii_letters + "&=%.", min_size=1),
)
def test_addresses_have_neither_user_nor_query(user, query):
    address = f"s3://{user}@host/bucket/x?{query}"
    assert without_secrets(address).startswith("s3://host/bucket/x")
    assert query.rstrip(".") not in without_secrets(address).removeprefix("s3://host/bucket/x")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://user:pass@host/b/x?token=1&y=2", "s3://host/b/x"),
        ("out=s3://u:p@h/b?t=1: is a file", "out=s3://h/b: is a file"),
        ("found 's3://u:p@h/b?t=1'; allowed: c", "found 's3://h/b'; allowed: c"),
        ("[s3://a:b@c/d,gs://e:f@g/h]", "[s3://c/d,gs://g/h]"),
        ("a?b=c user@host", "a?b=c user@host"),
    ],
)
def test_addresses_in_messages(text, shown):
    assert displayed(text) == shown


@nasty
@given(texts)
def test_errors_are_one_line(text):
    message = str(UserError(f"id {text}: found {text!r}"))
    assert message.isprintable()
    assert len(message) <= LINE


@nasty
@settings(deadline=None)
@given(texts)
def test_tables_lines_and_log_lines_show_text_as_it_is(text):
    for writes in (_table, _line, _log_line):
        stream = io.StringIO()
        writes(Console(file=stream, width=300, force_terminal=False), text)
        printed = stream.getvalue().replace("\n", "")
        assert printed.isprintable()
        if len(text) <= CELL and text.strip() and text.isprintable():
            assert text.strip() in printed


def _table(console, text):
    print_table(console, text, ("id", "id 2"), [(text, "1")], words=("id",))


def _line(console, text):
    say(console, f"files: {text}", "red")


def _log_line(console, text):
    record = logging.LogRecord("ecjax", logging.INFO, "", 0, "read %s", (text,), None)
    handler = consoles.log_handler(console)
    handler.handle(record)


def test_figures_show_ids_without_math(tmp_path):
    figure = Figure(figsize=(12, 9), layout="constrained")
    figure.add_subplot(1, 2, 2).barh(NASTY, 1.0)
    axes = figure.add_subplot(2, 2, 1)
    below = figure.add_subplot(2, 2, 3, sharex=axes)
    for place, text in enumerate(NASTY):
        axes.plot([1, 2], [place, 1], label=entry(text))
    axes.legend()
    axes.set(title=NASTY[3], xlabel=NASTY[4], ylabel=NASTY[0], yscale="log")
    axes.set_xticks(range(len(NASTY)), NASTY)
    figure.suptitle(NASTY[8])
    for _ in range(2):
        save_png(figure, tmp_path / "figures" / "x.png")
    assert [label.get_text() for label in below.get_xticklabels()][4] == r"a\$b\$c"
    assert axes.get_xlabel() == NASTY[4]
    assert len(figure.get_suptitle()) == LABEL
    assert [text.get_text() for text in axes.get_legend().get_texts()][5] == " _x"
    assert all(len(label.get_text()) <= NAME + 2 for label in axes.get_xticklabels())
    assert "\\mathdefault" in axes.get_yticklabels()[0].get_text()  # powers of ten stay powers

"""Tables on the console: text from data is text."""

import re
from io import StringIO

import pandas as pd
from rich.console import Console

from ecjax.studies.spine.printed import dollars, number, print_errors, print_table


def console():
    return Console(file=StringIO(), width=60)


def test_markup_in_data_is_printed_as_it_is():
    out = console()
    print_table(
        out, "in [red]a/b[/red]", ["name", "mean s"], [["[bold]x[/]", "1"], ["y", "22"]], ["name"], [0, 1]
    )
    text = out.file.getvalue()
    assert "in [red]a/b[/red]" in text and "[bold]x[/]" in text
    lines = text.splitlines()
    (head,) = [line for line in lines if "mean s" in line]
    assert head.index("name") < head.index("mean s")
    assert any(line.endswith("22") or line.rstrip().endswith("22") for line in lines)


def test_each_error_is_printed_once_with_its_count():
    out = console()
    print_errors(pd.DataFrame({"error": ["no [room]", None, "no [room]", "late"]}), out)
    assert out.file.getvalue().splitlines() == ["2 runs: no [room]", "1 run: late"]


def test_numbers_that_are_not_there_are_empty_cells():
    assert [number(value) for value in (None, float("nan"), 1.23456)] == ["", "", "1.235"]


def test_equal_rows_are_one_with_their_count():
    out = console()
    rows = [["a", "1", "x"], ["a", "1", "y"], ["b", "1", "x"]]
    print_table(out, "t", ["name", "mean s", "solved by"], rows, ["name"], least=["solved by"])
    assert [line.split() for line in out.file.getvalue().splitlines()][4:7] == rows
    narrow = Console(file=StringIO(), width=22)
    print_table(
        narrow, "t", ["name", "mean s", "solved by"], rows, ["name"], least=["solved by"], dataset="runs"
    )
    lines = [line.split() for line in narrow.file.getvalue().splitlines()]
    assert ["name", "mean", "s", "runs"] in lines and ["a", "1", "2"] in lines and ["b", "1", "1"] in lines
    said = " ".join(narrow.file.getvalue().split())
    assert "not shown in 22 columns: solved by (COLUMNS=26, or dataset runs)" in said


def test_what_fits_nowhere_is_a_paragraph_per_row():
    out = Console(file=StringIO(), width=20)
    print_table(out, "t", ["a\nname", "long-\ner number"], [["x" * 60, "123456789"], ["y", "1"]], ["a\nname"])
    text = out.file.getvalue()
    assert "longer number" in text and "123456789" in text and max(map(len, text.splitlines())) <= 20


def test_the_width_that_is_told_is_enough():
    rows = [["a", "1", "123456"]]
    narrow = Console(file=StringIO(), width=18)
    print_table(narrow, "t", ["name", "mean s", "solved by"], rows, ["name"], least=["solved by"])
    (needed,) = re.findall(r"COLUMNS=(\d+)", narrow.file.getvalue())
    for width, shown in ((int(needed), True), (int(needed) - 1, False)):
        out = Console(file=StringIO(), width=width)
        print_table(out, "t", ["name", "mean s", "solved by"], rows, ["name"], least=["solved by"])
        assert ("123456" in out.file.getvalue()) == shown


def test_little_money_is_not_none():
    cells = [dollars(value) for value in (None, float("nan"), 0.004, 12.345, 123.4, 1234567.8)]
    assert cells == ["", "", "0.004", "12.3", "123", "1,234,568"]

"""Tables on the console: text from data is text."""

from io import StringIO

import pandas as pd
from rich.console import Console

from ecjax.studies.spine.printed import number, print_errors, print_table


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

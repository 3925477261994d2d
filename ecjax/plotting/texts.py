"""The texts of a figure, whatever ids they hold: printable, short, and never mathematics."""

from matplotlib.axis import Axis
from matplotlib.category import StrCategoryFormatter
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FuncFormatter

from ecjax.display import displayed

LABEL, NAME = 100, 40  # characters of a line, and of a name at a tick or in a legend


def plain_texts(figure: Figure) -> None:
    """Make all texts of a figure such as can be drawn; ticks of numbers keep their powers of ten."""
    ticks: set[Text] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            _plain_ticks(axis)
            # not by get_ticklabels, which places the ticks and measures their words, as drawing does again
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                ticks.update((tick.label1, tick.label2))
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if text not in ticks:
            text.set_parse_math(False)
            text.set_text("\n".join(displayed(line, LABEL) for line in text.get_text().split("\n")))


def _plain_ticks(axis: Axis) -> None:
    """The words at ticks; a tick label is always searched for mathematics, so dollars are marked as such."""
    formatter = axis.get_major_formatter()
    words = isinstance(formatter, FuncFormatter | FixedFormatter | StrCategoryFormatter)
    # panels that share an axis share its formatter
    if words and not isinstance(formatter, _PlainTicks):
        axis.set_major_formatter(_PlainTicks(formatter))


class _PlainTicks(FuncFormatter):
    """Words at ticks, as another formatter has them."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The words at a place."""
        return displayed(self.func(x, pos), NAME).replace("$", r"\$")


def entry(name: object) -> str:
    """A name in a legend, which would leave out what begins with an underscore."""
    text = displayed(name, NAME)
    return f" {text}" if text.startswith("_") else text

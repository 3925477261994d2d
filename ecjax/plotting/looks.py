"""How lines and bars look: colours that colour-blind people tell apart, dashes, marks and widths."""

from typing import Any

from matplotlib.colors import to_rgb

# Okabe and Ito's, without black and yellow, which figures have for other things or a white page swallows; then those of
# Paul Tol that differ from them in lightness
COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#7F7F7F",
    "#332288",
    "#999933",
    "#882255",
    "#88CCEE",
    "#117733",
    "#DDCC77",
    "#AA4499",
    "#44AA99",
    "#661100",
    "#CC6677",
    "#6699CC",
    "#BBBBBB",
    "#000000",
)
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
_WIDEST, _THINNEST = 2.8, 1.2  # points
_LARGEST, _SMALLEST = 6.5, 3.5


def tapering(place: int, count: int) -> dict[str, Any]:
    """Width, mark and its size of one of so many lines: later ones, which are drawn above, hide no earlier one."""
    along = place / max(count - 1, 1)
    return {
        "linewidth": _WIDEST + along * (_THINNEST - _WIDEST) if count > 1 else 1.6,
        "marker": MARKS[place % len(MARKS)],
        "markersize": _LARGEST + along * (_SMALLEST - _LARGEST) if count > 1 else 4.5,
    }


def line_look(place: int, count: int) -> dict[str, Any]:
    """All of the look of one of so many lines but its colour: as ``tapering``, and its dashes."""
    return {"linestyle": DASHES[place % len(DASHES)], **tapering(place, count)}


def ink(colour: str) -> str:
    """Black or white: which of them is readable on a colour."""
    red, green, blue = to_rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"

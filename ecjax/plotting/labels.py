"""Words beside points that hide neither each other nor the points."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

# offset in points, and how words are aligned to it: left below, right above, then further ones
_PLACES = (
    ((-6, -9), "right", "center"),
    ((6, 9), "left", "center"),
    ((0, -12), "center", "center"),
    ((0, 12), "center", "center"),
    ((8, 0), "left", "center"),
    ((-8, 0), "right", "center"),
    ((6, -9), "left", "center"),
    ((-6, 9), "right", "center"),
)
_HALF = 4.0  # of a point, pixels at the figure's resolution


def label_points(
    figure: Figure,
    axes: Axes,
    points: Sequence[tuple[float, float]],
    words: Sequence[str],
    others: Sequence[tuple[float, float]] = (),
) -> None:
    """Write words beside points, at the first of eight places that is free; words without a free place are left out.

    Args:
        figure: with all else drawn into it.
        axes: of the points.
        points: in the units of the axes.
        words: one for each.
        others: further points that no words may hide.
    """
    figure.draw_without_rendering()
    frame = axes.get_window_extent()
    pixels = axes.transData.transform([*points, *others])
    taken = [Bbox.from_extents(x - _HALF, y - _HALF, x + _HALF, y + _HALF) for x, y in pixels]
    legend = axes.get_legend()
    if legend is not None:
        taken.append(legend.get_window_extent())
    for point, text in zip(points, words, strict=True):
        for offset, across, up in _PLACES:
            note = axes.annotate(
                text, point, xytext=offset, textcoords="offset points", fontsize=8, ha=across, va=up
            )
            note.set_in_layout(False)
            box = note.get_window_extent()
            if frame.containsx(box.x0) and frame.containsx(box.x1) and not any(map(box.overlaps, taken)):
                taken.append(box)
                break
            note.remove()

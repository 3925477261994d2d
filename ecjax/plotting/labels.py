"""Words beside points that hide neither each other nor the points."""

from collections.abc import Sequence

import numpy as np
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
    figure: Figure, axes: Axes, points: Sequence[tuple[float, float]], words: Sequence[str]
) -> None:
    """Write words beside points, at the first of eight places that is free; words without a free place are left out.

    Args:
        figure: with all else drawn into it.
        axes: of the points.
        points: in the units of the axes.
        words: one for each.
    """
    figure.draw_without_rendering()
    frame = axes.get_window_extent()
    taken = _lines(axes)
    for point, text in zip(points, words, strict=True):
        for offset, across, up in _PLACES:
            note = axes.annotate(
                text, point, xytext=offset, textcoords="offset points", fontsize=8, ha=across, va=up
            )
            note.set_in_layout(False)
            box = note.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(map(box.overlaps, taken)):
                taken.append(box)
                break
            note.remove()


def _lines(axes: Axes) -> list[Bbox]:
    """Small boxes, in pixels, along the lines and points that are drawn."""
    boxes = []
    for line in axes.get_lines():
        pixels = line.get_transform().transform(np.asarray(line.get_xydata(), float))
        pixels = pixels[np.isfinite(pixels).all(axis=1)]
        for place, (x, y) in enumerate(pixels):
            boxes.append(Bbox.from_extents(x - _HALF, y - _HALF, x + _HALF, y + _HALF))
            if place + 1 < len(pixels) and line.get_linestyle() != "None":
                steps = int(np.hypot(*(pixels[place + 1] - pixels[place])) / _HALF) + 2
                for x, y in np.linspace(pixels[place], pixels[place + 1], steps)[1:-1]:
                    boxes.append(Bbox.from_extents(x - 1, y - 1, x + 1, y + 1))
    return boxes

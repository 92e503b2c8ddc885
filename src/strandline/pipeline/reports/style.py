"""The look of every figure, and how a figure becomes PNG bytes.

Why:    figures of different jobs stand on one page; the same input gives the same bytes.
How:    matplotlib's object interface, without `pyplot` and so without global state or a display.
        Colours are distinct for colour-blind readers.
Source: Okabe and Ito, "Color Universal Design" (2008), for the colours."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""One for each series, in this order; then again from the first."""
MUTED = "#8a8f98"
"""Guides, limits and notes."""
HEAT_MAP = "cividis"
DPI = 110
WIDTH_INCHES = 7.2
ROW_INCHES = 0.42
"""The height of one line of a chart that lists things."""

_STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#c4c8ce",
    "axes.grid": True,
    "axes.labelcolor": "#33373d",
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": "#e6e8eb",
    "legend.fontsize": 8,
    "legend.frameon": False,
    "xtick.color": "#33373d",
    "ytick.color": "#33373d",
}


class Chart:
    """A figure with one pair of axes."""

    def __init__(self, figure: Figure, axes: Axes) -> None:
        self.figure = figure
        self.axes = axes

    def png(self) -> bytes:
        """The figure as a PNG file: the same input gives the same bytes."""
        found = BytesIO()
        with rc_context(_STYLE):
            self.figure.savefig(found, format="png", dpi=DPI, metadata={"Software": None})
        return found.getvalue()


@contextmanager
def new_chart(title: str, *, height_inches: float = 3.2) -> Iterator[Chart]:
    """A chart to draw on within the block, in the common style."""
    with rc_context(_STYLE):
        figure = Figure(figsize=(WIDTH_INCHES, height_inches), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        axes.set_title(title)
        yield Chart(figure, axes)


def colour_of(position: int) -> str:
    """The colour of the series at this position."""
    return COLOURS[position % len(COLOURS)]

"""Plots as SVG, legible on light and on dark pages."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from tests.benchmarks.report import Plot

# In between: visible on white and on black.
INK = "#808080"
COLORS = ("#2f81f7", "#e3702d", "#2da44e", "#a371f7")
MARKERS = "os^D"

# The same figures give the same file.
STYLE = {"svg.hashsalt": "almanac", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 11}


def draw(plot: Plot, file: Path) -> None:
    """Write one plot; its background is the page's."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        for number, (label, points) in enumerate(plot.lines.items()):
            marker = MARKERS[number] if len(points) < 20 else None
            color = COLORS[number]
            axes.plot(*zip(*points, strict=True), color=color, marker=marker, label=label, linewidth=2)
        axes.set_xscale("log" if plot.logarithmic[0] else "linear")
        axes.set_yscale("log" if plot.logarithmic[1] else "linear")
        if not plot.logarithmic[1]:
            axes.set_ylim(bottom=0)
        axes.set_title(plot.title, color=INK)
        axes.set_xlabel(plot.x, color=INK)
        axes.set_ylabel(plot.y, color=INK)
        axes.tick_params(which="both", colors=INK)
        axes.grid(color=INK, alpha=0.3)
        axes.spines[:].set_color(INK)
        if len(plot.lines) > 1:
            axes.legend(labelcolor=INK, facecolor="none", edgecolor=INK)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})

"""Pictures of results: the reliability diagram, the cumulative residual with its error shaded, and the path of sets.

Results are computed elsewhere and drawn here. matplotlib is imported only when a figure has to be made.
"""

import textwrap
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polycal._typing import Float64s
from polycal._validation import check_integer
from polycal.families.questions import SubsetWitness
from polycal.measures.binned import ReliabilityCurve
from polycal.measures.smooth import SmoothCurve, drawn_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From the palette of Okabe and Ito, which colour-blind readers can tell apart. In grey print the curves differ
# by width, the area by its shade and the bracket by its shape.
_BLUE, _ORANGE, _VERMILLION, _GREY = "#0072B2", "#E69F00", "#D55E00", "0.7"

# The strip below the reliability diagram, in units of the y axis.
_STRIP_LOW, _STRIP_HIGH, _MARGIN = -0.3, -0.1, 0.03

_SLOPES = {
    r"$\searrow$": "over-confident: predicts too much",
    r"$\nearrow$": "under-confident: predicts too little",
}

_TITLE_LIMIT = 200
_JOINERS = "\u200c\u200d"  # the only invisible characters that spelling needs (Persian, Hindi, emoji)
_TEX = str.maketrans(
    {c: f"\\{c}" for c in "{}$&#_%"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
)


def plot_reliability(
    curve: ReliabilityCurve, *, ax: "Axes | None" = None, level: float = 0.95, title: str | None = None
) -> "Axes":
    """Draw a reliability diagram: how often "yes" happened against how often it was predicted.

    Points above the diagonal: the event is more frequent than predicted; below: less frequent. The strip
    at the bottom shows how much of the sample each point stands for.

    Parameters
    ----------
    curve : ReliabilityCurve
        The result to draw, from `reliability_curve`.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure is made.
    level : float, default 0.95
        Level of the error bars, which are Wilson intervals (`ReliabilityCurve.interval`).
    title : str, optional
        By default the question in words; "" for none.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    plot_cumulative : The picture that needs no bins.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import polycal as pc
    >>> curve = pc.reliability_curve([0, 1, 1, 1], [0.1, 0.2, 0.8, 0.9], n_bins=2)
    >>> ax = pc.plots.plot_reliability(curve, ax=Figure().subplots())
    >>> ax.get_title()
    'Is it 1?'
    """
    _check_result(curve, ReliabilityCurve)
    low, high = curve.interval(level)
    axes = _new_axes() if ax is None else ax
    points = axes.errorbar(
        curve.predicted,
        curve.frequency,
        yerr=[curve.frequency - low, high - curve.frequency],
        fmt="o",
        markersize=0.5 * _font_size(axes),
        capsize=0.25 * _font_size(axes),
        color=_BLUE,
        label=_literal(f"observed ({100 * level:g}% interval)", axes),
    )
    (diagonal,) = axes.plot(
        [0, 1], [0, 1], linestyle="--", linewidth=1, color=_ink(axes), label="perfect calibration"
    )
    bars = _draw_strip(axes, curve)
    _label(axes, "Observed frequency", title, curve.question)
    limits = _STRIP_LOW - _MARGIN, 1 + _MARGIN
    axes.set(xlim=(-_MARGIN, 1 + _MARGIN), yticks=np.linspace(0, 1, 6), ylim=limits, aspect="equal")
    strip = (_STRIP_HIGH - limits[0]) / (limits[1] - limits[0])
    axes.legend(handles=[points, diagonal, bars], fontsize="small", bbox_to_anchor=(0, strip, 1, 1 - strip))
    return axes


def plot_cumulative(
    curve: SmoothCurve, *, ax: "Axes | None" = None, max_points: int = 4000, title: str | None = None
) -> "Axes":
    """Draw the cumulative residual curve F, the nearest monotone curve S, and the error between them.

    No bins and no bandwidth: every prediction is in the picture. Where F falls, the event is less frequent
    than predicted (over-confident); where it rises, more frequent (under-confident); where it is
    level, the predictions are right. The smooth calibration error is the height ``|R|`` of the bracket at
    the end, plus the shaded area.

    Parameters
    ----------
    curve : SmoothCurve
        The result to draw, from `smooth_calibration_curve`.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure is made.
    max_points : int, default 4000
        Longer curves are thinned to at most this many points: of every narrow column of the picture the
        first, last, lowest and highest point stay, so that the drawing looks the same.
    title : str, optional
        By default the question in words; "" for none.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    plot_reliability : The same question in bins.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import polycal as pc
    >>> curve = pc.smooth_calibration_curve([1, 0, 1], [0.2, 0.5, 0.9])
    >>> ax = pc.plots.plot_cumulative(curve, ax=Figure().subplots())
    >>> ax.get_xlabel()
    'Predicted probability'
    """
    _check_result(curve, SmoothCurve)
    check_integer(max_points, "max_points", minimum=4)
    x, F, S = drawn_points(curve, max_points)
    axes = _new_axes() if ax is None else ax
    size, ink = _font_size(axes), _ink(axes)
    error, R, area = _summands(curve)
    axes.axhline(0, linewidth=0.8, color=ink, alpha=0.5)
    axes.step(x, F, where="post", color=_BLUE, zorder=2.2, label="$F$: cumulative residual")
    axes.step(x, S, where="post", color=_GREY, linewidth=0.4 * size, label="$S$: nearest monotone curve")
    axes.fill_between(x, F, S, step="post", color=_ORANGE, alpha=0.4, linewidth=0, label=f"area = {area}")
    _draw_bracket(axes, x, F[-1], f"$R$ = {R}: mean residual")
    arrow = {"linestyle": "", "markersize": 0.8 * size, "markeredgewidth": 0, "color": ink}
    for marker, meaning in _SLOPES.items():
        axes.plot([], [], marker=marker, label=meaning, **arrow)
    _label(axes, "Sum of (outcome − predicted)\nup to here, per sample", title, curve.question)
    _place_legend(axes, f"smCE = $|R|$ + area = {error}", x, np.minimum(F, S), np.maximum(F, S))
    return axes


def plot_path(path: Sequence[Any], *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw how large an error is proven against the number of classes that a question names.

    If the curve is level from few classes on, these are the trouble; if it rises to the end, the error is spread out.

    Parameters
    ----------
    path : sequence of Finding
        `Audit.path`: sets of growing numbers of classes.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure is made.
    title : str, optional
        By default the largest error that is proven; "" for none.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import polycal as pc
    >>> example = pc.datasets.load_fashion("evaluation").take(slice(0, 2000))
    >>> audit = pc.audit(example.labels, example.proba)
    >>> ax = pc.plots.plot_path(audit.path, ax=Figure().subplots())
    >>> ax.get_xlabel()
    'Classes in the question'
    """
    witnesses = [getattr(finding, "witness", None) for finding in path]
    if not witnesses or not all(isinstance(witness, SubsetWitness) for witness in witnesses):
        raise TypeError("path must be a sequence of findings about sets of classes, such as audit.path.")
    axes = _new_axes() if ax is None else ax
    sizes = [len(finding.witness.subset) for finding in path]
    low = np.array([finding.at_least for finding in path])
    high = np.maximum([finding.certificate.estimate for finding in path], low)
    axes.vlines(
        sizes,
        low,
        high,
        colors=_ORANGE,
        alpha=0.6,
        linewidth=0.3 * _font_size(axes),
        label="up to the estimate",
    )
    axes.plot(sizes, low, marker="o", color=_BLUE, label="at least (proven on held-out rows)")
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set(xlabel="Classes in the question", ylabel="Calibration error")
    axes.set_ylim(bottom=0)
    axes.set_title(f"At least {low.max():.4f}" if title is None else title)
    axes.legend(fontsize="small")
    return axes


def _draw_strip(axes: "Axes", curve: ReliabilityCurve) -> Any:
    """Under every point a bar for its share of the sample; the highest fills the strip and sets its scale."""
    highest = curve.mass.max()
    top = _STRIP_LOW + (_STRIP_HIGH - _STRIP_LOW) * curve.mass / highest
    width = 0.4 * _font_size(axes)
    bars = axes.vlines(
        curve.predicted, _STRIP_LOW, top, linewidth=width, colors=_GREY, label="share of the sample"
    )
    for y, share in ((_STRIP_LOW, "0%"), (_STRIP_HIGH, f"{highest:.0%}")):
        # As text, since tick labels would be common to all panels that share their y axis.
        axes.annotate(
            _literal(share, axes),
            xy=(0, y),
            xycoords=axes.get_yaxis_transform(),
            xytext=(-4, 0),
            textcoords="offset points",
            fontsize="small",
            horizontalalignment="right",
            verticalalignment="center",
            annotation_clip=False,
        )
    return bars


def _draw_bracket(axes: "Axes", x: Float64s, R: float, label: str) -> None:
    """The mean residual as a bracket from 0 to R, right of the curves."""
    width = x[-1] - x[0]
    place = x[-1] + 0.03 * width
    axes.plot(
        [place, place], [0, R], marker="_", markersize=0.8 * _font_size(axes), color=_VERMILLION, label=label
    )
    axes.set_xlim(x[0] - 0.02 * width, x[-1] + 0.06 * width)


def _summands(curve: SmoothCurve) -> tuple[str, str, str]:
    """The error, R and the area in figures, to the third digit of the error."""
    error, R = curve.value, curve.mean_residual
    digits = 3 if error == 0 else max(3, 2 - int(np.floor(np.log10(error))))
    signed = f"{R:+z.{digits}f}".replace("-", "−")
    return f"{error:.{digits}f}", signed, f"{error - abs(R):z.{digits}f}"


def _place_legend(axes: "Axes", title: str, x: Float64s, low: Float64s, high: Float64s) -> None:
    """Put the legend into the corner where the y axis has to grow least to keep it off the steps low to high."""
    left, right = axes.get_xlim()
    # Room for the legend: from the left edge of the picture to the end of the curves, where the bracket stands.
    room = (0, 0, (x[-1] - left) / (right - left), 1)
    small = {"fontsize": "small", "title_fontsize": "small"}
    legend = axes.legend(title=title, alignment="left", bbox_to_anchor=room, **small)
    box, frame = legend.get_window_extent(), axes.get_window_extent()
    height = min(0.6, 1.1 * box.height / frame.height)
    width = 1.1 * box.width / frame.width * (right - left)
    bottom, top = axes.get_ylim()
    choices = {}
    for side, start, stop in (("right", x[-1] - width, x[-1]), ("left", left, left + width)):
        beside = (x < stop) & (np.append(x[1:], x[-1]) > start)
        choices[f"upper {side}"] = (high[beside].max() - height * bottom) / (1 - height) - top
        choices[f"lower {side}"] = bottom - (low[beside].min() - height * top) / (1 - height)
    corner = min(choices, key=lambda place: max(0.0, choices[place]))
    legend.set_loc(corner)
    if choices[corner] > 0:
        # Through the data limits, not the view's: panels that share their y axis stay in step.
        reach = top + choices[corner] if corner.startswith("upper") else bottom - choices[corner]
        axes.update_datalim([(x[0], reach)], updatex=False)
        axes.autoscale_view(scalex=False)


def _label(axes: "Axes", ylabel: str, title: str | None, question: str) -> None:
    """Axis labels, and the title: the caller's as it is, or the question with its class names made harmless."""
    axes.set(xlabel="Predicted probability", ylabel=ylabel)
    if title is not None:
        axes.set_title(title)
    elif question:
        inches = axes.get_window_extent().width / axes.figure.dpi
        n_letters = int(72 * inches / (0.5 * axes.title.get_fontproperties().get_size_in_points()))
        axes.set_title(_literal(_wrapped(question, max(24, n_letters)), axes))


def _wrapped(text: str, width: int) -> str:
    """Text in lines of about ``width`` letters, without control characters, cut where it is very long."""
    visible = "".join(" " if unicodedata.category(c)[0] == "C" and c not in _JOINERS else c for c in text)
    line = " ".join(visible.split())
    if len(line) > _TITLE_LIMIT:
        line = line[: _TITLE_LIMIT - 1] + "…"
    return textwrap.fill(line[:1].upper() + line[1:], width)


def _literal(text: str, axes: "Axes") -> str:
    """Text that matplotlib prints as it is: class names are no formulas, and no LaTeX commands."""
    return text.translate(_TEX) if axes.title.get_usetex() else text.replace("$", r"\$")


def _ink(axes: "Axes") -> Any:
    """The colour of labels, which shows on the background of any style."""
    return axes.xaxis.label.get_color()


def _font_size(axes: "Axes") -> float:
    """The size of labels in points: marks scale with it."""
    return float(axes.xaxis.label.get_fontproperties().get_size_in_points())


def _check_result(curve: Any, kind: type) -> None:
    """The two result classes are easily confused."""
    if not isinstance(curve, kind):
        raise TypeError(f"curve must be a {kind.__name__}; got {type(curve).__name__}.")


def _new_axes() -> "Axes":
    """The only Axes of a new figure."""
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'polycal[plot]'.") from error
    axes: Axes = plt.subplots(layout="constrained")[1]
    return axes

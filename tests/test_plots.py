import io
import itertools
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import polycal as pc
from polycal.measures.smooth import _kept, projected_curve
from polycal.plots import plot_cumulative, plot_reliability

mpl.use("Agg")

HOSTILE = [
    "$",
    "$$",
    "$x$",
    r"$\frac{1}{",
    r"\$5\$",
    r"\\$",
    r"\input{secret}",
    "a_b^c{d}~e&f#g",
    "100%s {0} {name}",
    "<b>bold</b> &amp;",
    "two\nlines\tand\x00nul\x1b[31m",
    "\u202ereversed",
    "x" * 5000,
]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


def binary_sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    predicted = rng.random(n)
    return rng.random(n) < predicted**1.5, predicted


def draw_reliability(*data, ax=None, title=None, **kwargs):
    return plot_reliability(pc.reliability_curve(*data, **kwargs), ax=ax, title=title)


def draw_cumulative(*data, ax=None, title=None, **kwargs):
    return plot_cumulative(pc.smooth_calibration_curve(*data, **kwargs), ax=ax, title=title)


both = pytest.mark.parametrize("draw", [draw_reliability, draw_cumulative])


def artist(ax, start):
    """The one line or collection whose legend entry starts with these words."""
    (found,) = [a for a in (*ax.lines, *ax.collections) if str(a.get_label()).startswith(start)]
    return found


def legend_texts(ax):
    legend = ax.get_legend()
    return [legend.get_title().get_text(), *(text.get_text() for text in legend.get_texts())]


# Manners


@both
def test_given_axes_are_used(draw, ax):
    before = plt.get_fignums()
    assert draw(*binary_sample(), ax=ax) is ax
    assert plt.get_fignums() == before
    assert ax.figure.axes == [ax]


@both
def test_current_axes_stay_current(draw, ax):
    current = plt.subplots()[1]
    draw(*binary_sample(), ax=ax)
    assert plt.gca() is current


@both
def test_new_figure_without_axes(draw):
    ax = draw(*binary_sample())
    assert plt.get_fignums() == [ax.figure.number]
    ax.figure.canvas.draw()


@both
def test_rc_params_stay(draw, ax):
    before = mpl.rcParams.copy()
    draw(*binary_sample(), ax=ax)
    assert mpl.rcParams == before


@both
@pytest.mark.parametrize("fmt", ["png", "pdf", "svg"])
def test_saves(draw, fmt, ax):
    draw(*binary_sample(), ax=ax).figure.savefig(io.BytesIO(), format=fmt)


@both
def test_follows_the_style(draw):
    with plt.style.context("dark_background"), plt.rc_context({"font.size": 17}):
        ax = draw(*binary_sample(), ax=Figure().subplots())
        assert ax.xaxis.label.get_size() == 17
        assert ax.get_legend().get_texts()[0].get_size() == pytest.approx(17 * 0.833)
    black = [line for line in ax.lines if mpl.colors.to_hex(line.get_color()) == "#000000"]
    assert not black


@both
def test_axis_labels_and_legend(draw, ax):
    draw(*binary_sample(), ax=ax)
    assert ax.get_xlabel() == "Predicted probability"
    assert ax.get_ylabel()
    assert len(legend_texts(ax)) >= 4


@both
def test_draws_in_a_subfigure_with_weights(draw):
    figure = Figure(layout="constrained")
    ax = figure.subfigures(1, 2)[1].subplots()
    draw(*binary_sample(), ax=ax, sample_weight=np.arange(300))
    figure.canvas.draw()


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_import_is_lazy():
    done = run("import sys, polycal.plots; sys.exit('matplotlib' in sys.modules)")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "draw", ["plot_reliability(pc.reliability_curve", "plot_cumulative(pc.smooth_calibration_curve"]
)
def test_missing_matplotlib_says_what_to_install(draw):
    done = run(
        "import sys; sys.modules['matplotlib'] = None\n"
        "import polycal as pc\nfrom polycal.plots import *\n"
        f"{draw}([0, 1], [0.2, 0.9]))"
    )
    assert done.returncode == 1
    assert "ImportError: Plots need matplotlib: pip install 'polycal[plot]'" in done.stderr


def test_wrong_results_are_refused():
    with pytest.raises(TypeError, match="must be a ReliabilityCurve; got SmoothCurve"):
        plot_reliability(pc.smooth_calibration_curve(*binary_sample()))
    with pytest.raises(TypeError, match="must be a SmoothCurve; got ReliabilityCurve"):
        plot_cumulative(pc.reliability_curve(*binary_sample()))
    with pytest.raises(ValueError, match="max_points must be an integer, at least 4"):
        plot_cumulative(pc.smooth_calibration_curve(*binary_sample()), max_points=3)
    with pytest.raises(ValueError, match="level must be a number"):
        plot_reliability(pc.reliability_curve(*binary_sample()), level=95)
    assert not plt.get_fignums()


# Titles


@both
def test_title(draw):
    data = binary_sample()
    assert draw(*data, ax=Figure().subplots()).get_title() == "Is it 1?"
    assert draw(*data, ax=Figure().subplots(), title="").get_title() == ""
    assert draw(*data, ax=Figure().subplots(), title=r"$\alpha$").get_title() == r"$\alpha$"


@both
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_draw(draw, name, ax):
    draw(*binary_sample(), ax=ax, class_names=["no", name])
    ax.figure.savefig(io.BytesIO(), format="png")
    ax.figure.savefig(io.BytesIO(), format="pdf")
    assert len(ax.get_title()) < 300


@pytest.mark.parametrize("name", ["$", "$x$", r"\$5\$", r"\\$", "a_b^c{d}~e#g"])
def test_names_are_printed_as_they_are(name, ax):
    draw_reliability(*binary_sample(), ax=ax, class_names=["no", name])
    page = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(page, format="svg")
    assert f">Is it {name}?</text>" in page.getvalue()


def test_names_are_no_latex_commands(ax):
    ax.title.set_usetex(True)
    draw_reliability(*binary_sample(), ax=ax, class_names=["no", r"\input{x}_$%^~"])
    assert ax.get_title() == r"Is it \textbackslash{}input\{x\}\_\$\%\textasciicircum{}\textasciitilde{}?"


def test_control_characters_leave_the_title(ax):
    draw_reliability(*binary_sample(), ax=ax, class_names=["no", "a\n\x00\u202eb\u200dc"])
    assert ax.get_title() == "Is it a b\u200dc?"


def test_long_titles_are_wrapped():
    narrow, wide = Figure(figsize=(3, 3)).subplots(), Figure(figsize=(20, 3)).subplots()
    for ax in (narrow, wide):
        draw_reliability(
            *binary_sample(), ax=ax, class_names=["no", "a rather long name of a class with many words"]
        )
    assert "\n" in narrow.get_title()
    assert "\n" not in wide.get_title()


# The reliability diagram


def test_reliability_draws_the_curve(ax):
    curve = pc.reliability_curve(*binary_sample(), n_bins=7)
    plot_reliability(curve, ax=ax)
    (points,) = ax.containers
    line, _, (bars,) = points.lines
    np.testing.assert_array_equal(line.get_xdata(), curve.predicted)
    np.testing.assert_array_equal(line.get_ydata(), curve.frequency)
    low, high = curve.interval()
    ends = np.array(bars.get_segments())[:, :, 1]
    np.testing.assert_allclose(ends, np.column_stack([low, high]), atol=1e-15)
    np.testing.assert_array_equal(artist(ax, "perfect").get_xydata(), [[0, 0], [1, 1]])
    assert ax.get_legend().get_texts()[0].get_text() == "observed (95% interval)"


def test_reliability_level(ax):
    curve = pc.reliability_curve(*binary_sample())
    plot_reliability(curve, ax=ax, level=0.5)
    ends = np.array(ax.containers[0].lines[2][0].get_segments())[:, :, 1]
    np.testing.assert_allclose(ends, np.column_stack(curve.interval(0.5)), atol=1e-15)
    assert "observed (50% interval)" in legend_texts(ax)


def test_reliability_strip_shows_the_mass(ax):
    curve = pc.reliability_curve([0] * 6 + [1, 1, 1], [0.1] * 6 + [0.5, 0.9, 0.9], n_bins=5)
    plot_reliability(curve, ax=ax)
    segments = np.array(artist(ax, "share").get_segments())
    height = segments[:, 1, 1] - segments[:, 0, 1]
    np.testing.assert_allclose(height / height.sum(), curve.mass)
    np.testing.assert_allclose(segments[:, 0, 0], curve.predicted)
    assert segments[:, :, 1].max() < 0 <= curve.frequency.min()
    assert [text.get_text() for text in ax.texts] == ["0%", "67%"]


def test_reliability_panels_with_a_common_axis_keep_their_scales():
    left, right = Figure().subplots(1, 2, sharey=True)
    draw_reliability([0, 1], [0.1, 0.9], ax=left)
    draw_reliability([0, 1, 1, 1], [0.1, 0.3, 0.6, 0.9], ax=right)
    assert [axes.texts[1].get_text() for axes in (left, right)] == ["50%", "25%"]


def test_reliability_legend_keeps_off_the_strip():
    ax = draw_reliability([0] * 6 + [1, 1, 1], [0.1] * 6 + [0.5, 0.9, 0.9])
    ax.figure.canvas.draw()
    lowest = ax.transData.inverted().transform(ax.get_legend().get_window_extent())[0, 1]
    assert lowest > np.max(artist(ax, "share").get_segments()[0][1][1])


# The cumulative residual


def drawn_area(ax):
    F, S = artist(ax, "$F$"), artist(ax, "$S$")
    return np.diff(F.get_xdata()) @ np.abs(F.get_ydata() - S.get_ydata())[:-1]


def test_cumulative_draws_the_curves(ax):
    curve = pc.smooth_calibration_curve(*binary_sample())
    plot_cumulative(curve, ax=ax)
    for start, values in (("$F$", curve.cumulative), ("$S$", curve.monotone)):
        line = artist(ax, start)
        assert line.get_drawstyle() == "steps-post"
        np.testing.assert_array_equal(line.get_xdata(), [0, *curve.predicted, 1])
        np.testing.assert_array_equal(line.get_ydata(), [0, *values, values[-1]])


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5])
def test_cumulative_shows_the_error(power, ax):
    rng = np.random.default_rng(1)
    predicted = rng.random(500)
    curve = pc.smooth_calibration_curve(rng.random(500) < predicted**power, predicted)
    plot_cumulative(curve, ax=ax)
    bracket = artist(ax, "$R$").get_ydata()
    assert drawn_area(ax) + abs(bracket[1] - bracket[0]) == pytest.approx(curve.value, abs=1e-14)


def test_cumulative_shades_between_the_curves(ax):
    plot_cumulative(pc.smooth_calibration_curve([1, 1, 0, 0], [0.2, 0.4, 0.6, 0.8]), ax=ax)
    (path,) = artist(ax, "area").get_paths()
    x, y = path.vertices[:-1].T
    shoelace = 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))
    assert shoelace == pytest.approx(drawn_area(ax))
    assert shoelace == pytest.approx(0.2 * (0.2 + 0.35 + 0.2))


def test_cumulative_legend_gives_the_numbers(ax):
    plot_cumulative(pc.smooth_calibration_curve([0, 0, 1], [0.2, 0.5, 0.9]), ax=ax)
    assert legend_texts(ax) == [
        "smCE = $|R|$ + area = 0.213",
        "$F$: cumulative residual",
        "$S$: nearest monotone curve",
        "area = 0.013",
        "$R$ = −0.200: mean residual",
        "over-confident: predicts too much",
        "under-confident: predicts too little",
    ]


def test_cumulative_small_errors_keep_their_digits(ax):
    predicted = np.full(100_000, 0.3)
    plot_cumulative(pc.smooth_calibration_curve(np.arange(100_000) < 30_012, predicted), ax=ax)
    assert legend_texts(ax)[0].endswith("= 0.000120")


def test_cumulative_falls_where_too_much_is_predicted(ax):
    draw_cumulative([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.8], ax=ax)
    steps = np.diff(artist(ax, "$F$").get_ydata())
    assert (steps[:2] < 0).all()
    assert (steps[2:4] > 0).all()


@pytest.mark.parametrize(
    ("labels", "predicted"),
    [
        ([1], [0.3]),
        ([0], [0.0]),
        ([1], [1.0]),
        ([0, 1, 1], [0.4, 0.4, 0.4]),
        ([0, 1], [0.5, 0.5]),
        ([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0]),
    ],
)
@both
def test_degenerate_samples(draw, labels, predicted, ax):
    draw(labels, predicted, ax=ax).figure.savefig(io.BytesIO(), format="pdf")


def test_cumulative_of_a_projection(ax):
    rng = np.random.default_rng(3)
    plot_cumulative(projected_curve(rng.uniform(-1, 1, 50), rng.normal(size=50) / 50), ax=ax)
    assert ax.get_title() == ""
    assert artist(ax, "$F$").get_xdata()[0] < -0.5


def test_cumulative_without_mean_residual(ax):
    draw_cumulative([1, 0], [0.25, 0.75], ax=ax)
    np.testing.assert_array_equal(artist(ax, "$R$").get_ydata(), [0, 0])
    assert "$R$ = +0.000: mean residual" in legend_texts(ax)
    assert "area = 0.188" in legend_texts(ax)


def test_cumulative_equal_predictions_are_one_step(ax):
    # Sorted one by one, these rows would dive to -1/4 and come back: an artefact of their order.
    draw_cumulative([0, 0, 1, 1], [0.5] * 4, ax=ax)
    np.testing.assert_array_equal(artist(ax, "$F$").get_ydata(), [0, 0, 0])


@pytest.mark.parametrize("power", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("size", [(4, 3.6), (6.4, 4.8), (10, 4)])
def test_cumulative_legend_covers_no_curve(power, size):
    rng = np.random.default_rng(2)
    predicted = rng.random(2000)
    ax = Figure(figsize=size).subplots()
    draw_cumulative(rng.random(2000) < predicted**power, predicted, ax=ax)
    ax.figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    for start in ("$F$", "$S$", "$R$"):
        assert box.count_contains(ax.transData.transform(artist(ax, start).get_xydata())) == 0


def test_cumulative_panels_with_a_common_axis_show_everything():
    left, right = Figure().subplots(1, 2, sharey=True)
    draw_cumulative([1, 0], [0.45, 0.55], ax=left)
    draw_cumulative([1, 1], [0.0, 0.1], ax=right)
    bottom, top = left.get_ylim()
    assert bottom < 0
    assert top > 0.95


# Thinning


def test_long_curves_are_thinned(ax):
    curve = pc.smooth_calibration_curve(*binary_sample(n=1_000_000))
    plot_cumulative(curve, ax=ax)
    F, S = artist(ax, "$F$"), artist(ax, "$S$")
    assert F.get_xdata().size == S.get_xdata().size <= 4002
    assert F.get_ydata()[1:].min() == curve.cumulative.min()
    assert F.get_ydata()[1:].max() == curve.cumulative.max()
    assert F.get_ydata()[-1] == curve.mean_residual
    assert drawn_area(ax) == pytest.approx(curve.value - abs(curve.mean_residual), abs=1e-5)
    page = io.BytesIO()
    ax.figure.savefig(page, format="pdf")
    assert len(page.getvalue()) < 300_000


@pytest.mark.parametrize("max_points", [4, 40, 400])
@pytest.mark.parametrize("seed", range(3))
def test_thinning_keeps_the_extremes_of_every_column(max_points, seed):
    rng = np.random.default_rng(seed)
    u = np.sort(rng.beta(0.5, 0.5, 5000))
    F = rng.normal(size=u.size).cumsum()
    kept = _kept(u, F, max_points)
    assert kept.size <= max_points
    assert (np.diff(u[kept]) > 0).all()
    edges = np.linspace(u[0], u[-1], max_points // 4 + 1)
    last = np.append(np.diff(u) > 0, True)
    for low, high in itertools.pairwise(edges):
        whole, drawn = F[last & (low < u) & (u < high)], F[kept][(low < u[kept]) & (u[kept] < high)]
        if whole.size:
            assert (drawn.min(), drawn.max()) == (whole.min(), whole.max())


def test_short_curves_are_drawn_whole(ax):
    curve = pc.smooth_calibration_curve(*binary_sample(n=4000))
    plot_cumulative(curve, ax=ax)
    assert artist(ax, "$F$").get_xdata().size == np.unique(curve.predicted).size + 2

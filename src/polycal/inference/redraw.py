"""Tests by redrawing labels from the predictions."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from polycal._threads import map_threads, progress_bar, thread_budget
from polycal._typing import Float64s, Floats, Ints, Seed
from polycal._validation import check_integer, check_level, check_sample, check_seed, check_statistic
from polycal.measures.smooth import smooth_error
from polycal.sample import Question, Sample

# Errors drawn from the noise: the first make its mean, and drawing stops when so many have reached the one seen.
FEWEST_DRAWS, MOST_DRAWS, _ENOUGH = 39, 199, 10


class Estimate(Protocol):
    """What a notion's estimate must offer."""

    @property
    def value(self) -> float:
        """The error."""


class Estimator(Protocol):
    """What a notion must offer: its error on a sample."""

    def estimate(self, sample: Sample) -> Estimate:
        """Compute the error on a validated sample."""


Statistic = Callable[[Sample], float]


@dataclass(frozen=True, eq=False)
class CalibrationTest:
    """An error beside the values it takes when predictions are perfectly calibrated.

    Attributes
    ----------
    statistic : float
        The error on the sample.
    p_value : float
        Of the hypothesis that every label was drawn from its prediction.
    null_mean, null_std : float
        The noise floor: mean and standard deviation of the error under that hypothesis.
    null_quantiles : dict of float to float
        Its quantiles at alpha, 0.5 and 1 - alpha.
    draws : ndarray of shape (n_draws,)
        The error on each redrawn sample.
    alpha : float
        The level of the test.
    notion : object
        What was measured.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> test = pc.calibration_test(made.labels, made.proba, "confidence", progress=False)
    >>> test.statistic > test.null_mean, test.p_value
    (True, 0.005)
    """

    statistic: float
    p_value: float
    null_mean: float
    null_std: float
    null_quantiles: dict[float, float]
    draws: Float64s
    alpha: float
    notion: Any

    @property
    def excess(self) -> float:
        """The error above its noise floor: what is left when the mean of the noise is taken off."""
        return self.statistic - self.null_mean

    @property
    def is_significant(self) -> bool:
        """Whether perfect calibration is rejected at level `alpha`."""
        return self.p_value <= self.alpha

    def __str__(self) -> str:
        verdict = "not calibrated" if self.is_significant else "no miscalibration shown"
        return (
            f"{verdict}: error {self.statistic:.3g}, noise floor {self.null_mean:.2g} ± {self.null_std:.1g}, "
            f"p = {self.p_value:.2g} ({self.draws.size} redraws)"
        )

    def __repr__(self) -> str:
        return f"CalibrationTest(statistic={self.statistic:.6g}, p_value={self.p_value:.4g}, notion={self.notion!r})"


def calibration_test(
    y_true: Any,
    y_proba: Any,
    notion: Estimator | Statistic,
    *,
    n_draws: int = 199,
    alpha: float = 0.05,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    random_state: Seed = 0,
    n_jobs: int | None = -1,
    progress: bool | None = None,
) -> CalibrationTest:
    r"""Test whether predictions are perfectly calibrated, by any notion's error.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices, or class names when these are known.
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities.
    notion : Notion, or function from Sample to float
        The error whose size is judged.
    n_draws : int, default 199
        How often labels are redrawn. The smallest p-value possible is ``1 / (n_draws + 1)``.
    alpha : float, default 0.05
        The level: how often a calibrated predictor is rejected, at most.
    sample_weight, class_names, from_logits
        As for `smooth_calibration_error`.
    random_state : int, Generator or None, default 0
        Seed of the labels drawn.
    n_jobs : int or None, default -1
        Number of threads, -1 for one per core; the result does not depend on it.
    progress : bool, optional
        Whether to draw a progress bar on stderr; by default only when that is a terminal.

    Returns
    -------
    CalibrationTest

    See Also
    --------
    certify : A lower bound for the error, which this test does not give.

    Notes
    -----
    Definition: the hypothesis is that given the predictions, each label is drawn from its own one,
    independently. Under it the error on the sample and on samples with redrawn labels have the same
    distribution, so :math:`p = (1 + \#\{\text{draws} \ge \text{error}\}) / (1 + n_{draws})` is a p-value for any
    n, k and notion, whatever its bias: no asymptotics, and weights may be anything that does not depend on the
    labels. The mean of the draws is the notion's *noise floor*: what a perfectly calibrated predictor with
    these predictions reads. Cost: `n_draws` times the notion's, on all cores.

    References
    ----------
    .. [1] Widmann, Lindsten and Zachariah (2019), "Calibration tests in multi-class classification".

    Examples
    --------
    >>> import polycal as pc
    >>> example = pc.datasets.load_fashion("evaluation")
    >>> test = calibration_test(example.labels, example.proba, pc.Confidence(smooth=True), n_draws=99)
    >>> test.p_value, test.is_significant
    (0.01, True)
    """
    check_level(alpha)
    random_state = check_seed(random_state)
    check_integer(n_draws, "n_draws", minimum=1)
    statistic = check_statistic(notion, 1 + n_draws)
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    with thread_budget(n_jobs):
        value = statistic(sample)
        draws = null_draws(sample, statistic, n_draws, random_state, progress)
    levels = sorted({alpha, 0.5, 1.0 - alpha})
    return CalibrationTest(
        statistic=value,
        p_value=float((1 + np.count_nonzero(draws >= value)) / (1 + n_draws)),
        null_mean=float(draws.mean()),
        null_std=float(draws.std(ddof=1)) if n_draws > 1 else 0.0,
        null_quantiles=dict(zip(levels, np.quantile(draws, levels).tolist(), strict=True)),
        draws=draws,
        alpha=alpha,
        notion=notion,
    )


def null_draws(
    sample: Sample,
    statistic: Statistic,
    n_draws: int,
    random_state: int,
    progress: bool | None = False,
) -> Float64s:
    """The statistic on samples with redrawn labels; each draw has its own seed, so threads do not matter."""
    return repeat(lambda rng: statistic(redraw_labels(sample, rng)), n_draws, random_state, progress)


def repeat(
    draw: Callable[[np.random.Generator], float], n_draws: int, random_state: int, progress: bool | None
) -> Float64s:
    """The results of many independent draws, on threads, the same for any number of these."""
    with progress_bar("Drawing", n_draws, progress) as advance:

        def one(seed: np.random.SeedSequence) -> float:
            value = draw(np.random.default_rng(seed))
            advance()
            return value

        return np.array(map_threads(one, np.random.SeedSequence(random_state).spawn(n_draws)))


def redraw_labels(sample: Sample, rng: np.random.Generator) -> Sample:
    """The same predictions and weights with each label drawn from its prediction."""
    return replace(sample, labels=draw_labels(sample.proba, rng))


def draw_labels(proba: Floats, rng: np.random.Generator) -> Ints:
    """One label for each row of probabilities, by inversion in float64."""
    from polycal._compiled import redraw as kernels  # noqa: PLC0415 - imports numba

    labels: Ints = kernels.draw(proba, rng.random(proba.shape[0]))
    return labels


class Noise(NamedTuple):
    """An error, and how to draw errors that there would be if the predictions were calibrated."""

    error: float
    draw: Callable[[np.random.Generator], float]


def question_noise(question: Question, error: float) -> Noise:
    """The smooth error of a question, and those of outcomes drawn with their predicted probabilities."""
    return Noise(error, partial(_redrawn_error, question))


def noise_test(
    noise: Noise,
    n_draws: int,
    seed: np.random.SeedSequence,
    fewest: int = FEWEST_DRAWS,
    enough: int = _ENOUGH,
) -> tuple[float, float]:
    """The mean of the noise in the ``fewest`` first draws, and the p-value of the error, from at most ``n_draws``.

    Drawing stops when `enough` errors have reached the one seen; the p-value is then their share (Besag and
    Clifford 1991), which is as valid as that of a fixed number, and spends the time on the errors that need it.
    """
    rng = np.random.default_rng(seed)
    drawn: list[float] = []
    reached: list[int] = []
    while len(drawn) < fewest or (len(drawn) < n_draws and len(reached) < enough):
        drawn.append(noise.draw(rng))
        if drawn[-1] >= noise.error - 1e-12:
            reached.append(len(drawn))
    floor = float(np.mean(drawn[:fewest]))
    if len(reached) >= enough:
        return floor, enough / reached[enough - 1]
    return floor, (1 + len(reached)) / (1 + len(drawn))


def draws_wanted(n_tests: float, alpha: float) -> int:
    """Draws for each of so many tests: twice what the smallest p-value needs to stand Holm's correction."""
    return max(MOST_DRAWS, int(np.ceil(2 * n_tests / alpha)))


def _redrawn_error(question: Question, rng: np.random.Generator) -> float:
    hits = rng.random(question.predicted.size) < question.predicted
    return smooth_error(Question(question.predicted, hits, question.weight, question.text))

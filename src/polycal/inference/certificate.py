"""Certificates: a witness judged on data it has not seen."""

from dataclasses import dataclass
from typing import Any

from polycal._typing import Float64s
from polycal._validation import check_sample
from polycal.inference._betting import lower_bound, p_value, set_up, standard_error
from polycal.inference.bounds import check_level, check_seed
from polycal.sample import Sample
from polycal.witness._base import Witness
from polycal.witness.question import SubsetWitness, TopWitness


@dataclass(frozen=True, eq=False)
class Certificate:
    """A witness judged on data it was not found on.

    Attributes
    ----------
    estimate : float
        The weighted mean of ``<y - v, w(v)>`` over the rows: unbiased for the witness's true correlation.
    lower_bound : float
        Below the true correlation with probability at least ``1 - alpha``. More than 0 proves miscalibration.
    p_value : float
        Of the hypothesis that the true correlation is at most 0, as it is for calibrated predictions.
    alpha : float
        The probability that `lower_bound` is wrong, at most.
    n_samples : int
        Number of rows.
    witness : Witness
        What was judged.
    std_error : float
        The usual standard error of `estimate`; `lower_bound` and `p_value` do not rely on it.
    """

    estimate: float
    lower_bound: float
    p_value: float
    alpha: float
    n_samples: int
    witness: Witness
    std_error: float

    @property
    def is_significant(self) -> bool:
        """Whether miscalibration is shown at level `alpha`."""
        return self.p_value <= self.alpha

    def __str__(self) -> str:
        numbers = f"estimate {self.estimate:.4f} ± {self.std_error:.4f}, p = {self.p_value:.2g}, n = {self.n_samples}"
        if self.is_significant:
            finding = f"miscalibrated by at least {self.lower_bound:.4f} at {1 - self.alpha:.4g} confidence"
        else:
            finding = "no miscalibration shown"
        return f"{self.witness.describe()} {finding} ({numbers})"


def certify(
    witness: Witness,
    y_true: Any,
    y_proba: Any,
    *,
    alpha: float = 0.05,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    random_state: int = 0,
) -> Certificate:
    r"""Judge a witness on data it was not found on.

    The data must be new to the witness: on the rows it was found on, any search finds something.

    Parameters
    ----------
    witness : Witness
        A function from predictions to [-1, 1]^k, found on other rows.
    y_true : array-like of shape (n_samples,)
        Class indices, or class names when these are known.
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities.
    alpha : float, default 0.05
        The probability that the lower bound is wrong, at most.
    sample_weight, class_names, from_logits
        As for `smooth_calibration_error`. A row of weight 2 counts double but is not two independent rows.
    random_state : int, default 0
        Seed of the orders in which rows are bet on. The order in which they are given does not matter.

    Returns
    -------
    Certificate

    See Also
    --------
    mean_lower_bound : The bound, its validity and its width.

    Notes
    -----
    Definition: the witness's correlation is :math:`\mathbb{E}\langle y - v, w(v) \rangle`, which is 0 if
    predictions are calibrated in any sense that allows the weight function w. Estimator: the mean over the rows,
    in float64. The bound and the p-value hold for any distribution and any n, by betting. They judge this
    witness only: judging many and reporting the best needs a correction, such as Holm's.
    The bound is one for the error of a notion when the witness belongs to its weight family.

    Examples
    --------
    >>> import polycal as pc
    >>> fit, test = (pc.datasets.load_fashion(part) for part in ("calibration", "evaluation"))
    >>> witness = pc.estimate_error(fit.labels, fit.proba, pc.Confidence(smooth=True)).witness
    >>> certificate = certify(witness, test.labels, test.proba)
    >>> certificate.lower_bound <= certificate.estimate
    True
    """
    check_level(alpha)
    check_seed(random_state)
    if not isinstance(witness, Witness):
        raise TypeError(f"witness must be a witness, as an auditor finds; got {type(witness).__name__}.")
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    return certify_sample(witness, sample, alpha, random_state)


def certify_sample(witness: Witness, sample: Sample, alpha: float, random_state: int = 0) -> Certificate:
    """Judge a witness on a validated sample."""
    return certify_correlations(
        witness, witness.correlations(sample), sample.sample_weight, alpha, random_state
    )


def certify_correlations(
    witness: Witness,
    correlations: Float64s,
    sample_weight: Float64s | None,
    alpha: float,
    random_state: int = 0,
) -> Certificate:
    """Judge a witness by what it made of each row of a validated sample of any kind."""
    bound = correlation_bound(witness)
    values = (correlations + bound) / (2.0 * bound)
    game = set_up(values.clip(0.0, 1.0), sample_weight, random_state)
    return Certificate(
        estimate=2.0 * bound * game.mean - bound,
        lower_bound=2.0 * bound * lower_bound(game, alpha) - bound,
        p_value=p_value(game, 0.5),
        alpha=alpha,
        n_samples=correlations.size,
        witness=witness,
        std_error=2.0 * bound * standard_error(game.gain[0], game.stake[0]),
    )


def correlation_bound(witness: Witness) -> float:
    """The largest absolute value ``<y - v, w(v)>`` can take: 2, or 1 if w weighs a single yes/no question."""
    return 1.0 if isinstance(witness, SubsetWitness | TopWitness) else 2.0

"""Learners and auditors: each made from the other, as the paper reduces them."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal._validation import check_estimator, check_integer, check_real, check_seed
from polycal.families.auditor import AMPLIFICATIONS, Auditor, amplified_gains, weighted_rows
from polycal.families.witness import Witness
from polycal.inference.redraw import draw_labels
from polycal.sample import Sample, split_rows


@dataclass(frozen=True, eq=False, repr=False)
class LearnerWitness(Witness):
    """w_j(v) = clip(c h_j(v), -1, 1) for the classes j that have an estimator, 0 for the others.

    Attributes
    ----------
    members : ndarray of int64
        The classes with an estimator, increasing.
    estimators : tuple
        The fitted estimators of these classes.
    amplification : float
        c, at least 1.
    """

    members: Ints
    estimators: tuple[Any, ...]
    amplification: float
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "learner"

    def _saved_values(self) -> dict[str, Any]:
        raise TypeError(
            "A witness of fitted estimators cannot be saved: polycal never writes pickles. Keep the estimators in "
            "your own way, or look for a witness with KernelAuditor."
        )

    @classmethod
    def _rebuilt(cls, values: dict[str, Any]) -> Self:  # noqa: ARG003 - whatever they are
        raise TypeError("A witness of fitted estimators cannot be loaded, because it cannot be saved.")

    def evaluate(self, proba: Floats) -> Float64s:
        """The estimators' values, amplified and clipped."""
        out = np.zeros(proba.shape)
        for j, estimator in zip(self.members, self.estimators, strict=True):
            out[:, j] = self.amplification * signed_values(estimator, proba)
        return np.clip(out, -1.0, 1.0, out=out)

    def describe(self) -> str:
        """The estimator, and the classes it looks at."""
        if not self.estimators:
            return "no class"
        names = [self.name(int(j)) for j in self.members[:4]]
        more = f" and {self.members.size - 4} more" if self.members.size > 4 else ""
        return f"{type(self.estimators[0]).__name__} on {', '.join(names)}{more}"


def signed_values(estimator: Any, proba: Floats) -> Float64s:
    """A fitted estimator's values in [-1, 1]: 2 P(+1) - 1 for a classifier of -1 and +1, else its predictions."""
    if hasattr(estimator, "predict_proba"):
        positive = estimator.predict_proba(proba)[:, list(estimator.classes_).index(1)]
        values = 2.0 * np.asarray(positive, dtype=np.float64) - 1.0
    else:
        values = np.asarray(estimator.predict(proba), dtype=np.float64).ravel()
    return np.clip(values, -1.0, 1.0)


@dataclass(frozen=True)
class LearnerAuditor(Auditor):
    r"""Look for a witness with any scikit-learn regressor or classifier.

    Parameters
    ----------
    estimator : scikit-learn regressor or classifier
        Cloned for each class. It learns to predict a sign, -1 or +1, from the predicted probabilities.
    combine : bool, default True
        Whether the witness joins the functions of all classes that correlate on the held-out rows. They act on
        different coordinates, so the sum is a legal witness and at least as strong there as its best part. False
        keeps only the best class, as in the paper.
    amplify : bool, default True
        Whether to use ``clip(c h, -1, 1)`` instead of h, with the c that does best on the held-out rows: learners
        of faint signals answer with small numbers. False uses what was learnt as it is, as in the paper.
    min_rows : int, default 20
        Classes drawn by fewer rows get no estimator.
    holdout : float, default 1/3
        Share of the held-out rows to choose among the functions learnt.
    random_state : int, default 0
        Seed of the signed classes drawn and of the held-out rows.

    Notes
    -----
    Each row draws a signed class: with probability 1/2 its label with sign +1, else a class from its own prediction v
    with sign -1. The mean of the signed unit vector is :math:`(y - v)/2`, so on the rows that drew class j the sign is
    to be guessed from v exactly as well as the residual of class j correlates with a function of v. Learning on those
    rows only is what avoids losing a factor k: from a learner that finds :math:`\beta` whenever its class has
    :math:`\alpha/3`, this makes an auditor that finds :math:`\alpha\beta/(6k)` whenever the product class has
    :math:`\alpha` [1]_. Weighted rows need an estimator whose ``fit`` takes ``sample_weight``.
    Cost: k fits on n rows in all.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), Theorem "Auditing from Agnostic Learning".

    Examples
    --------
    >>> import polycal as pc
    >>> from sklearn.linear_model import LogisticRegression
    >>> fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> pc.LearnerAuditor(LogisticRegression()).find_witness(fit.labels, fit.proba).correlation(fresh) > 0.03
    True
    """

    estimator: Any
    _: KW_ONLY
    combine: bool = True
    amplify: bool = True
    min_rows: int = 20
    holdout: float = 1 / 3
    random_state: int = 0

    def __post_init__(self) -> None:
        check_estimator(self.estimator)
        check_integer(self.min_rows, "min_rows", minimum=1)
        check_real(self.holdout, "holdout", low=0.05, high=0.95)
        check_seed(self.random_state)

    def find(self, sample: Sample) -> LearnerWitness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        taught, aside = (
            sample.take(rows)
            for rows in split_rows(sample, (1 - self.holdout, self.holdout), self.random_state)
        )
        functions = self._learn(taught, np.random.default_rng(self.random_state))
        classes = np.array(list(functions), dtype=np.int64)
        gains = _gains(functions, aside)[:, : None if self.amplify else 1]
        kept, best = _choose(gains, combine=self.combine)
        return LearnerWitness(
            classes[kept],
            tuple(functions[int(j)] for j in classes[kept]),
            float(AMPLIFICATIONS[best]),
            sample.n_classes,
            sample.class_names,
        )

    def _learn(self, sample: Sample, rng: np.random.Generator) -> dict[int, Any]:
        """A fitted estimator for each class drawn by enough rows."""
        drawn, signs = draw_signed_classes(sample, rng)
        functions = {}
        for j in range(sample.n_classes):
            rows = np.flatnonzero(drawn == j)
            if rows.size >= self.min_rows:
                functions[j] = self._fit(sample.take(rows), signs[rows])
        return functions

    def _fit(self, sample: Sample, signs: Ints) -> Any:
        from sklearn.base import clone, is_classifier  # noqa: PLC0415 - not at `import polycal`
        from sklearn.dummy import DummyRegressor  # noqa: PLC0415
        from sklearn.utils.validation import has_fit_parameter  # noqa: PLC0415

        weight = {} if sample.sample_weight is None else {"sample_weight": sample.sample_weight}
        if weight and not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(
                f"sample_weight was given but {type(self.estimator).__name__}.fit does not take it; choose another "
                "estimator or drop the weights."
            )
        if is_classifier(self.estimator) and np.ptp(signs) == 0:
            return DummyRegressor(strategy="constant", constant=float(signs[0])).fit(sample.proba, signs)
        targets = signs if is_classifier(self.estimator) else signs.astype(np.float64)
        return clone(self.estimator).fit(sample.proba, targets, **weight)


def draw_signed_classes(sample: Sample, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """For each row: its label with sign +1, or with probability 1/2 a class drawn from its prediction with -1."""
    drawn = draw_labels(sample.proba, rng)
    positive = rng.random(sample.n_samples) < 0.5
    return np.where(positive, sample.labels, drawn), np.where(positive, 1, -1)


def _gains(functions: dict[int, Any], sample: Sample) -> Float64s:
    """The correlation of each ``h_j e_j`` under each amplification: (number of functions, amplifications)."""
    gains = np.zeros((len(functions), AMPLIFICATIONS.size))
    for row, (j, function) in zip(gains, functions.items(), strict=True):
        if sample.n_samples > 0:
            residual: Float64s = sample.mass * ((sample.labels == j) - sample.proba[:, j].astype(np.float64))
            values = signed_values(function, sample.proba)
            row[:] = amplified_gains(residual[:, None], values[:, None], np.ones(1))
    return gains


def _choose(gains: Float64s, *, combine: bool) -> tuple[Ints, int]:
    """The functions to keep and the amplification: all that gain, or the one that gains most."""
    useful = np.maximum(gains, 0.0)
    best = int(np.argmax(useful.sum(axis=0) if combine else useful.max(axis=0, initial=0.0)))
    kept = np.flatnonzero(useful[:, best] > 0)
    if not combine:
        kept = kept[np.argsort(-useful[kept, best], kind="stable")[:1]]
    return kept, best

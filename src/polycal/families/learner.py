"""Learners and auditors: each made from the other, as the paper reduces them."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Floats, Ints, Seed
from polycal._validation import check_estimator, check_integer, check_real, keep_seed
from polycal.families.auditor import AMPLIFICATIONS, Auditor, amplified_gains, weighted_rows
from polycal.families.witness import Witness
from polycal.features import Column, Features
from polycal.inference.redraw import draw_labels
from polycal.sample import Sample, likely_classes, split_rows

# Probabilities below this count as this in a logarithm; categories that an estimator is told, at most; and classes
# whose residuals are learnt on all rows.
_FLOOR = 1e-12
_MOST_CATEGORIES = 200
_MOST_TAUGHT = 20


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
    columns : tuple of Column
        The features that the estimators see before the prediction v and its logarithm; without any, they see v alone.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.LearnerAuditor(Ridge()).find_witness(made.labels, made.proba)
    >>> witness(made.proba).shape
    (800, 4)
    """

    members: Ints
    estimators: tuple[Any, ...]
    amplification: float
    n_classes: int
    class_names: tuple[str, ...] | None = None
    columns: tuple[Column, ...] = ()
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
        if self.columns:
            raise ValueError("this witness looks at features; give them: witness(y_proba, features=...).")
        return self._values(proba, proba.shape)

    def evaluate_rows(self, sample: Sample) -> Float64s:
        """The same, of features and predictions."""
        return self._values(learner_inputs(sample, self.columns), sample.proba.shape)

    def _values(self, inputs: Floats, shape: tuple[int, ...]) -> Float64s:
        out = np.zeros(shape)
        for j, estimator in zip(self.members, self.estimators, strict=True):
            out[:, j] = self.amplification * signed_values(estimator, inputs)
        return np.clip(out, -1.0, 1.0, out=out)

    def describe(self) -> str:
        """The estimator, and the classes it looks at."""
        if not self.estimators:
            return "no class"
        names = [self.name(int(j)) for j in self.members[:4]]
        more = f" and {self.members.size - 4} more" if self.members.size > 4 else ""
        return f"{type(self.estimators[0]).__name__} on {', '.join(names)}{more}"


def learner_inputs(sample: Sample, columns: tuple[Column, ...]) -> Floats:
    """What estimators see of each row: its prediction v, or its features x, v and log v."""
    if not columns:
        return sample.proba
    if sample.features is None:
        raise ValueError("this witness looks at features, and these rows have none; give features.")
    proba = sample.proba.astype(np.float64)
    return np.hstack([sample.features.recoded(columns).values, proba, np.log(np.maximum(proba, _FLOOR))])


def learnt_columns(features: Features) -> tuple[Column, ...]:
    """The columns with the categories that an estimator is told: the most frequent ones."""
    columns = []
    for column, values in zip(features.columns, features.values.T, strict=True):
        if len(column.categories) > _MOST_CATEGORIES:
            known = values[~np.isnan(values)].astype(np.int64)
            counts = np.bincount(known, minlength=len(column.categories))
            order = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
            columns.append(replace(column, categories=tuple(column.categories[c] for c in order.tolist())))
        else:
            columns.append(column)
    return tuple(columns)


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
    draw : bool, default True
        Whether each row draws a signed class, as in the paper. False lets a regressor learn the residual of each of the
        likeliest classes on all rows: less noise, at the cost of so many fits on all rows.
    min_rows : int, default 20
        Classes drawn by fewer rows get no estimator.
    holdout : float, default 1/3
        Share of the held-out rows to choose among the functions learnt.
    random_state : int, Generator or None, default 0
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
    draw: bool = True
    min_rows: int = 20
    holdout: float = 1 / 3
    random_state: Seed = 0

    def __post_init__(self) -> None:
        check_estimator(self.estimator)
        check_integer(self.min_rows, "min_rows", minimum=1)
        check_real(self.holdout, "holdout", low=0.05, high=0.95)
        if not self.draw and hasattr(self.estimator, "predict_proba"):
            raise TypeError("estimator must be a regressor to learn residuals; give one, or draw=True.")
        keep_seed(self)

    def find(self, sample: Sample) -> LearnerWitness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        taught, aside = (
            sample.take(rows)
            for rows in split_rows(sample, (1 - self.holdout, self.holdout), self.random_state)
        )
        columns = () if sample.features is None else learnt_columns(sample.features)
        functions = self._learn(taught, columns, np.random.default_rng(self.random_state))
        classes = np.array(list(functions), dtype=np.int64)
        gains = _gains(functions, aside, columns)[:, : None if self.amplify else 1]
        kept, best = _choose(gains, combine=self.combine)
        return LearnerWitness(
            classes[kept],
            tuple(functions[int(j)] for j in classes[kept]),
            float(AMPLIFICATIONS[best]),
            sample.n_classes,
            sample.class_names,
            columns,
        )

    def _learn(self, sample: Sample, columns: tuple[Column, ...], rng: np.random.Generator) -> dict[int, Any]:
        """A fitted estimator for each class drawn by enough rows; without drawing, for each likely class."""
        if not self.draw:
            return {
                int(j): self._fit(
                    sample, columns, (sample.labels == j) - sample.proba[:, j].astype(np.float64)
                )
                for j in likely_classes(sample, _MOST_TAUGHT)
            }
        drawn, signs = draw_signed_classes(sample, rng)
        functions = {}
        for j in range(sample.n_classes):
            rows = np.flatnonzero(drawn == j)
            if rows.size >= self.min_rows:
                functions[j] = self._fit(sample.take(rows), columns, signs[rows])
        return functions

    def _fit(self, sample: Sample, columns: tuple[Column, ...], signs: Ints | Float64s) -> Any:
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
        inputs = learner_inputs(sample, columns)
        if columns:
            # Trees of scikit-learn refuse a column without any value.
            inputs[:, np.isnan(inputs).all(axis=0)] = 0.0
        return clone(self.estimator).fit(inputs, targets, **weight)


def draw_signed_classes(sample: Sample, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """For each row: its label with sign +1, or with probability 1/2 a class drawn from its prediction with -1."""
    drawn = draw_labels(sample.proba, rng)
    positive = rng.random(sample.n_samples) < 0.5
    return np.where(positive, sample.labels, drawn), np.where(positive, 1, -1)


def _gains(functions: dict[int, Any], sample: Sample, columns: tuple[Column, ...]) -> Float64s:
    """The correlation of each ``h_j e_j`` under each amplification: (number of functions, amplifications)."""
    gains = np.zeros((len(functions), AMPLIFICATIONS.size))
    inputs = learner_inputs(sample, columns)
    for row, (j, function) in zip(gains, functions.items(), strict=True):
        if sample.n_samples > 0:
            residual: Float64s = sample.mass * ((sample.labels == j) - sample.proba[:, j].astype(np.float64))
            values = signed_values(function, inputs)
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

"""Monomials of low degree: exact by branch and bound, and bounded by the ball of a polynomial kernel."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal._validation import check_choice, check_integer
from polycal.families.kernel import KernelWitness
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.witness import Witness
from polycal.kernels.kernels import Multinomial, ball_norms, ball_scale
from polycal.kernels.products import quadratic_forms, residuals
from polycal.sample import Sample, row_blocks
from polycal.steps import Linear, Product, Program
from polycal.storage.rules import Array


@dataclass(frozen=True)
class LowDegree(Notion):
    r"""Low-degree calibration: do residuals correlate with polynomials of the prediction?

    Parameters
    ----------
    degree : int, default 2
        d, at least 0.
    bound : {"lower", "upper"}
        "lower" searches the monomials: exact when none had to be left out, else a lower bound. "upper" is the error
        over the unit ball of the multinomial kernel, which holds all these polynomials.
    max_terms : int, default 5000
        For "lower": how many pairs of a class and a monomial are extended from each degree to the next.

    Notes
    -----
    Definition: in each coordinate a polynomial of degree d whose coefficients' absolute values sum to at most 1 (the
    class :math:`P(d, 1)^k` of [1]_). A linear function on such a set is largest at a monomial, so the error is

    .. math:: \sum_\ell \max_{|e| \le d} \big| \mathbb{E}\, (y_\ell - v_\ell)\, v^e \big| ,

    from 0 to 2. Estimator: the plug-in value by branch and bound, often exact with few of the
    :math:`\binom{k + d}{d}` monomials tried. The upper bound is :math:`\sum_\ell \|\mathbb{E}\, z_\ell
    \ker(v, \cdot)\|`. Cost: :math:`O(n k)` per pair extended, at most `max_terms` per degree; upper bound
    :math:`n^2 k`. Bias: upwards, and for the upper bound by about :math:`\sqrt{k (d + 1) / n}`.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), Section "Auditing for the Multinomial Kernel"; the notion is from Gopalan,
       Kim, Singhal and Zhao (2022).

    Examples
    --------
    >>> import polycal as pc
    >>> y_proba = [[0.5, 0.5], [0.5, 0.5], [0.9, 0.1], [0.9, 0.1]]
    >>> estimate = pc.estimate_error([0, 1, 1, 1], y_proba, pc.LowDegree(1))
    >>> round(estimate.value, 4), estimate.kind
    (0.9, 'exact')
    """

    degree: int = 2
    _: KW_ONLY
    bound: Literal["lower", "upper"] = "lower"
    max_terms: int = 5000
    name: ClassVar[str] = "low-degree"

    def __post_init__(self) -> None:
        check_integer(self.degree, "degree", minimum=0)
        check_choice(self.bound, "bound", ("lower", "upper"))
        check_integer(self.max_terms, "max_terms", minimum=1)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        return self._searched(sample) if self.bound == "lower" else self._kernel_bound(sample)

    def _searched(self, sample: Sample) -> ErrorEstimate:
        found = best_monomials(sample, self.degree, self.max_terms)
        strengths = np.abs(found.correlations)
        return ErrorEstimate(
            value=float(strengths.sum()),
            kind="exact" if found.is_exact else "lower bound",
            notion=self,
            method="best monomial of each class, by branch and bound",
            n_steps=found.n_tried,
            n_samples=sample.n_samples,
            witness=MonomialWitness(
                found.factors, np.sign(found.correlations), strengths, sample.n_classes, sample.class_names
            ),
        )

    def _kernel_bound(self, sample: Sample) -> ErrorEstimate:
        kernel = Multinomial(self.degree)
        points, values = sample.proba.astype(np.float64, copy=False), residuals(sample, np.float64)
        forms = quadratic_forms(kernel, points, values)
        norms = ball_norms(kernel, values, forms)
        strengths = norms / (sample.n_samples * np.sqrt(kernel.bound))
        return ErrorEstimate(
            value=float(np.sqrt(np.maximum(forms, 0.0)).sum()) / sample.n_samples,
            kind="upper bound",
            notion=self,
            method=f"unit ball of the {kernel.describe()}",
            n_steps=sample.n_classes,
            n_samples=sample.n_samples,
            witness=KernelWitness(
                kernel,
                points,
                values * ball_scale(kernel, norms),
                strengths,
                1.0,
                sample.n_classes,
                sample.class_names,
            ),
        )


@dataclass(frozen=True, eq=False, repr=False)
class MonomialWitness(Witness):
    """w_l(v) = sign_l * product of v_i over the factors of class l.

    Attributes
    ----------
    factors : ndarray of int64, shape (n_classes, degree)
        The factors' classes, with repeats; -1 where there is none.
    signs : ndarray of float64, shape (n_classes,)
        -1, 0 or 1.
    strengths : ndarray of shape (n_classes,)
        What each class adds to the correlation on the rows it was found on.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.estimate_error(made.labels, made.proba, pc.LowDegree(1)).witness
    >>> witness.factors.shape, witness.signs.tolist()
    ((4, 1), [-1.0, -1.0, -1.0, -1.0])
    """

    factors: Annotated[Ints, Array("int64", "n_classes degree", low=-1, below="n_classes")]
    signs: Annotated[Float64s, Array("float64", "n_classes", low=-1, high=1)]
    strengths: Annotated[Float64s, Array("float64", "n_classes")]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "monomial"

    def evaluate(self, proba: Floats) -> Float64s:
        """The signed monomials."""
        out = np.tile(self.signs, (proba.shape[0], 1))
        # A last column of ones for the absent factors; float32 may be a little above 1.
        padded = np.minimum(np.concatenate([proba, np.ones((proba.shape[0], 1))], axis=1), 1.0)
        for column in self.factors.T:
            out *= padded[:, column]
        return out

    def describe(self) -> str:
        """The monomials of the classes that count most."""
        strongest = [int(c) for c in np.argsort(-self.strengths, kind="stable")[:3] if self.strengths[c] > 0]
        if not strongest:
            return "no class"
        return ", ".join(f"{self._monomial(c)} for {self.name(c)}" for c in strongest)

    def _monomial(self, c: int) -> str:
        sign = "-" if self.signs[c] < 0 else ""
        names = [f"p({self.name(int(i))})" for i in self.factors[c] if i >= 0]
        return sign + (" ".join(names) or "1")

    def to_steps(self) -> Program:
        """The product of the factors, each chosen by a matrix of zeros and ones."""
        factors = [(_factor(column, self.n_classes),) for column in self.factors.T]
        return (Product((_constants(self.signs), *factors)),)


def _constants(values: Float64s) -> Program:
    """The same values for every row."""
    return (Linear(np.zeros((values.size, values.size)), values),)


def _factor(classes: Ints, n_classes: int) -> Linear:
    """The probability of one class for each column; 1 where the class is -1."""
    chosen = (classes == np.arange(n_classes)[:, None]).astype(np.float64)
    return Linear(chosen, (classes < 0).astype(np.float64))


@dataclass(frozen=True, eq=False)
class BestMonomials:
    """For each class l the monomial with the largest ``|E z_l v^e|`` found.

    Attributes
    ----------
    factors : ndarray of int64, shape (n_classes, degree)
        The factors of each class's monomial, -1 where there is none.
    correlations : ndarray of float64, shape (n_classes,)
        ``E z_l v^e``, with its sign.
    is_exact : bool
        Whether no monomial of at most the degree does better.
    n_tried : int
        Number of pairs of a class and a monomial whose correlation was computed.
    """

    factors: Ints
    correlations: Float64s
    is_exact: bool
    n_tried: int


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of a class and a monomial, with a bound on the correlation of all multiples of the monomial."""

    classes: Ints
    factors: Ints
    bounds: Float64s

    def take(self, rows: Ints | Bools) -> "_Pairs":
        return _Pairs(self.classes[rows], self.factors[rows], self.bounds[rows])


def best_monomials(sample: Sample, degree: int, max_terms: int) -> BestMonomials:
    """Search all monomials of at most ``degree``, extending at most ``max_terms`` pairs of each degree.

    Each pair (class l, monomial e) is extended by all k factors in one matrix product. As 0 <= v <= 1, no multiple
    of e has a correlation larger in absolute value than the larger of E z_l^+ v^e and E z_l^- v^e. Pairs for which
    that is no more than the best found for l are dropped, which loses nothing.
    """
    k = sample.n_classes
    best = np.full((k, degree), -1, dtype=np.int64)
    correlations, pairs = _degree_zero(sample)
    is_exact, n_tried = True, k
    for length in range(1, degree + 1):
        pairs = pairs.take(pairs.bounds > np.abs(correlations)[pairs.classes])
        if pairs.classes.size > max_terms:
            is_exact = False
            pairs = pairs.take(np.argsort(-pairs.bounds, kind="stable")[:max_terms])
        if pairs.classes.size == 0:
            break
        values = _extended(sample, pairs)
        n_tried += values.size
        _record(best, correlations, pairs, values)
        if length < degree:
            positive = _extended(sample, pairs, positive=True)
            pairs = _children(pairs, np.maximum(positive, positive - values), correlations)
    return BestMonomials(best, correlations, is_exact, n_tried)


def _degree_zero(sample: Sample) -> tuple[Float64s, _Pairs]:
    """The mean residuals, and the pairs of each class with the monomial 1."""
    k = sample.n_classes
    correlations, positive = np.zeros(k), np.zeros(k)
    for rows in row_blocks(sample.n_samples, k):
        residual = _residual(sample, rows)
        correlations += residual.sum(axis=0)
        positive += np.maximum(residual, 0.0).sum(axis=0)
    bounds = np.maximum(positive, positive - correlations)
    return correlations, _Pairs(np.arange(k), np.empty((k, 0), dtype=np.int64), bounds)


def _extended(sample: Sample, pairs: _Pairs, *, positive: bool = False) -> Float64s:
    """``E z_l v^e v_i`` for each pair (l, e) and each class i; with z_l^+ in place of z_l when ``positive``."""
    out = np.zeros((pairs.classes.size, sample.n_classes))
    for rows in row_blocks(sample.n_samples, max(pairs.classes.size, sample.n_classes)):
        residual = _residual(sample, rows)
        if positive:
            np.maximum(residual, 0.0, out=residual)
        proba = np.minimum(sample.proba[rows], 1.0, dtype=np.float64)
        columns = np.ascontiguousarray(proba.T)
        weights = np.ascontiguousarray(residual.T)[pairs.classes]
        for factor in pairs.factors.T:
            weights *= columns[factor]
        out += weights @ proba
    return out


def _residual(sample: Sample, rows: slice) -> Float64s:
    """``mass_i (y_i - v_i)`` of a block of rows."""
    residual: Float64s = np.negative(sample.proba[rows], dtype=np.float64)
    residual[np.arange(rows.stop - rows.start), sample.labels[rows]] += 1.0
    if sample.sample_weight is None:
        residual /= sample.n_samples
    else:
        residual *= (sample.sample_weight[rows] / sample.sample_weight.sum())[:, None]
    return residual


def _record(best: Ints, correlations: Float64s, pairs: _Pairs, values: Float64s) -> None:
    """Take over, in place, every extension that beats the best of its class."""
    added = np.argmax(np.abs(values), axis=1)
    reached = values[np.arange(added.size), added]
    for row in np.argsort(np.abs(reached), kind="stable"):
        c = pairs.classes[row]
        if abs(reached[row]) > abs(correlations[c]):
            correlations[c] = reached[row]
            monomial = np.sort(np.append(pairs.factors[row], added[row]))
            best[c, : monomial.size] = monomial


def _children(pairs: _Pairs, bounds: Float64s, correlations: Float64s) -> _Pairs:
    """The extensions that may still lead to something better, each once."""
    rows, added = np.nonzero(bounds > np.abs(correlations)[pairs.classes, None])
    factors = np.sort(np.column_stack([pairs.factors[rows], added]), axis=1)
    keys = np.column_stack([pairs.classes[rows], factors])
    _, once = np.unique(keys, axis=0, return_index=True)
    return _Pairs(pairs.classes[rows][once], factors[once], bounds[rows, added][once])

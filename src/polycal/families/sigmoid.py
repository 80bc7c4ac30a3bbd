"""Sigmoids of linear functions of the prediction."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from polycal._threads import map_threads, one_blas_thread
from polycal._typing import Float64s, Ints, Seed
from polycal._validation import check_integer, check_real, keep_seed
from polycal.families._ascent import Effort, Points, ascend, distinct_points, spread, start_directions
from polycal.families.auditor import Auditor, coordinate_contributions, cross_fit, weighted_rows
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.witness import DirectionsWitness, leading_classes, scaled
from polycal.sample import Sample, row_blocks
from polycal.steps import Affine, Program
from polycal.steps import Sigmoid as SigmoidStep
from polycal.storage.rules import Array, Real


@dataclass(frozen=True)
class Sigmoid(Notion):
    r"""Sigmoid calibration: is each class right on either side of any soft threshold?

    Parameters
    ----------
    slope : float, default 8
        L, at least 1: how sharp the thresholds may be. The error grows with it, towards that of `Halfspace`.

    Notes
    -----
    Definition: each coordinate of the weight is :math:`\tanh(L\langle a, v\rangle + b)` with
    :math:`a \in [-1, 1]^k` and any b (the family :math:`\Sigma_L` of [1]_); so the error is at most L times that
    of `ProjectedSmooth`. Estimator: gradient ascent for all coordinates at once, on a ladder of slopes 1, 2, 4,
    ..., L where each rung starts from the one below: a lower bound, which never falls from L to 2L when
    L is a power of 2. A search looks at no more than 32,768 distinct predictions; the value is that of the
    whole sample. Cost: some hundred passes of two matrix products, O(n k^2) each. Bias: upwards.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Section
       "Efficient Auditing for Projected Smooth Calibration".

    Examples
    --------
    >>> import polycal as pc
    >>> estimate = pc.estimate_error([1, 1, 0, 0], [0.2, 0.2, 0.8, 0.8], pc.Sigmoid(4))
    >>> round(estimate.value, 3), estimate.kind
    (1.574, 'lower bound')
    """

    slope: float = 8.0
    name: ClassVar[str] = "sigmoid"

    def __post_init__(self) -> None:
        check_real(self.slope, "slope", low=1, high=1e6)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        rungs = ladder(float(self.slope))
        points = distinct_points(sample)
        found = climb(points, rungs, Effort.for_classes(sample.n_classes))
        witness = sigmoid_witness(sample, found[-1].in_order_of(points))
        return ErrorEstimate(
            value=float(witness.contributions.sum()),
            kind="lower bound",
            notion=self,
            method=f"gradient ascent over {len(rungs)} slopes",
            n_steps=len(rungs),
            n_samples=sample.n_samples,
            witness=witness,
        )


@dataclass(frozen=True, eq=False, repr=False)
class SigmoidWitness(DirectionsWitness):
    """w_l(v) = tanh(L <a_l, v> + b_l) for each class l.

    Attributes
    ----------
    slope : float
        L.
    directions : ndarray of shape (k, k)
        a_l in row l, with entries in [-1, 1].
    offsets : ndarray of shape (k,)
        b_l.
    leading : ndarray of int64, shape (k, few)
        For each class l the classes that move ``<a_l, v>`` most where l is likely, most so first.
    contributions : ndarray of shape (k,)
        ``E (y_l - v_l) w_l(v)`` on the sample the witness was found on.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.SigmoidAuditor().find_witness(made.labels, made.proba)
    >>> witness.directions.shape, witness(made.proba).shape
    ((4, 4), (800, 4))
    """

    slope: Annotated[float, Real()]
    directions: Float64s
    offsets: Annotated[Float64s, Array("float64", "n_classes")]
    leading: Ints
    contributions: Float64s
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "sigmoid"

    def _weights(self, values: Float64s) -> Float64s:
        return np.tanh(self.slope * values + self.offsets)

    def _weight_steps(self) -> Program:
        # tanh(x) = 2 sigmoid(2 x) - 1.
        doubled = Affine(np.array([2.0 * self.slope]), 2.0 * self.offsets)
        return doubled, SigmoidStep(), scaled(2.0, -1.0)

    def restricted(self, classes: Ints) -> "SigmoidWitness":
        """The same on some classes, tanh(0) = 0 on the others."""
        kept = np.isin(np.arange(self.n_classes), classes).astype(np.float64)
        return replace(
            self,
            directions=kept[:, None] * self.directions,
            offsets=kept * self.offsets,
            contributions=kept * self.contributions,
        )


# tanh(20) is 1 in double precision: an offset this far beyond the slope makes a constant.
_BEYOND = 20.0
# All starts climb a little, the best few of each coordinate to the end.
_SCREENING_STEPS = 8
_MAX_FINALISTS = 2
# Entries of the directions that climb at once.
_BATCH_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class Sigmoids:
    """The weights ``tanh(<curve_l, v> + offset_l)``, with entries of each curve in [-slope, slope].

    Attributes
    ----------
    slope : float
        L.
    curves : ndarray of shape (k, k)
        L times the direction of each coordinate.
    offsets, values : ndarray of shape (k,)
        The offsets, and the correlations with the residual.
    """

    slope: float
    curves: Float64s
    offsets: Float64s
    values: Float64s

    def in_order_of(self, points: Points) -> "Sigmoids":
        """The same, in the order of classes of the sample that `points` are from."""
        return Sigmoids(
            self.slope,
            points.by_class_square(self.curves),
            points.by_class(self.offsets),
            points.by_class(self.values),
        )


def ladder(slope: float) -> list[float]:
    """1, 2, 4, ... and at last ``slope``."""
    rungs = []
    rung = 1.0
    while rung < slope:
        rungs.append(rung)
        rung *= 2
    return [*rungs, slope]


@one_blas_thread()
def climb(points: Points, slopes: Sequence[float], effort: Effort, seed: int = 0) -> list[Sigmoids]:
    """The strongest sigmoids found at each slope; a rung starts from the one below, so values never fall."""
    fresh = start_directions(points, effort.n_random, seed)
    middle = -fresh @ points.proba.mean(axis=0)
    climber = _Climber(points, effort)
    found: list[Sigmoids] = []
    for slope in slopes:
        starts = [np.column_stack([slope * fresh, slope * middle])]
        certain = _constants(points, slope)
        if found:
            last = np.column_stack([found[-1].curves, found[-1].offsets])
            starts.append(slope / found[-1].slope * last)
            certain = np.vstack([certain, last])
        found.append(climber.best(np.vstack([*starts, certain]), certain, slope))
    return found


def _constants(points: Points, slope: float) -> Float64s:
    """The weight sign(R_l) for each coordinate."""
    k = points.n_classes
    sign = np.where(points.residual.sum(axis=0) < 0, -1.0, 1.0)
    return np.column_stack([np.zeros((k, k)), (slope + _BEYOND) * sign])


class _Climber:
    """Ascent for all coordinates at once, in single precision; only the winners are valued in double.

    Positions (m, k + 1) hold a curve and its offset each, and come in sets of k, one for each coordinate.
    """

    def __init__(self, points: Points, effort: Effort) -> None:
        self._points = points
        self._proba = points.proba.astype(np.float32)
        self._residual = points.residual.astype(np.float32)
        self._metric = np.append(spread(points.proba), 1.0)
        self._effort = effort

    def best(self, starts: Float64s, certain: Float64s, slope: float) -> Sigmoids:
        """The best of each coordinate from `starts`; never worse than `certain`."""
        k = self._points.n_classes
        size = k * max(1, _BATCH_CELLS // k**2)
        batches = [self._screen(starts[i : i + size], slope) for i in range(0, starts.shape[0], size)]
        positions, values = (np.concatenate(part) for part in zip(*batches, strict=True))
        screened = self._pick(positions, values, min(_MAX_FINALISTS, self._effort.n_finalists))
        finalists = np.vstack([certain, self._ascend(screened, slope, self._effort.n_steps)[0]])
        position = self._pick(finalists, self._exact(finalists), 1)
        return Sigmoids(slope, position[:, :-1], position[:, -1], self._exact(position))

    def _screen(self, starts: Float64s, slope: float) -> tuple[Float64s, Float64s]:
        """Turn round what comes out negative, and climb a little."""
        values, _ = self._correlate(starts, np.arange(starts.shape[0]))
        return self._ascend(np.where(values[:, None] < 0, -starts, starts), slope, _SCREENING_STEPS)

    def _ascend(self, starts: Float64s, slope: float, n_steps: int) -> tuple[Float64s, Float64s]:
        return ascend(
            self._correlate, lambda x: _into_family(x, slope), starts, n_steps, self._metric, reach=slope / 2
        )

    def _pick(self, positions: Float64s, values: Float64s, n_best: int) -> Float64s:
        """The best few positions of each coordinate, in sets of k again."""
        k = self._points.n_classes
        order = np.argsort(-values.reshape(-1, k), axis=0, kind="stable")[:n_best]
        picked: Float64s = positions[(order * k + np.arange(k)).ravel()]
        return picked

    def _correlate(self, positions: Float64s, rows: Ints) -> tuple[Float64s, Float64s]:
        """``sum_i z_il tanh(<c, v_i> + b)`` and its gradient by (c, b): two matrix products a block."""
        coordinate = rows % self._points.n_classes
        curves, offsets = positions[:, :-1].astype(np.float32), positions[:, -1].astype(np.float32)

        def correlate_block(block: slice) -> tuple[Float64s, Float64s]:
            proba, residual = self._proba[block], self._residual[block][:, coordinate]
            weight = np.tanh(proba @ curves.T + offsets)
            values = np.einsum("ij,ij->j", residual, weight)
            residual *= 1 - np.square(weight, out=weight)
            gradient = np.column_stack([residual.T @ proba, residual.sum(axis=0)])
            return values.astype(np.float64), gradient.astype(np.float64)

        blocks = list(row_blocks(self._points.n_points, rows.size))
        parts = map_threads(correlate_block, blocks)
        return np.sum([part[0] for part in parts], axis=0), np.sum([part[1] for part in parts], axis=0)

    def _exact(self, positions: Float64s) -> Float64s:
        """The correlations in double precision."""
        coordinate = np.arange(positions.shape[0]) % self._points.n_classes
        values = np.zeros(coordinate.size)
        for block in row_blocks(self._points.n_points, coordinate.size):
            weight = np.tanh(self._points.proba[block] @ positions[:, :-1].T + positions[:, -1])
            values += np.einsum("ij,ij->j", self._points.residual[block][:, coordinate], weight)
        return values


def _into_family(positions: Float64s, slope: float) -> Float64s:
    """Shift a curve's middle into its offset (predictions sum to 1), then clip both."""
    curves, offsets = positions[:, :-1], positions[:, -1]
    middle = (curves.max(axis=1) + curves.min(axis=1)) / 2
    limit = slope + _BEYOND
    return np.column_stack(
        [np.clip(curves - middle[:, None], -slope, slope), np.clip(offsets + middle, -limit, limit)]
    )


@dataclass(frozen=True)
class SigmoidAuditor(Auditor):
    r"""Look for soft thresholds on weighted sums of the probabilities beyond which each class is wrong.

    Parameters
    ----------
    slope : float, default 8
        L, at least 1: how sharp the thresholds may be.
    n_starts : int, default 2
        Random directions tried for each class, beside those that the data suggest.
    random_state : int, Generator or None, default 0
        Seed of the random directions and of the halves.

    Notes
    -----
    The witness is one of `Sigmoid`: :math:`\tanh(L\langle a_\ell, v\rangle + b_\ell)` for each class :math:`\ell`.
    Slopes 1, 2, 4, ..., L are tried: each half of the rows judges what was found on the other; the
    slope that does best is then searched for on all rows, and classes whose contribution does not hold up
    get weight 0. Cost: two searches in all on n rows, each of some ten passes of O(n k^2) for each slope.

    Examples
    --------
    >>> import polycal as pc
    >>> fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> pc.SigmoidAuditor(4).find_witness(fit.labels[:4000], fit.proba[:4000]).correlation(fresh) > 0.05
    True
    """

    slope: float = 8.0
    _: KW_ONLY
    n_starts: int = 2
    random_state: Seed = 0

    def __post_init__(self) -> None:
        check_real(self.slope, "slope", low=1, high=1e6)
        check_integer(self.n_starts, "n_starts", minimum=0)
        keep_seed(self)

    def find(self, sample: Sample) -> SigmoidWitness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        level, kept = cross_fit(sample, self._levels, self.random_state)
        return self._levels(sample)[level].restricted(np.flatnonzero(kept))

    def _levels(self, sample: Sample) -> list[SigmoidWitness]:
        """The sigmoids of each slope."""
        points = distinct_points(sample)
        effort = Effort(self.n_starts, n_finalists=2, n_steps=15)
        rungs = climb(points, ladder(float(self.slope)), effort, self.random_state)
        return [sigmoid_witness(sample, rung.in_order_of(points)) for rung in rungs]


def sigmoid_witness(sample: Sample, found: Sigmoids) -> SigmoidWitness:
    """The sigmoids as a witness, each turned round where it comes out negative."""
    directions, offsets = found.curves / found.slope, found.offsets
    leading = leading_classes(sample, directions)
    blank = SigmoidWitness(
        found.slope, directions, offsets, leading, found.values, sample.n_classes, sample.class_names
    )
    values, _ = coordinate_contributions(blank, sample)
    sign = np.where(values < 0, -1.0, 1.0)
    return replace(
        blank, directions=sign[:, None] * directions, offsets=sign * offsets, contributions=np.abs(values)
    )

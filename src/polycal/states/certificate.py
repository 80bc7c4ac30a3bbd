"""A certificate that grows with the rows, and the reading that goes with it."""

from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._typing import Float64s, Ints, Seed
from polycal._validation import check_integer, check_level, check_real, check_seed, check_witness, class_set
from polycal.families.witness import Witness
from polycal.inference.certificate import Certificate, Reading, correlation_bound
from polycal.sample import Question, Sample, ask_members
from polycal.states.base import State, plain_set
from polycal.states.sums import Runs
from polycal.states.tally import CELL, MOST_PLAYED, Bets
from polycal.storage.rules import Array, ClassSet, Part, Real, Text, Whole, expect


class CertificateState(State):
    r"""Judge a witness on any number of rows that it was not found on.

    Parameters
    ----------
    witness : Witness
        A weight function found on other rows. One with a kernel given by a function cannot be used, as it cannot be
        saved.
    alpha : float, default 0.05
        The probability that the lower bound is wrong, at most.
    random_state : int, Generator or None, default 0
        Seed of the orders in which rows are bet on.
    most_played : int, optional
        Rows beyond which the game is replaced by fixed bets (see Notes), to save memory: the game takes about 100 bytes
        a row. At most, and by default, 524,288. Not saved with the state.

    See Also
    --------
    certify : The same for rows in memory.

    Notes
    -----
    `finish` returns a `Certificate`. Its estimate and standard error come from running sums and are those of
    `certify` to rounding.

    The betting game of `certify` depends on the order of the rows, but plays them sorted and then shuffled: how
    often each value occurs is all it needs. So the state is a tally of the correlations :math:`x_i`, rounded down
    to :math:`2^{-18}` of their range. If the mean of x is at most m, so is that of the rounded values; the bound
    therefore holds exactly, for a mean that rounding lowers by at most :math:`2^{-18}` of the range
    (8e-6 for a yes/no question). Beyond ``most_played`` rows the game is replaced by a mixture of fixed bets, whose
    bound lies about twice as far below the estimate as the central limit theorem's: at such n that is little.

    Cost: evaluating the witness; memory: at most :math:`2^{18}` values and counts for each distinct weight.

    Examples
    --------
    >>> import polycal as pc
    >>> fit, test = (pc.datasets.load_fashion(part) for part in ("calibration", "evaluation"))
    >>> witness = pc.estimate_error(fit.labels, fit.proba, pc.Confidence(smooth=True)).witness
    >>> certificate = pc.CertificateState(witness).update(test.labels, test.proba).finish()
    >>> abs(certificate.lower_bound - pc.certify(witness, test.labels, test.proba).lower_bound) < 1e-4
    True
    """

    family: ClassVar[str] = "certificate"

    witness: Annotated[Witness, Part((Witness,))]
    alpha: Annotated[float, Real(low=0, high=1)]
    random_state: Annotated[int, Whole()]
    _tally: Annotated[Runs, Part((Runs,))]
    _sums: Annotated[Float64s, Array("float64", "5")]

    def __init__(
        self, witness: Witness, *, alpha: float = 0.05, random_state: Seed = 0, most_played: int | None = None
    ) -> None:
        super().__init__()
        self.witness: Witness = check_witness(witness)
        self.alpha = check_level(alpha)
        self.random_state = check_seed(random_state)
        asked = MOST_PLAYED if most_played is None else check_integer(most_played, "most_played", minimum=1)
        self.most_played = min(asked, MOST_PLAYED)
        # Value and weight are the keys, the number of rows is what adds up.
        self._tally = Runs(2, np.zeros((3, 0)))
        # See `moments`.
        self._sums = np.zeros(5)

    def finish(self) -> Certificate:
        """The certificate of all rows."""
        self._seen()
        bound = correlation_bound(self.witness)
        lower, p = self._verdict()
        return Certificate(
            estimate=self.estimate,
            lower_bound=2.0 * bound * lower - bound,
            p_value=p,
            alpha=self.alpha,
            n_samples=self.n_samples,
            witness=self.witness,
            std_error=bound * self._standard_error(),
        )

    @property
    def estimate(self) -> float:
        """The mean correlation of all rows, without a verdict."""
        return correlation_bound(self.witness) * float(self._sums[1] / self._sums[0])

    @property
    def moments(self) -> Float64s:
        """Sums of u, u y, u^2, u^2 y and u^2 y^2 for weights u and y the correlation over its bound."""
        return self._sums.copy()

    def _check_sums(self, n_classes: int) -> None:
        expect(self.witness.n_classes == n_classes, "the witness must be of the same classes")
        expect(self._tally.n_keys == 2, "values and weights must be the keys")
        cells, weight, count = self._tally.check_columns(3)
        whole = (cells == np.floor(cells)).all() and (count == np.floor(count)).all()
        expect(
            whole and (cells >= 0).all() and (cells * CELL <= 1).all(), "values must be multiples of a cell"
        )
        expect((weight > 0).all() and (count >= 1).all(), "weights and counts must be positive")
        expect(count.sum() <= self.n_samples, "no more rows must be counted than were seen")
        total, gain, square, *_ = self._sums
        expect(
            self._is_total([total, weight @ count]),
            "the weights of the tally must add up to that of all rows",
        )
        expect(abs(gain) <= total * (1.0 + 1e-6) and square >= 0, "correlations must be at most their bound")

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - row numbers do not matter
        counted = np.flatnonzero(weight)
        u = weight[counted]
        y = self.witness.correlations(sample)[counted] / correlation_bound(self.witness)
        y = y.clip(-1.0, 1.0)
        cells = np.floor((y + 1.0) * (0.5 / CELL))
        self._tally.add(np.stack([cells, u, np.ones(u.size)]))
        self._sums += [u.sum(), u @ y, u @ u, (u * u) @ y, (u * u) @ (y * y)]

    def _merge(self, other: "CertificateState") -> None:
        self._tally.merge(other._tally)
        self._sums += other._sums

    def _verdict(self) -> tuple[float, float]:
        """The lower bound of the scaled mean, and the p-value of "it is at most 1/2"."""
        bets = Bets(self._tally.whole(), self.random_state, self.most_played)
        return bets.lower(self.alpha), bets.p_value(0.5)

    def _standard_error(self) -> float:
        """The standard error of the ratio of sums."""
        total, gain, square, square_gain, square_gain_gain = self._sums
        mean = gain / total
        n = float(self._tally.whole()[2].sum())
        squares = square_gain_gain - 2.0 * mean * square_gain + mean**2 * square
        return float(np.sqrt(n / max(n - 1.0, 1.0) * max(squares, 0.0)) / total)


class ReadingState(State):
    """What a question says and what happened, over the rows whose prediction lies in a range.

    Parameters
    ----------
    members : list of int or None
        The classes that count as "yes"; None: "is the label among the `top` most likely classes?".
    low, high : float
        The range (low, high] of predictions, chosen on other rows.
    top : int, default 1
        How many most likely classes count as "yes" if no `members` are given.

    Notes
    -----
    `finish` returns a `Reading`. Cost: O(n); memory: five numbers.

    Examples
    --------
    >>> import polycal as pc
    >>> reading = pc.states.ReadingState([1], 0.5, 1.0).update([0, 1, 1, 0], [0.2, 0.6, 0.8, 0.7]).finish()
    >>> round(reading.predicted, 3), round(reading.observed, 3), reading.share
    (0.7, 0.667, 0.75)
    """

    family: ClassVar[str] = "reading"

    members: Annotated[Any, ClassSet()]
    low: Annotated[float, Real(low=-1, high=1)]
    high: Annotated[float, Real(low=-1, high=1)]
    top: Annotated[int, Whole(low=1)]
    _text: Annotated[str, Text()]
    _sums: Annotated[Float64s, Array("float64", "4", low=0)]

    def __init__(self, members: Any, low: float, high: float, *, top: int = 1) -> None:
        super().__init__()
        self.members = plain_set(members)
        self.top = check_integer(top, "top", minimum=1)
        self.low, self.high = check_real(low, "low", low=-1, high=1), check_real(high, "high", low=-1, high=1)
        self._text = ""
        # Weight, weighted prediction, weighted "yes", and weighted half of what lists leave in doubt, inside the range.
        self._sums = np.zeros(4)

    def finish(self) -> Reading:
        """The averages over all rows in the range; NaN if there are none."""
        self._seen()
        weight, *sums = self._sums.tolist()
        predicted, observed, doubt = (
            (total / weight for total in sums) if weight > 0 else (np.nan, np.nan, 0.0)
        )
        share = weight / self.total_weight
        return Reading(self._text, max(self.low, 0.0), self.high, predicted, observed, share, doubt)

    def _check_sums(self, n_classes: int) -> None:
        self._open(n_classes)
        most = self.total_weight * (1.0 + 1e-6)
        weight, *sums = self._sums
        inside = max(sums) <= weight * (1.0 + 1e-6)
        expect(weight <= most and inside, "means must be at most 1")

    def _open(self, n_classes: int) -> None:
        if self.members is not None:
            self.members = class_set(self.members, n_classes, self.class_names, "members").tolist()

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - row numbers do not matter
        question = self._ask(sample)
        inside = (question.predicted > self.low) & (question.predicted <= self.high)
        w = weight * inside
        self._sums += [w.sum(), w @ question.predicted, w @ question.answers, w @ question.doubt]
        self._text = question.text

    def _merge(self, other: "ReadingState") -> None:
        self._sums += other._sums
        self._text = other._text

    def _ask(self, sample: Sample) -> Question:
        return ask_members(sample, self.top if self.members is None else np.array(self.members))

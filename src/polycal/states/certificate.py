"""A certificate that grows with the rows, and the reading that goes with it."""

import hashlib
from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_integer, check_real
from polycal.families.witness import Witness, rebuild_witness
from polycal.inference.betting import lower_bound, mixture_lower_bound, mixture_p_value, p_value, set_up
from polycal.inference.bounds import check_level, check_seed
from polycal.inference.certificate import Certificate, Reading, correlation_bound
from polycal.sample import Sample, ask_confidence, ask_subset
from polycal.states.base import State
from polycal.states.sums import Runs
from polycal.storage.model import Arrays

# Correlations, scaled to [0, 1], are rounded down to multiples of this.
_CELL = 2.0**-18
# More rows than this are too many for the sequential game; there the mixture of fixed bets is sharp enough.
_MOST_PLAYED = 1 << 21
_PREFIX = "witness_"


class CertificateState(State):
    r"""Judge a witness on any number of rows that it was not found on.

    Parameters
    ----------
    witness : Witness
        A weight function found on other rows. One with a kernel given by a function cannot be used, as it cannot be
        saved.
    alpha : float, default 0.05
        The probability that the lower bound is wrong, at most.
    random_state : int, default 0
        Seed of the orders in which rows are bet on.
    most_played : int, optional
        Rows beyond which the game is replaced by fixed bets (see Notes), to save memory: the game takes about 100 bytes
        a row. At most, and by default, two million. Not saved with the state.

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
    >>> from polycal.states.certificate import CertificateState
    >>> fit, test = (pc.datasets.load_fashion(part) for part in ("calibration", "evaluation"))
    >>> witness = pc.estimate_error(fit.labels, fit.proba, pc.Confidence(smooth=True)).witness
    >>> certificate = CertificateState(witness).update(test.labels, test.proba).finish()
    >>> abs(certificate.lower_bound - pc.certify(witness, test.labels, test.proba).lower_bound) < 1e-4
    True
    """

    family: ClassVar[str] = "certificate"

    def __init__(
        self, witness: Witness, *, alpha: float = 0.05, random_state: int = 0, most_played: int | None = None
    ) -> None:
        super().__init__()
        if not isinstance(witness, Witness):
            raise TypeError(f"witness must be a witness, as an auditor finds; got {type(witness).__name__}.")
        self.witness = witness
        self.alpha = check_level(alpha)
        self.random_state = check_seed(random_state)
        asked = _MOST_PLAYED if most_played is None else check_integer(most_played, "most_played", minimum=1)
        self.most_played = min(asked, _MOST_PLAYED)
        self._digest = _digest(witness)
        # Value and weight are the keys, the number of rows is what adds up.
        self._tally = Runs(2, np.zeros((3, 0)))
        # Sums of u, u y, u^2, u^2 y, u^2 y^2 for weights u and y the correlation over its bound.
        self._sums = np.zeros(5)

    def finish(self) -> Certificate:
        """The certificate of all rows."""
        self._seen()
        bound = correlation_bound(self.witness)
        lower, p = self._verdict()
        return Certificate(
            estimate=bound * float(self._sums[1] / self._sums[0]),
            lower_bound=2.0 * bound * lower - bound,
            p_value=p,
            alpha=self.alpha,
            n_samples=self.n_samples,
            witness=self.witness,
            std_error=bound * self._standard_error(),
        )

    def parameters(self) -> dict[str, Any]:
        """The witness (its checksum), level and seed."""
        return {
            "witness": {
                "family": self.witness.kind,
                "n_classes": self.witness.n_classes,
                "class_names": None if self.witness.class_names is None else list(self.witness.class_names),
                "sha256": self._digest,
            },
            "alpha": self.alpha,
            "random_state": self.random_state,
        }

    def arrays(self) -> Arrays:
        """The witness, the tally and the sums."""
        witness = {_PREFIX + name: array for name, array in self.witness.state().items()}
        return {**witness, "tally": self._tally.whole(), "sums": self._sums}

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:
        """A state from what was saved."""
        own = {name.removeprefix(_PREFIX): a for name, a in arrays.items() if name.startswith(_PREFIX)}
        witness = rebuild_witness(parameters["witness"], own)
        state = cls(witness, alpha=parameters["alpha"], random_state=parameters["random_state"])
        state._tally = Runs(2, arrays["tally"])
        state._sums = arrays["sums"]
        return state

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - places do not matter
        counted = np.flatnonzero(weight)
        u = weight[counted]
        y = self.witness.correlations(sample)[counted] / correlation_bound(self.witness)
        y = y.clip(-1.0, 1.0)
        cells = np.floor((y + 1.0) * (0.5 / _CELL))
        self._tally.add(np.stack([cells, u, np.ones(u.size)]))
        self._sums += [u.sum(), u @ y, u @ u, (u * u) @ y, (u * u) @ (y * y)]

    def _merge(self, other: "CertificateState") -> None:
        self._tally.merge(other._tally)
        self._sums += other._sums

    def _verdict(self) -> tuple[float, float]:
        """The lower bound of the scaled mean, and the p-value of "it is at most 1/2"."""
        cells, weight, count = self._tally.whole()
        values = cells * _CELL
        if count.sum() > self.most_played:
            table = values, weight / weight.max(), count
            return mixture_lower_bound(*table, self.alpha), mixture_p_value(*table, 0.5)
        times = count.astype(np.int64)
        same = (weight == weight[0]).all()
        stake = None if same else np.repeat(weight, times)
        game = set_up(np.repeat(values, times), stake, self.random_state)
        return lower_bound(game, self.alpha), p_value(game, 0.5)

    def _standard_error(self) -> float:
        """The standard error of the ratio of sums."""
        total, gain, square, square_gain, square_gain_gain = self._sums
        mean = gain / total
        n = float(self._tally.whole()[2].sum())
        squares = square_gain_gain - 2.0 * mean * square_gain + mean**2 * square
        return float(np.sqrt(n / max(n - 1.0, 1.0) * max(squares, 0.0)) / total)


def _digest(witness: Witness) -> str:
    """A checksum of the witness."""
    digest = hashlib.sha256(witness.kind.encode())
    for name, array in sorted(witness.state().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class ReadingState(State):
    """What a question says and what happened, over the rows whose prediction lies in a range.

    Parameters
    ----------
    members : list of int or None
        The classes that count as "yes"; None: "is the most likely class right?".
    low, high : float
        The range (low, high] of predictions, chosen on other rows.

    Notes
    -----
    `finish` returns a `Reading`. Cost: O(n); memory: five numbers.

    Examples
    --------
    >>> from polycal.states.certificate import ReadingState
    >>> reading = ReadingState([1], 0.5, 1.0).update([0, 1, 1, 0], [0.2, 0.6, 0.8, 0.7]).finish()
    >>> round(reading.predicted, 3), round(reading.observed, 3), reading.share
    (0.7, 0.667, 0.75)
    """

    family: ClassVar[str] = "reading"

    def __init__(self, members: Any, low: float, high: float) -> None:
        super().__init__()
        self.members = None if members is None else np.array(members, dtype=np.int64)
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

    def parameters(self) -> dict[str, Any]:
        """Question and range."""
        members = None if self.members is None else self.members.tolist()
        return {"members": members, "low": self.low, "high": self.high}

    def arrays(self) -> Arrays:
        """The sums, and the question in words."""
        return {"sums": self._sums, "text": np.array(self._text)}

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:
        """A state from what was saved."""
        state = cls(**parameters)
        state._sums[: arrays["sums"].size], state._text = arrays["sums"], str(arrays["text"])
        return state

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - places do not matter
        question = ask_confidence(sample) if self.members is None else ask_subset(sample, self.members)
        inside = (question.predicted > self.low) & (question.predicted <= self.high)
        w = weight * inside
        low, high = question.ranges
        self._sums += [w.sum(), w @ question.predicted, w @ question.hits, w @ (high - low) / 2.0]
        self._text = question.text

    def _merge(self, other: "ReadingState") -> None:
        self._sums += other._sums
        self._text = other._text

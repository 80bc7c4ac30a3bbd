"""The mean of models that few rows can carry, weighed by how well each predicts rows it has not seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from scipy.special import expit, softmax

from polycal._threads import map_threads
from polycal._typing import Float64s, Floats, Ints
from polycal.calibrators.kernel import tuning
from polycal.calibrators.kernel.neighbours import Neighbourhood, choose_neighbourhood
from polycal.calibrators.kernel.trial import Gain
from polycal.calibrators.loss import log_proba, losses_and_proba, to_residual, total_weight, working_dtype
from polycal.calibrators.optimise import scipy_lbfgs
from polycal.calibrators.regression import rows_without
from polycal.calibrators.temperature import fit_inverse_temperature, temperature_steps
from polycal.sample import Sample
from polycal.steps import Affine, Log, Program, Softmax, Sum, run

Result = TypeVar("Result")


def fit_temperature(sample: Sample) -> Program:
    """Temperature scaling, maximum a posteriori."""
    return temperature_steps(1.0 / fit_inverse_temperature(sample, log_proba(sample)))


def fit_vector(sample: Sample) -> Program:
    """``(1 - e) softmax(exp(a + a_j) log v_j + b_j) + e u``, maximum a posteriori; for two classes, a beta curve.

    The background u is half class frequencies and half uniform. With a background the loss has two valleys where the
    input is over-confident: the better of two searches is taken.
    """
    k, total = sample.n_classes, total_weight(sample)
    counts = np.bincount(sample.labels, total * sample.mass, minlength=k).astype(np.float64)
    background: Float64s = 0.5 * (counts + 1.0) / (total + k) + 0.5 / k
    logs = log_proba(sample).astype(working_dtype(sample))
    width = np.concatenate(
        [[tuning.SLOPE], np.full(k, tuning.CLASS_SLOPE), np.full(k, tuning.SHIFT), [tuning.ODDS_WIDTH]]
    )
    centre = np.zeros(2 * k + 2)
    centre[-1] = tuning.ODDS

    def objective(point: Float64s) -> tuple[float, Float64s]:
        loss, gradient = _vector_loss(sample, logs, background, point)
        shift = (point - centre) / width
        return loss + 0.5 * float(shift @ shift) / total, gradient + shift / width / total

    starts = [np.concatenate([[slope], centre[1:]]) for slope in tuning.SLOPES]
    found = [scipy_lbfgs(objective, start, width**-2.0, tolerance=tuning.EXACT) for start in starts]
    scale, shift, mixed = _unpacked(min(found, key=lambda point: objective(point)[0]))
    return Log(), Affine(scale, shift), Softmax(), Affine(np.array([1.0 - mixed]), mixed * background)


def _unpacked(point: Float64s) -> tuple[Float64s, Float64s, float]:
    """Slopes, shifts, and the weight of the background."""
    k = point.size // 2 - 1
    return (
        np.exp(np.clip(point[0] + point[1 : k + 1], -20.0, 20.0)),
        point[k + 1 : -1],
        float(expit(point[-1])),
    )


def _vector_loss(
    sample: Sample, logs: Floats, background: Float64s, point: Float64s
) -> tuple[float, Float64s]:
    """Log loss, and its gradient."""
    scale, shift, mixed = _unpacked(point)
    logits = logs * scale.astype(logs.dtype) + shift.astype(logs.dtype)
    losses, proba = losses_and_proba(logits, sample.labels)
    own, common = np.exp(-losses), background[sample.labels]
    total = np.maximum((1.0 - mixed) * own + mixed * common, np.finfo(np.float64).tiny)
    part = sample.mass * (1.0 - mixed) * own / total
    residual = to_residual(proba, sample.labels, part.astype(logs.dtype))
    by_slope = np.einsum("ij,ij->j", residual, logs).astype(np.float64) * scale
    by_odds = -float(sample.mass @ ((common - own) / total)) * mixed * (1.0 - mixed)
    gradient = np.concatenate([[by_slope.sum()], by_slope, np.einsum("ij->j", residual), [by_odds]])
    return -float(sample.mass @ np.log(total)), gradient


# What the gains of the members, and of the pool, are called.
MEMBERS = ("temperature", "vector", "kernel", "neighbours")


@dataclass(frozen=True, eq=False)
class Pool:
    """``(1 - part) v + part m``, m between the linear and the geometric mean of the members.

    Attributes
    ----------
    shares : ndarray of shape (n_members,)
        Of sum 1.
    part : float
    neighbourhood : Neighbourhood, optional
        Without one, or a share, rows nearby are no member.
    gains : dict
        What each member, and the pool, gains on the input.
    """

    shares: Float64s
    part: float
    neighbourhood: Neighbourhood | None = None
    gains: dict[str, Gain] = field(default_factory=dict)

    @classmethod
    def of_kernel(cls, part: float) -> "Pool":
        """The kernel alone."""
        return cls(np.array([0.0, 0.0, 1.0, 0.0]), part)

    def members(self, sample: Sample, kernel: Program) -> list[Program]:
        """The maps, fitted to all rows, of those that have a share."""
        with_temperature, with_vector, _, with_neighbours = self.shares > 0.0
        vector = fit_vector(sample) if with_vector or with_neighbours else ()
        near = self.neighbourhood.steps(vector, sample) if self.neighbourhood and with_neighbours else ()
        return [fit_temperature(sample) if with_temperature else (), vector, kernel, near]

    def steps(self, members: Sequence[Program]) -> Program:
        """The pool as a program, given those of its members."""
        if self.part == 0.0:
            return ()
        used = [(program, share) for program, share in zip(members, self.shares, strict=True) if share > 0.0]
        mean = used[0][0] if len(used) == 1 else _mean_steps(used)
        if self.part == 1.0:
            return mean
        return (Sum(((_times(1.0 - self.part),), (*mean, _times(self.part)))),)


def _mean_steps(used: Sequence[tuple[Program, float]]) -> Program:
    """A part of the linear mean, and the rest of the geometric."""
    linear = [(*program, _times((1.0 - tuning.GEOMETRIC) * share)) for program, share in used]
    logs = tuple((*program, Log(tuning.POOL_FLOOR), _times(share)) for program, share in used)
    return (Sum((*linear, (Sum(logs), Softmax(), _times(tuning.GEOMETRIC)))),)


def _times(factor: float) -> Affine:
    return Affine(np.array([factor]), np.zeros(1))


def cross_fit(sample: Sample, folds: Sequence[slice]) -> tuple[Neighbourhood | None, list[Float64s]]:
    """Predictions of a sorted sample, each fold's without it: of temperature and vector scaling, and of rows nearby.

    The last need few rows of few classes.
    """
    fitted = without_folds(sample, folds, lambda _, rest: (fit_temperature(rest), fit_vector(rest)))
    temperatures, vectors = zip(*fitted, strict=True)
    held_out = [_held_out(sample, folds, programs) for programs in (temperatures, vectors)]
    if sample.n_samples > tuning.FEW_ROWS or sample.n_classes > tuning.LANDMARK_CLASSES:
        return None, held_out
    near = choose_neighbourhood(sample, folds, vectors)
    programs = without_folds(sample, folds, lambda number, rest: near.steps(vectors[number], rest))
    return near, [*held_out, _held_out(sample, folds, programs)]


def _held_out(sample: Sample, folds: Sequence[slice], programs: Sequence[Program]) -> Float64s:
    """Predictions of each fold by a program."""
    pairs = zip(programs, folds, strict=True)
    return np.concatenate([run(program, sample.proba[fold].astype(np.float64)) for program, fold in pairs])


def without_folds(
    sample: Sample, folds: Sequence[slice], use: Callable[[int, Sample], Result]
) -> list[Result]:
    """What is made of the rows without each fold, given its number; side by side where that takes long."""

    def of(number: int) -> Result:
        return use(number, sample.take(rows_without(sample.n_samples, folds[number])))

    return map_threads(of, range(len(folds)), -1 if sample.proba.size >= tuning.MANY_CELLS else 1)


def fit_pool(sample: Sample, groups: Ints, folds: Sequence[slice], kernel: Float64s, errors: float) -> Pool:
    """Members, shares and part, given what the kernel predicts of rows it has not seen.

    ``errors`` are the standard errors that are taken off what the pool gains on the input; ``groups`` are the numbers
    of groups of rows that are one observation.
    """
    near, (temperature, vector, *others) = cross_fit(sample, folds)
    shares, part, gains = weigh(sample, groups, [temperature, vector, kernel, *others], errors)
    return Pool(shares, part, near, gains)


def weigh(
    sample: Sample, groups: Ints, held_out: Sequence[Float64s], errors: float
) -> tuple[Float64s, float, dict[str, Gain]]:
    """Shares, part and gains, given what members predict of rows they have not seen; the last may be missing."""
    table = np.maximum(np.stack(held_out), tuning.POOL_FLOOR)
    shares = _stack(sample, table, _prior_shares(total_weight(sample), len(table)))
    mean = _mean(table[shares > 0.0], shares[shares > 0.0])
    part = _part(sample, groups, mean, errors)
    given = _floored(sample.proba)
    pooled = (1.0 - part) * given + part * mean
    named = {**dict(zip(MEMBERS, table, strict=False)), "pool": pooled}
    gains = {name: _gain(sample, groups, given, proba) for name, proba in named.items()}
    return np.pad(shares, (0, len(MEMBERS) - shares.size)), part, gains


def _prior_shares(total: float, n_members: int) -> Float64s:
    """Those of temperature and vector scaling fall beyond EVEN_ROWS rows; below SCARCE_ROWS the first gets more."""
    scarce, enough = min(1.0, tuning.EVEN_ROWS / total), min(1.0, total / tuning.SCARCE_ROWS)
    temperature, vector, near = tuning.PRIOR_SHARES
    prior = np.array([scarce * temperature, scarce * vector, 0.0, near][:n_members])
    prior[2] = 1.0 - prior.sum()
    prior *= enough
    prior[0] += 1.0 - enough
    return prior


def _gain(sample: Sample, groups: Ints, given: Float64s, proba: Float64s) -> Gain:
    """What predictions of rows not seen save of the input's log loss."""
    rows = np.arange(sample.n_samples)
    gain = np.log(proba[rows, sample.labels] / given[rows, sample.labels])
    return Gain(*_mean_and_error(sample, groups, gain), np.nan)


def _mean_and_error(sample: Sample, groups: Ints, values: Float64s) -> tuple[float, float]:
    """The mean of the rows, and its standard error by groups."""
    mean = float(sample.mass @ values)
    return mean, float(np.linalg.norm(np.bincount(groups, sample.mass * (values - mean))))


def _floored(proba: Floats) -> Float64s:
    """Predictions without zeros."""
    return np.maximum(proba, np.finfo(np.float64).eps, dtype=np.float64)


def _stack(sample: Sample, table: Float64s, prior: Float64s) -> Float64s:
    """Shares c that maximise the log likelihood of the linear pool, with a Dirichlet prior and surprising rows.

    A surprising row has any class for its label: n rows without a mistake do not show that there is none.
    """
    own = table[:, np.arange(sample.n_samples), sample.labels]
    other = table[:, :: _stride(sample)].reshape(len(table), -1)
    weight = total_weight(sample) * sample.mass
    surprises = _surprises(sample)
    total = float(weight.sum()) + surprises + tuning.PRIOR_ROWS

    def objective(logit: Float64s) -> tuple[float, Float64s]:
        shares = softmax(logit)
        seen, surprise = shares @ own, shares @ other
        value = float(weight @ np.log(seen)) + surprises * float(np.log(surprise).mean())
        value += tuning.PRIOR_ROWS * float(prior @ np.log(np.maximum(shares, 1e-300)))
        slope = own @ (weight / seen) + surprises * (other / surprise).mean(axis=1)
        by_logit = shares * (slope - shares @ slope) + tuning.PRIOR_ROWS * (prior - shares)
        return -value / total, -by_logit / total

    logit = scipy_lbfgs(objective, np.log(prior), np.ones(prior.size), tolerance=tuning.EXACT)
    # More digits would be those of rounding in the members.
    shares = np.round(softmax(logit), tuning.SHARE_DIGITS)
    shares[shares < tuning.NEGLIGIBLE] = 0.0
    return np.asarray(shares / shares.sum())


def _mean(table: Float64s, shares: Float64s) -> Float64s:
    """A part of the linear mean, and the rest of the geometric."""
    linear = np.einsum("m,mij->ij", shares, table)
    geometric = run((Softmax(),), np.einsum("m,mij->ij", shares, np.log(table)))
    return np.asarray((1.0 - tuning.GEOMETRIC) * linear + tuning.GEOMETRIC * geometric)


def _part(sample: Sample, groups: Ints, mean: Float64s, errors: float) -> float:
    """The part of the mean whose gain on the input, less some standard errors, is largest; 0 where none is above 0.

    The gain counts surprising rows too; its standard error does not.
    """
    rows, stride, total = np.arange(sample.n_samples), _stride(sample), total_weight(sample)
    given = _floored(sample.proba)
    own = mean[rows, sample.labels] / given[rows, sample.labels]
    other = mean[::stride] / given[::stride]
    best, part, surprises = 0.0, 0.0, _surprises(sample)
    for tried in tuning.PARTS_OF_POOL:
        gain = np.log1p(tried * (own - 1.0))
        by_row, error = _mean_and_error(sample, groups, gain)
        surprise = surprises / total * float(np.log1p(tried * (other - 1.0)).mean())
        if by_row + surprise - errors * error > best:
            best, part = by_row + surprise - errors * error, tried
    return part


def _surprises(sample: Sample) -> float:
    """How many surprising rows are counted."""
    return tuning.SURPRISES * min(1.0, tuning.SURPRISED_ROWS / total_weight(sample)) ** 2


def _stride(sample: Sample) -> int:
    """Surprising rows are taken from every so manieth row, where there are many."""
    return max(1, sample.proba.size // tuning.SURPRISING)

"""What audited rounds look for by default: predictions that are too sure or not sure enough, and then anything else."""

from dataclasses import dataclass, replace

import numpy as np

from polycal._typing import Float64s, Floats, Seed
from polycal.families.auditor import Auditor, weighted_rows
from polycal.families.witness import Witness
from polycal.inference.certificate import certify_sample
from polycal.sample import Sample, split_rows
from polycal.steps import Affine, Clip, Log, Program, Softmax, run

# Of the logarithms' sizes: so many are not clipped, and none is taken for less than the smallest.
_QUANTILE, _SMALLEST = 0.95, 1e-3
# A step may change differences of logarithms by this share: a temperature of 4 at most.
_LARGEST_CHANGE = 0.75
# Predictions that no temperature up to this makes flat enough are wrong in other ways, which flattening would hide.
_HIGHEST_TEMPERATURE = 8.0
# The chance to take noise for an error of this kind, and so to look for no other.
_LEVEL = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class SharpnessWitness(Witness):
    """w_l(v) = c log(k v_l), clipped to [-1, 1]: a step along it in logits is a change of the temperature.

    It has no ``family``: what a calibrator keeps of it are its steps.

    Attributes
    ----------
    slope : float
        c: negative where predictions are too sure.
    """

    slope: float
    n_classes: int
    class_names: tuple[str, ...] | None = None

    def evaluate(self, proba: Floats) -> Float64s:
        """The clipped logarithms."""
        return run(self.to_steps(), proba.astype(np.float64))

    def describe(self) -> str:
        """The direction, in words."""
        return "are all predictions too sure?" if self.slope < 0 else "are all predictions not sure enough?"

    def to_steps(self) -> Program:
        """Logarithms, shifted and scaled."""
        return Log(), _scaled(self.slope, float(np.log(self.n_classes))), Clip(-1.0, 1.0)

    @property
    def longest_step(self) -> float:
        """Up to this step in logits, predictions that differ stay clearly different."""
        return _LARGEST_CHANGE / abs(self.slope)


def sharpness_witness(sample: Sample) -> SharpnessWitness:
    """The witness of nearly all predictions within its range, with the sign that correlates on the sample."""
    sizes = np.abs(run((Log(),), sample.proba.astype(np.float64)) + np.log(sample.n_classes))
    slope = 1.0 / max(float(np.quantile(sizes, _QUANTILE)), _SMALLEST)
    witness = SharpnessWitness(slope, sample.n_classes, sample.class_names)
    return witness if witness.correlation(sample) > 0.0 else replace(witness, slope=-slope)


def is_temperature(witness: SharpnessWitness, sample: Sample) -> bool:
    """Whether the sample's best temperature, by the witness's own measure, is not beyond the highest."""
    proba = sample.proba.astype(np.float64)
    flat = run((Log(), _scaled(1.0 / _HIGHEST_TEMPERATURE), Softmax()), proba)
    weights = witness.evaluate(proba)
    hit = weights[np.arange(sample.n_samples), sample.labels]
    return witness.slope > 0.0 or float(sample.mass @ (hit - (weights * flat).sum(axis=1))) < 0.0


def _scaled(factor: float, shift: float = 0.0) -> Affine:
    return Affine(np.array([factor]), np.array([factor * shift]))


@dataclass(frozen=True)
class SharpnessFirst(Auditor):
    """A `SharpnessWitness` as long as one holds up, and then what another auditor finds.

    Temperature is the commonest error, has one parameter, and is repaired without a trace; what the witnesses of larger
    families do to it, one clipped step after the other, takes many rounds and leaves more behind.

    Parameters
    ----------
    then : Auditor
        Asked where no error of sharpness above the tolerance is seen.
    tolerance : float
        What the lower bound of a `SharpnessWitness` has to exceed on a third of the rows.
    random_state : int, Generator or None, default 0
        Seed of the parts.
    """

    then: Auditor
    tolerance: float = 0.0
    random_state: Seed = 0

    def find(self, sample: Sample) -> Witness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        fit, held_back = (sample.take(rows) for rows in split_rows(sample, (2, 1), self.random_state))
        if fit.n_samples and held_back.n_samples:
            witness = sharpness_witness(fit)
            bound = certify_sample(witness, held_back, _LEVEL, self.random_state).lower_bound
            if bound > self.tolerance and is_temperature(witness, fit):
                return witness
        return self.then.look(sample)

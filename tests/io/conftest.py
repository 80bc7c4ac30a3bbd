"""Predictions to write and read."""

from dataclasses import dataclass

import numpy as np
import pytest


@dataclass(frozen=True)
class Predictions:
    labels: np.ndarray
    proba: np.ndarray
    weight: np.ndarray
    names: tuple[str, ...]

    def agree_with(self, sample) -> bool:
        """Whether a sample holds exactly these."""
        return (
            np.array_equal(sample.proba, self.proba)
            and sample.proba.dtype == self.proba.dtype
            and np.array_equal(sample.labels, self.labels)
            and np.array_equal(sample.sample_weight, self.weight)
            and sample.class_names == self.names
        )


def make_predictions(n_samples=30, n_classes=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n_samples).astype(dtype)
    names = ("cat", 'the "big", dog', "émeu", *(f"class {i}" for i in range(3, n_classes)))
    return Predictions(rng.integers(0, n_classes, n_samples), proba, rng.random(n_samples), names[:n_classes])


@pytest.fixture(name="make_predictions")
def fixture_make_predictions():
    return make_predictions


@pytest.fixture
def predictions():
    return make_predictions()


@pytest.fixture
def damaged():
    """Truncations and single flipped bytes of a file: (truncated, flipped), as two generators."""

    def truncations(data, n=120):
        yield from (
            data[:cut] for cut in sorted({*range(0, len(data), max(1, len(data) // n)), len(data) - 1})
        )

    def flips(data, n=300):
        for place in range(0, len(data), max(1, len(data) // n)):
            yield data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]

    return lambda data: (truncations(data), flips(data))

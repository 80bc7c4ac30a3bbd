import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests import reference_kernel as reference

from polycal.families.reduction import KernelLearner
from polycal.kernels.kernels import Gaussian, Laplace, Multinomial


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(3), 15), rng.uniform(-1, 1, 15)


@pytest.mark.parametrize("weighted", [False, True])
def test_algorithm_one_is_the_loops(data, weighted):
    X, z = data
    weight = np.arange(15.0) if weighted else None
    learner = KernelLearner(Multinomial(3)).fit(X, z, sample_weight=weight)
    u = z if weight is None else z * weight

    def ker(v, w):
        return reference.multinomial(v, w, 3)

    lam = np.sqrt(sum(u[i] * u[j] * ker(X[i], X[j]) for i in range(15) for j in range(15)))
    at = np.concatenate([X, np.eye(3)])
    loops = [sum(u[i] * ker(X[i], v) for i in range(15)) / (2 * lam) for v in at]
    np.testing.assert_allclose(learner.predict(at), loops, atol=1e-12)
    assert np.abs(learner.predict(at)).max() <= 1


def test_no_signal_gives_zero(data):
    X, _ = data
    assert not np.any(KernelLearner().fit(X, np.zeros(15)).predict(X))
    balanced = KernelLearner(Laplace(0.5)).fit(np.concatenate([X, X]), np.repeat([1, -1], 15))
    assert not np.any(balanced.predict(X))


@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_the_theorem_holds(radius):
    # A finite support with known E[z | x]: the best correlation over B(r) is r times a norm.
    kernel, delta = Multinomial(2), 0.1
    support, mean, mass = (
        np.array([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6]]),
        np.array([0.5, -0.4]),
        np.array([0.6, 0.4]),
    )
    alpha = radius * np.sqrt((mass * mean) @ kernel.block(support, support) @ (mass * mean))
    n = int(np.ceil(144 * radius**2 * kernel.bound / alpha**2))
    rng = np.random.default_rng(0)
    reached = []
    for _ in range(100):
        # A sample of a finite support is its counts: rows with weights.
        counts = rng.multinomial(n, np.concatenate([mass * (1 + mean), mass * (1 - mean)]) / 2)
        rows, targets = np.tile(support, (2, 1)), np.repeat([1, -1], 2)
        h = KernelLearner(kernel).fit(rows, targets, sample_weight=counts).predict(support)
        reached.append(np.sum(mass * mean * h) >= alpha / (3 * radius * np.sqrt(kernel.bound)))
    assert np.mean(reached) >= 1 - delta


def test_it_is_a_scikit_learn_estimator(data):
    learner = clone(KernelLearner(Gaussian("median")))
    with pytest.raises(NotFittedError):
        learner.predict(data[0])
    assert learner.fit(*data).score(*data) < 1
    assert learner.kernel_.scale > 0
    assert learner.get_params() == {"kernel": Gaussian("median")}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda X, z: KernelLearner().fit(X, 2 * np.ones(15)),
            ValueError,
            r"y\[0\] is not a number from -1 to 1",
        ),
        (lambda X, z: KernelLearner().fit(X, z[:3]), ValueError, "one target per row"),
        (lambda X, z: KernelLearner().fit(X, ["a"] * 15), TypeError, "y must hold numbers"),
        (lambda X, z: KernelLearner().fit(3 * X, z), ValueError, r"X\[0\] does not sum to 1"),
        (
            lambda X, z: KernelLearner().fit(X, z, sample_weight=[1.0]),
            ValueError,
            "sample_weight has 1 entries",
        ),
        (lambda X, z: KernelLearner("rbf").fit(X, z), TypeError, "kernel must be a kernel"),
        (
            lambda X, z: KernelLearner().fit(X, z).predict(np.eye(2)),
            ValueError,
            "X has 2 classes but the learner was fitted on 3",
        ),
    ],
)
def test_bad_input_is_refused(data, call, error, message):
    with pytest.raises(error, match=message):
        call(*data)

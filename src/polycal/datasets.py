"""The shipped predictions of a real network, and generators whose true error is known."""

from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any, Literal

import numpy as np

from polycal._typing import Float64s, Floats, Ints, Seed
from polycal._validation import (
    check_features,
    check_integer,
    check_positive,
    check_proba,
    check_real,
    check_seed,
    check_weight,
)
from polycal.inference.redraw import draw_labels
from polycal.io.groups import read_groups
from polycal.io.predictions import read_predictions
from polycal.sample import Sample

# Cat and dog: how far each probability swings, and the shares of the two pairs (unequal, so that no two tie).
_SWING = 0.12
_CAT_SHARE = 0.52


@dataclass(frozen=True, eq=False, repr=False)
class Generated:
    """Predictions and labels drawn from a known distribution.

    Attributes
    ----------
    labels, proba : ndarray of shape (n_samples,) and (n_samples, n_classes)
        Class indices and predictions.
    class_names : tuple of str, or None
        Names of the classes.
    truth : dict of str to float
        True errors, as n grows: "canonical" of `Canonical`; "subset" of `smooth_calibration_error` on
        `subset`; "confidence", "top-label" and "classwise" of these notions with ``smooth=True``. Those
        without a closed form are left out: `population` gives any of them.
    subset : list of int, or None
        The classes whose summed probability is wrong.
    support, conditionals : ndarray of shape (n_distinct, n_classes)
        The distribution: the predictions, and the true distribution of the label given each of them.
    probabilities : ndarray of float64, shape (n_distinct,)
        How often each prediction is made.

    Examples
    --------
    >>> make_cat_and_dog(1000).class_names, round(make_cat_and_dog(1000).truth["subset"], 3)
    (('cat', 'dog', 'car', 'boat'), 0.024)
    """

    labels: Ints
    proba: Floats
    class_names: tuple[str, ...] | None
    truth: dict[str, float]
    subset: list[int] | None
    support: Floats
    conditionals: Floats
    probabilities: Float64s

    def population(self) -> tuple[Ints, Floats, Float64s]:
        """Compute a weighted sample that is the whole distribution: the error of any notion on it is the true one.

        It has a row for each prediction and each class that may follow it, weighted by their probability. Where
        predictions are continuous, these are the ones drawn: the distribution given the predictions.

        Returns
        -------
        labels, proba, sample_weight : ndarray
        """
        joint = self.probabilities[:, None] * self.conditionals
        point, label = np.nonzero(joint)
        return label, self.support[point], joint[point, label]

    def __repr__(self) -> str:
        n, k = self.proba.shape
        truth = ", ".join(f"{name} {value:.4g}" for name, value in self.truth.items())
        return f"Generated(n_samples={n}, n_classes={k}, truth: {truth})"


def make_calibrated(
    n_samples: int, n_classes: int, *, concentration: float = 1.0, random_state: Seed = 0
) -> Generated:
    """Make perfectly calibrated predictions: each label is drawn from its prediction. Every error is 0.

    Parameters
    ----------
    n_samples, n_classes : int
    concentration : float, default 1
        Parameter of the Dirichlet distribution of predictions: small values make them confident.
    random_state : int, Generator or None, default 0

    Returns
    -------
    Generated

    Examples
    --------
    >>> make_calibrated(100, 5)
    Generated(n_samples=100, n_classes=5, truth: canonical 0, confidence 0, top-label 0, classwise 0)
    """
    rng = _check_sizes(n_samples, n_classes, random_state)
    check_real(concentration, "concentration", low=1e-3)
    proba = rng.dirichlet(np.full(n_classes, concentration), n_samples)
    truth = {"canonical": 0.0, "confidence": 0.0, "top-label": 0.0, "classwise": 0.0}
    return _generate(proba, proba, np.full(n_samples, 1 / n_samples), slice(None), rng, truth)


def make_cat_and_dog(
    n_samples: int, *, n_classes: int = 4, error: float = 0.2, random_state: Seed = 0
) -> Generated:
    r"""Make the paper's example: every class is calibrated, "cat or dog" is not.

    Class-wise, confidence and top-label calibration hold exactly. Yet a quarter of the time "cat or dog" is
    predicted `error` too low, and a quarter of the time `error` too high.

    Parameters
    ----------
    n_samples : int
    n_classes : int, default 4
        At least 4: cat, dog, car and boat; further classes share a twentieth of the probability, correctly.
    error : float, default 0.2
        By how much the probability of "cat or dog" is off where it is: from 0 (calibrated) to 0.2.
    random_state : int, Generator or None, default 0

    Returns
    -------
    Generated

    Notes
    -----
    With independent fair signs c and d, and M = 1 (0.95 beyond four classes): cat has probability
    :math:`0.26 M + 0.12 c`, car the rest of :math:`0.52 M`; dog :math:`0.24 M + 0.12 d`, boat the rest of
    :math:`0.48 M`. Truly cat has :math:`d \cdot error/2` more and car as much less, dog :math:`c \cdot error/2`
    more and boat as much less. So given c the gaps of cat and car average to 0, as do those of dog and boat given
    d: each class is calibrated. The most likely class is cat or car, as c says, so it is too. The gap of the
    pair is :math:`(c + d)\,error/2`: at predictions :math:`M/2 \pm 0.24` it is :math:`\pm error`, a quarter of the
    time each. A 1-Lipschitz weight differs by at most 0.48 between them, so

    .. math:: \mathrm{smCE} = \tfrac14 \cdot error \cdot 0.48 = 0.12\,error,

    and the canonical error is four gaps of error/2, or :math:`2\,error`.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Section 1.

    Examples
    --------
    >>> example = make_cat_and_dog(1000)
    >>> [example.class_names[c] for c in example.subset], round(example.truth["subset"], 6)
    (['cat', 'dog'], 0.024)
    """
    check_integer(n_classes, "n_classes", minimum=4)
    check_real(error, "error", low=0.0, high=0.2)
    n_others = n_classes - 4
    total = 1.0 if n_others == 0 else 0.95
    c, d = np.array([-1.0, -1.0, 1.0, 1.0]), np.array([-1.0, 1.0, -1.0, 1.0])
    cat_share, dog_share = _CAT_SHARE * total, (1.0 - _CAT_SHARE) * total
    cat, dog = cat_share / 2 + _SWING * c, dog_share / 2 + _SWING * d
    others = np.full((4, n_others), (1.0 - total) / max(n_others, 1))
    support = np.column_stack([cat, dog, cat_share - cat, dog_share - dog, others])
    gaps = np.column_stack([d, c, -d, -c, np.zeros_like(others)]) * error / 2
    truth = {
        "canonical": 2.0 * error,
        "confidence": 0.0,
        "top-label": 0.0,
        "classwise": 0.0,
        "subset": _SWING * error,
    }
    names = ("cat", "dog", "car", "boat", *(f"other {i + 1}" for i in range(n_others)))
    rng = _check_sizes(n_samples, n_classes, random_state)
    point = rng.integers(0, 4, n_samples)
    return _generate(support, support + gaps, np.full(4, 0.25), point, rng, truth, names, [0, 1])


def make_shifted_subset(
    n_samples: int,
    n_classes: int,
    *,
    subset_size: int | None = None,
    error: float = 0.1,
    random_state: Seed = 0,
) -> Generated:
    r"""Make predictions that give one subset of the classes a probability too low by a constant.

    Parameters
    ----------
    n_samples, n_classes : int
    subset_size : int, optional
        How many classes; the first ones. By default half of them.
    error : float, default 0.1
        By how much: from 0 to 0.5.
    random_state : int, Generator or None, default 0

    Returns
    -------
    Generated

    Notes
    -----
    The subset T has predicted probability u, uniform on [0, 1 - error], and true probability u + error. It is
    split inside T, and the rest outside T, by Dirichlet draws that are the same in truth and prediction. The
    residual of T is `error` whatever u is, so :math:`\mathrm{smCE}_T = error`, with the weight 1. The
    canonical error is :math:`2\,error`.

    Examples
    --------
    >>> make_shifted_subset(1000, 6, error=0.1)
    Generated(n_samples=1000, n_classes=6, truth: canonical 0.2, subset 0.1)
    """
    rng = _check_sizes(n_samples, n_classes, random_state)
    check_real(error, "error", low=0.0, high=0.5)
    size = n_classes // 2 if subset_size is None else subset_size
    check_integer(size, "subset_size", minimum=1, maximum=n_classes - 1)
    inside = rng.dirichlet(np.ones(size), n_samples)
    outside = rng.dirichlet(np.ones(n_classes - size), n_samples)
    u = rng.uniform(0.0, 1.0 - error, (n_samples, 1))
    proba = np.hstack([u * inside, (1.0 - u) * outside])
    conditionals = np.hstack([(u + error) * inside, (1.0 - u - error) * outside])
    truth = {"canonical": 2.0 * error, "subset": error}
    share = np.full(n_samples, 1 / n_samples)
    return _generate(proba, conditionals, share, slice(None), rng, truth, subset=list(range(size)))


def make_temperature(
    n_samples: int,
    n_classes: int,
    *,
    temperature: float = 0.5,
    n_distinct: int = 100,
    scale: float = 2.0,
    random_state: Seed = 0,
) -> Generated:
    """Make predictions that are too confident (or too cautious) by a temperature.

    Labels follow softmax(z), predictions are softmax(z / temperature), for normal logits z.

    Parameters
    ----------
    n_samples, n_classes : int
    temperature : float, default 0.5
        Below 1: too confident. Above 1: too cautious. At 1: calibrated.
    n_distinct : int, default 100
        Number of distinct predictions. Finitely many, so that `Generated.population` gives every true error.
    scale : float, default 2
        Standard deviation of the logits.
    random_state : int, Generator or None, default 0

    Returns
    -------
    Generated

    Examples
    --------
    >>> import polycal as pc
    >>> labels, proba, weight = make_temperature(1000, 10).population()
    >>> error = pc.calibration_error(labels, proba, pc.Confidence(smooth=True), sample_weight=weight)
    >>> bool(0.1 < error < 0.3)
    True
    """
    rng = _check_sizes(n_samples, n_classes, random_state)
    check_real(temperature, "temperature", low=1e-2)
    check_real(scale, "scale", low=0.0)
    logits = scale * rng.standard_normal((check_integer(n_distinct, "n_distinct", minimum=1), n_classes))
    support, _ = check_proba(logits / temperature, from_logits=True)
    conditionals, _ = check_proba(logits, from_logits=True)
    return make_finite(support, conditionals, np.ones(n_distinct), n_samples, random_state=random_state)


def make_finite(
    support: Any, conditionals: Any, probabilities: Any, n_samples: int, *, random_state: Seed = 0
) -> Generated:
    """Make samples of any distribution with finitely many predictions.

    Parameters
    ----------
    support : array-like of shape (n_distinct, n_classes)
        The predictions.
    conditionals : array-like of shape (n_distinct, n_classes)
        The true distribution of the label given each of them.
    probabilities : array-like of shape (n_distinct,)
        How often each is made; they are divided by their sum.
    n_samples : int
    random_state : int, Generator or None, default 0

    Returns
    -------
    Generated

    Examples
    --------
    >>> example = make_finite([[0.5, 0.5], [0.9, 0.1]], [[0.5, 0.5], [0.7, 0.3]], [0.5, 0.5], 100)
    >>> round(example.truth["canonical"], 6)
    0.2
    """
    v, _ = check_proba(support, name="support")
    q, _ = check_proba(conditionals, name="conditionals")
    p = check_weight(probabilities, "probabilities")
    if q.shape != v.shape or p.size != v.shape[0]:
        raise ValueError(
            f"support {v.shape}, conditionals {q.shape} and probabilities {p.shape} must have a row for each "
            "prediction and the same classes."
        )
    rng = _check_sizes(n_samples, v.shape[1], random_state)
    p = p / p.sum()
    truth = {"canonical": _canonical_error(v, q, p)}
    return _generate(v, q, p, rng.choice(p.size, n_samples, p=p), rng, truth)


def make_slices(
    n_samples: int, *, temperature: float = 0.6, pair: bool = False, random_state: int = 0
) -> Sample:
    """Make calibrated predictions with features, but for one slice, where two of ten classes are over-confident.

    Parameters
    ----------
    n_samples : int
    temperature : float, default 0.6
        By which the logits of the first two classes are divided in the slice; 1 is calibrated everywhere.
    pair : bool, default False
        Whether the slice is a conjunction (tablets in the north, 5 % of the rows) and not one value (tablets, 10 %).
    random_state : int, default 0

    Examples
    --------
    >>> make_slices(100).features.names
    ('device', 'region', 'age', 'is_new')
    """
    rng, share = _check_sizes(n_samples, 10, random_state), 0.2 if pair else 0.1
    device = rng.choice(["phone", "laptop", "tablet"], n_samples, p=[0.7 - share, 0.3, share])
    region, is_new = rng.choice(["north", "east", "south", "west"], n_samples), rng.random(n_samples) < 0.3
    age = np.where(rng.random(n_samples) < 0.05, np.nan, rng.integers(18, 90, n_samples))
    columns = {"device": device, "region": region, "age": age, "is_new": is_new}
    logits = 2.0 * rng.standard_normal((n_samples, 10))
    labels = draw_labels(check_proba(logits, from_logits=True)[0], rng)
    inside = (device == "tablet") & ((region == "north") | (not pair))
    logits[inside, :2] /= check_positive(temperature, "temperature")
    proba, _ = check_proba(logits, from_logits=True)
    return Sample(proba, labels, None, None, check_features(columns, n_samples))


def _generate(
    support: Floats,
    conditionals: Floats,
    probabilities: Float64s,
    point: Ints | slice,
    rng: np.random.Generator,
    truth: dict[str, float],
    class_names: tuple[str, ...] | None = None,
    subset: list[int] | None = None,
) -> Generated:
    """Draw a label for each of the points of the support."""
    labels = draw_labels(conditionals[point], rng)
    return Generated(labels, support[point], class_names, truth, subset, support, conditionals, probabilities)


def _canonical_error(support: Floats, conditionals: Floats, probabilities: Float64s) -> float:
    """E || E[y | v] - v ||_1, for predictions that may repeat."""
    _, group = np.unique(support, axis=0, return_inverse=True)
    gap = np.zeros(support.shape)
    np.add.at(gap, group, probabilities[:, None] * (conditionals - support.astype(np.float64)))
    return float(np.abs(gap).sum())


def _check_sizes(n_samples: Any, n_classes: Any, random_state: Any) -> np.random.Generator:
    """Validate what all generators share."""
    check_integer(n_samples, "n_samples", minimum=1)
    check_integer(n_classes, "n_classes", minimum=2)
    return np.random.default_rng(check_seed(random_state))


__all__ = [
    "load_fashion",
    "load_fashion_groups",
    "make_calibrated",
    "make_cat_and_dog",
    "make_finite",
    "make_shifted_subset",
    "make_slices",
    "make_temperature",
]

Part = Literal["all", "calibration", "evaluation"]


def load_fashion(part: Part = "all") -> Sample:
    """Load real predictions: a small neural network on 20,000 pictures of clothes, ten classes.

    Parameters
    ----------
    part : {"all", "calibration", "evaluation"}
        Which half: 10,000 rows to fit on, 10,000 to report on, or both.

    Returns
    -------
    Sample

    Examples
    --------
    >>> load_fashion("evaluation")
    Sample(n_samples=10000, n_classes=10, float32)
    """
    with as_file(files("polycal") / "data" / "fashion_mlp.npz") as path:
        return read_predictions(path, part=part)


def load_fashion_groups() -> dict[str, list[str | int]]:
    """Load named groups of the classes of `load_fashion`, such as "footwear".

    Returns
    -------
    dict of str to list of str

    Examples
    --------
    >>> load_fashion_groups()["footwear"]
    ['Sandal', 'Sneaker', 'Ankle_boot']
    """
    with as_file(files("polycal") / "data" / "fashion_mlp.groups.json") as path:
        return read_groups(path)

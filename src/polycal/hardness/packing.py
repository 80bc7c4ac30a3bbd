"""Points of the simplex far from each other and from the corners, and the two distributions on them.

With labels drawn anew the predictions are calibrated; with labels fixed once per point they are far from it. No
algorithm tells the two apart before a point is seen twice, after about the square root of their number of rows.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from polycal._typing import Float64s, Ints, Seed
from polycal._validation import check_integer, check_real, check_seed
from polycal.datasets import Generated, make_finite

# The paper's distance from the corners: at least this far, no outcome is nearly certain.
CORNER_DISTANCE = 1 / 3
# exp of more than this overflows.
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, eq=False, repr=False)
class Packing:
    """Points of the simplex at pairwise l1 distance at least `separation`, and 1/3 from every corner.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_classes)
        The points.
    separation : float
        The smallest l1 distance allowed.

    Examples
    --------
    >>> import polycal as pc
    >>> packing = pc.hardness.pack_simplex(4, 0.5)
    >>> packing.points.shape[1], packing.separation
    (4, 0.5)
    """

    points: Float64s
    separation: float

    @property
    def guaranteed(self) -> float:
        """How many points a maximal packing has at least; 0 or less says nothing.

        ``(1 - k (2/3)^(k-1)) / (2 separation)^(k-1)``, from the volumes of l1 balls in k - 1 dimensions.
        """
        return guaranteed_points(self.points.shape[1], self.separation)

    def __repr__(self) -> str:
        n, k = self.points.shape
        return f"Packing(n_points={n}, n_classes={k}, separation={self.separation:g}, guaranteed={self.guaranteed:.3g})"


def guaranteed_points(n_classes: int, separation: float) -> float:
    """How many points a maximal packing has at least; 0 or less says nothing, infinity that it is beyond floats."""
    share = 1 - n_classes * (2 / 3) ** (n_classes - 1)
    exponent = -(n_classes - 1) * math.log(2 * separation)
    return share * (math.exp(exponent) if exponent < _LARGEST_EXPONENT else math.inf)


def pack_simplex(
    n_classes: int,
    separation: float,
    *,
    max_points: int = 10_000,
    patience: int = 2_000,
    random_state: Seed = 0,
) -> Packing:
    """Pack the simplex greedily: take random points as long as they are far from those taken and from corners.

    Parameters
    ----------
    n_classes : int
        k, at least 3 (on a line between two corners the pairs of distributions are easy to tell apart).
    separation : float
        The smallest l1 distance between points, in (0, 2).
    max_points : int, default 10000
        Stop at this many.
    patience : int, default 2000
        Stop when this many random points in a row were too close: the packing is then nearly maximal.
    random_state : int, Generator or None, default 0
        Seed of the points.

    Returns
    -------
    Packing

    Notes
    -----
    The lemma on packings of the paper: a maximal packing covers the simplex with l1 balls of radius `separation`
    and the k balls of radius 1/3 around the corners, so it has at least ``Packing.guaranteed`` points. Cost:
    O(k) for each pair of a taken point and a candidate.

    Examples
    --------
    >>> import polycal as pc
    >>> packing = pc.hardness.pack_simplex(4, 0.5)
    >>> len(packing.points) >= packing.guaranteed
    True
    """
    check_integer(n_classes, "n_classes", minimum=3)
    check_real(separation, "separation", low=1e-6, high=2)
    check_integer(max_points, "max_points", minimum=1)
    check_integer(patience, "patience", minimum=1)
    rng = np.random.default_rng(check_seed(random_state))
    taken = np.empty((max_points, n_classes))
    size = misses = 0
    while size < max_points and misses < patience:
        for candidate in rng.dirichlet(np.ones(n_classes), 256):
            near = np.abs(taken[:size] - candidate).sum(axis=1).min(initial=np.inf)
            # ||v - e_i||_1 = 2 (1 - v_i).
            if near >= separation and 2 * (1 - candidate.max()) >= CORNER_DISTANCE:
                taken[size] = candidate
                size, misses = size + 1, 0
            else:
                misses += 1
            if size == max_points or misses == patience:
                break
    return Packing(taken[:size].copy(), float(separation))


def make_fresh_labels(packing: Packing, n_samples: int, *, random_state: Seed = 0) -> Generated:
    """Draw predictions uniformly from a packing, and each label from its prediction: every error is 0.

    Parameters
    ----------
    packing : Packing
    n_samples : int
    random_state : int, Generator or None, default 0

    Returns
    -------
    Generated

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.hardness.make_fresh_labels(pc.hardness.pack_simplex(4, 0.5), 100)
    >>> made.truth["canonical"]
    0.0
    """
    return _draw(packing, packing.points, n_samples, random_state, {"canonical": 0.0, "full-smooth": 0.0})


def make_fixed_labels(
    packing: Packing, n_samples: int, *, label_state: int = 0, random_state: Seed = 0
) -> Generated:
    """Draw predictions uniformly from a packing whose points each have one fixed label, drawn once from the point.

    Parameters
    ----------
    packing : Packing
    n_samples : int
    label_state : int, default 0
        Seed of the fixed labels: the distribution.
    random_state : int, Generator or None, default 0
        Seed of the rows: the sample.

    Returns
    -------
    Generated
        Its truth holds the canonical error, exactly, and a lower bound of the full smooth error.

    Notes
    -----
    A point v with label i has ``||e_i - v||_1 = 2 (1 - v_i) >= 1/3``, so the canonical error, its mean, is at least
    1/3. Each coordinate of the weights e_i at v is 0 or 1, so 1/separation-Lipschitz on the packing, and they correlate
    ``1 - v_i`` with the residual; scaled to be 1-Lipschitz they show a full smooth error of at least ``separation``
    times the mean of that, which is at least 1/6.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.hardness.make_fixed_labels(pc.hardness.pack_simplex(4, 0.5), 100)
    >>> made.truth["canonical"] > 0.3
    True
    """
    labels = fixed_labels(packing, label_state)
    conditionals = np.eye(packing.points.shape[1])[labels]
    surprise = 1 - packing.points[np.arange(labels.size), labels]
    scale = min(1.0, packing.separation)
    truth = {"canonical": float(2 * surprise.mean()), "full-smooth at least": float(scale * surprise.mean())}
    return _draw(packing, conditionals, n_samples, random_state, truth)


def repeat_probability(packing: Packing, n_samples: int) -> float:
    r"""Compute how likely it is that some point of a packing is drawn twice.

    Until that happens, fresh and fixed labels are the same distribution: no test that rejects calibrated predictions
    with probability at most a rejects the fixed ones with probability more than a plus this number.

    Parameters
    ----------
    packing : Packing
    n_samples : int

    Returns
    -------
    float

    Notes
    -----
    :math:`1 - \prod_{i < n} (1 - i/|V|) \le n (n - 1) / (2 |V|)`, the birthday problem.

    Examples
    --------
    >>> import polycal as pc
    >>> packing = pc.hardness.pack_simplex(6, 0.2, max_points=365)
    >>> round(pc.hardness.repeat_probability(packing, 23), 3)
    0.507
    """
    taken = np.arange(check_integer(n_samples, "n_samples", minimum=1)) / len(packing.points)
    return float(1 - np.prod(np.maximum(1 - taken, 0.0)))


def fixed_labels(packing: Packing, label_state: int) -> Ints:
    """One label per point, drawn from the point."""
    rng = np.random.default_rng(check_integer(label_state, "label_state", minimum=0))
    uniform = rng.random(len(packing.points))
    labels = (packing.points.cumsum(axis=1) <= uniform[:, None]).sum(axis=1)
    fixed: Ints = np.minimum(labels, packing.points.shape[1] - 1).astype(np.int64)
    return fixed


def _draw(
    packing: Packing, conditionals: Float64s, n_samples: int, random_state: int, truth: dict[str, float]
) -> Generated:
    """Rows of the uniform distribution on the packing, with its known errors."""
    uniform = np.ones(len(packing.points))
    made = make_finite(packing.points, conditionals, uniform, n_samples, random_state=random_state)
    return replace(made, truth=truth)

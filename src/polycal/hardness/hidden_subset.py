"""The cat-and-dog family: every class is calibrated, and a sum of classes is as wrong as it can be."""

from dataclasses import replace

import numpy as np

from polycal._typing import Float64s, Seed
from polycal._validation import check_integer, check_real
from polycal.datasets import Generated, make_finite

# Beyond this many classes on each side the number of distinct predictions, 2 s (s + 2), is no longer small.
_LARGEST_SIDE = 50


def largest_hidden_error(n_classes: int, *, sharpness: float = 0.1) -> float:
    r"""Compute the largest subset error that `make_hidden_subset` can hide.

    Parameters
    ----------
    n_classes : int
        k, at least 4: with 3 classes or fewer every set is a class or the complement of one, and nothing hides.
    sharpness : float, default 0.1
        As for `make_hidden_subset`.

    Returns
    -------
    float

    Examples
    --------
    >>> import polycal as pc
    >>> [round(pc.hardness.largest_hidden_error(k, sharpness=0), 4) for k in (4, 6, 100)]
    [0.1111, 0.1875, 0.471]
    """
    p = 1 / (_side(n_classes) + 1)
    check_real(sharpness, "sharpness", low=0, high=_largest_sharpness(p))
    return float((1 - sharpness) * (1 - p) * (1 - 2 * p) / 2)


def make_hidden_subset(
    n_samples: int,
    n_classes: int = 4,
    *,
    error: float | None = None,
    sharpness: float = 0.1,
    random_state: Seed = 0,
) -> Generated:
    r"""Make predictions that are class-wise, confidence and top-label calibrated, and wrong on a set of classes.

    Parameters
    ----------
    n_samples : int
    n_classes : int, default 4
        k, at least 4. Half of the classes, at most 50, are in the set T; as many are outside; the rest never occur
        and are never predicted.
    error : float, optional
        The smooth calibration error of T, from 0 (calibrated) to ``largest_hidden_error(n_classes)``, the default.
    sharpness : float, default 0.1
        By how much one class stands out in each prediction, so that the most likely class is never tied.
    random_state : int, Generator or None, default 0

    Returns
    -------
    Generated
        With the errors of every notion that has a closed form (see Notes).

    See Also
    --------
    polycal.datasets.make_cat_and_dog : The paper's example with two animals; smaller errors, simpler numbers.

    Notes
    -----
    Let T have s classes, and as many be outside; :math:`m = s + 1` and :math:`p = 1/m`. A row of kind A has one class
    of T, the lone one, and all s outside as its candidates; a row of kind B one class outside and all of T. Kinds and
    lone classes are uniform. A *top* class t is drawn uniformly from the m candidates S, independently, and

    .. math:: v = (1 - \delta)\,p\,1_S + \delta\,e_t, \qquad
              \Pr[y \mid v] = v + \theta (1 - \delta) (e_{lone} - p\,1_S),

    with :math:`\delta` the sharpness and :math:`\theta \in [0, 1]` set by `error`.

    *What is calibrated.* A class of T is a candidate in all rows of kind B and in a share 1/s of those of kind A, where
    it is the lone one; so given that it is a candidate it is the lone one with probability
    :math:`(1/s)/(1/s + 1) = p`. The top is drawn independently, so the same holds given that it is the top, and given
    that it is not. Hence the gap averages to 0 given :math:`v_j`, and given that j is the top: class-wise, top-label
    and confidence calibration hold exactly, for all functions :math:`\varphi`.

    *What is not.* With :math:`c = \theta (1 - \delta)`, "is it in T?" has gap :math:`+c (1 - p)` in rows A and
    :math:`-c (1 - p)` in rows B. Their predictions u have means p and 1 - p, and all of A lie below all of B as long
    as :math:`\delta \le (1 - \delta)(1 - 2 p)`. So the best weight falls with slope 1 between them:

    - :math:`\mathrm{smCE}_T = \tfrac12 c\,(1 - p)(1 - 2p)`, the largest of all sets ("subset", "subset-smooth");
    - "full-smooth" and "projected-smooth": :math:`4\,\mathrm{smCE}_T`. For a class of T, a mass
      :math:`c (1 - p)/(2 s)` of residual moves from its rows A to rows B. A pair of rows with the same top is at
      :math:`\ell_1` distance :math:`2 (1 - \delta)(1 - 2p)`, any other :math:`2 \delta` further; at most a share 2p
      can keep its top, so the mean is :math:`2 (1 - 2p)`. The direction :math:`1_T - 1_{\bar T}` attains it;
    - "canonical" and "halfspace": the mean of the gap's :math:`\ell_1` norm, :math:`2 c (1 - p)`; the halfspaces
      "u is low" and its negation attain it;
    - "decision at least": :math:`c\,p\,\sqrt{2 s}`, by the decision "u is low".

    *Nothing is larger.* Let a distribution be class-wise calibrated and :math:`|T| = |\bar T| = s`. For the falling
    weight :math:`\varphi(u) = \tfrac12 - u` and any number a, :math:`E\,\langle y - v, v \rangle = 0` gives
    :math:`E\,r \varphi(u) = E\,[r \varphi(u) - a (\|v\|_2^2 - v_y)]`. Take :math:`a = \tfrac32 - 2p`. If
    :math:`y \in T` and :math:`u \le \tfrac12`, then
    :math:`\|v\|_2^2 - v_y \ge u^2 - u + (1 - u)^2 / s`, and the bracket is at most a concave quadratic in u with its
    maximum at u = p, where it is :math:`M = \tfrac12 (1 - p)(1 - 2p)`. If :math:`u > \tfrac12`, the least value of
    :math:`\|v\|_2^2 - v_y` is :math:`(1 - u)(1 - 2u)/s - (s - 1)/(4 s)`, and the bracket is at most
    :math:`\frac{a (s - 1)}{4 s} - (1 - u)(u - \tfrac12)(1 - 2a/s) \le M`, since both :math:`4 s^2 \ge (3s - 1)(s + 1)`
    and :math:`s \ge 2a` say that :math:`(s - 1)^2 \ge 0`. The case :math:`y \notin T` is the same with 1 - u for u. So
    no such distribution has a larger error than M, which this family reaches as :math:`\delta \to 0`: 1/9 for four
    classes, 1/2 in the limit. Weights that do not fall are not covered by this proof; linear programs over all
    distributions on grids of four classes found none that does better.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Section 1: the
       example of cats and dogs.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.hardness.make_hidden_subset(1000, 6, error=0.1)
    >>> made.subset, made.truth["classwise"], round(made.truth["subset"], 6)
    ([0, 1, 2], 0.0, 0.1)
    """
    s = _side(n_classes)
    p = 1 / (s + 1)
    most = largest_hidden_error(n_classes, sharpness=sharpness)
    strength = 1.0 if error is None else check_real(error, "error", low=0, high=most) / most
    size = strength * (1 - sharpness)
    candidates, lone, top = _rows(s, n_classes)
    support = (1 - sharpness) * p * candidates + sharpness * top
    conditionals = np.maximum(support + size * (lone - p * candidates), 0.0)
    made = make_finite(support, conditionals, np.ones(len(support)), n_samples, random_state=random_state)
    return replace(made, truth=_truth(size, p, s), subset=list(range(s)))


def _side(n_classes: int) -> int:
    """s, the number of classes in the set."""
    return min(check_integer(n_classes, "n_classes", minimum=4) // 2, _LARGEST_SIDE)


def _largest_sharpness(p: float) -> float:
    """Where the highest prediction of kind A meets the lowest of kind B."""
    return (1 - 2 * p) / (2 - 2 * p)


def _rows(s: int, n_classes: int) -> tuple[Float64s, Float64s, Float64s]:
    """Indicators of the candidates, the lone class and the top, one row for each distinct prediction."""
    unit = np.eye(2 * s, n_classes)
    inside, outside = unit[:s].sum(axis=0), unit[s:].sum(axis=0)
    candidates = np.concatenate([unit[:s] + outside, unit[s:] + inside])
    row, top = np.nonzero(candidates)
    return candidates[row], unit[row], np.eye(n_classes)[top]


def _truth(size: float, p: float, s: int) -> dict[str, float]:
    """The errors that have a closed form."""
    subset = size * (1 - p) * (1 - 2 * p) / 2
    canonical = 2 * size * (1 - p)
    return {
        "canonical": canonical,
        "confidence": 0.0,
        "top-label": 0.0,
        "classwise": 0.0,
        "subset": subset,
        "subset-smooth": subset,
        "projected-smooth": 4 * subset,
        "full-smooth": 4 * subset,
        "halfspace": canonical,
        "decision at least": size * p * (2 * s) ** 0.5,
    }

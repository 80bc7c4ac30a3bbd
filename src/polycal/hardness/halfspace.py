"""Halfspaces with noise, hidden in the labels of two classes: what makes decision calibration hard to audit."""

from dataclasses import replace

import numpy as np

from polycal._typing import Float64s, Seed
from polycal._validation import check_integer, check_real, check_seed
from polycal.datasets import Generated, make_finite
from polycal.families.reduction import lift


def cube_to_simplex(corners: Float64s) -> Float64s:
    """Map corners of the cube {-1, 1}^(k-1) to the simplex of k classes, one to one and affinely.

    Parameters
    ----------
    corners : ndarray of shape (n, n_classes - 1)

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    parts = (1 + corners) / (2 * corners.shape[1])
    return np.column_stack([parts, 1 - parts.sum(axis=1)])


def make_hidden_halfspace(
    n_samples: int, n_classes: int, *, noise: float = 0.1, n_points: int = 256, random_state: Seed = 0
) -> Generated:
    r"""Make predictions whose errors follow a halfspace with noise, through the lift of the paper.

    Parameters
    ----------
    n_samples : int
    n_classes : int
        k, at least 3.
    noise : float, default 0.1
        How often the sign of the halfspace is wrong, at most 1/2. At 1/2 the predictions are calibrated.
    n_points : int, default 256
        How many random corners of the cube carry the distribution.
    random_state : int, Generator or None, default 0

    Returns
    -------
    Generated
        With the exact canonical error, and lower bounds of the decision and the halfspace error.

    Notes
    -----
    Corners x of the cube go to the simplex by an affine injection, on which halfspaces stay halfspaces. The target is
    z = h(x) with h a random halfspace, wrong with probability `noise`; predictions are lift(x), and labels follow
    :math:`\mathrm{lift}(x) + z (e_1 - e_2)/3`. Given x the mean of z is :math:`(1 - 2\,noise)\,h(x)`, so the residual
    is that times :math:`(e_1 - e_2)/3`: the canonical error is :math:`\frac23 (1 - 2\,noise)`, which the halfspaces h
    and -h in the first two coordinates attain. The weights :math:`h(x)\,(e_1 - e_2)/\sqrt2` are those of a
    decision between two actions, with correlation :math:`\frac{\sqrt2}{3} (1 - 2\,noise)`.

    Examples
    --------
    >>> import polycal as pc
    >>> round(pc.hardness.make_hidden_halfspace(100, 5, noise=0.2).truth["canonical"], 4)
    0.4
    """
    check_integer(n_classes, "n_classes", minimum=3)
    check_real(noise, "noise", low=0, high=0.5)
    check_integer(n_points, "n_points", minimum=1)
    rng = np.random.default_rng(check_seed(random_state))
    corners = np.unique(rng.choice([-1.0, 1.0], (n_points, n_classes - 1)), axis=0)
    target = np.where(corners @ rng.standard_normal(n_classes - 1) > 0, 1.0, -1.0)
    support = lift(cube_to_simplex(corners))
    shift = (1 - 2 * noise) / 3 * target
    conditionals = support.copy()
    conditionals[:, 0] += shift
    conditionals[:, 1] -= shift
    made = make_finite(support, conditionals, np.ones(len(corners)), n_samples, random_state=random_state)
    size = 1 - 2 * noise
    truth = {
        "canonical": 2 * size / 3,
        "halfspace": 2 * size / 3,
        "decision at least": 2**0.5 * size / 3,
    }
    return replace(made, truth=truth)

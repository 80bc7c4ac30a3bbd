"""Programs of several steps that more than one part of the library makes."""

import numpy as np

from polycal._typing import Float64s
from polycal.steps._base import Product, Program, Sum
from polycal.steps.columns import Clip, Linear


def squared_distances(points: Float64s, scale: float, largest: float) -> Program:
    """Squared Euclidean distances to the points, in units of the scale.

    Parameters
    ----------
    points : ndarray of shape (n_points, inputs)
    scale : float
    largest : float
        What no squared distance exceeds, in units of 1.
    """
    squares = np.einsum("ij,ij->i", points, points) / scale**2
    own_square = Product(((), ())), Linear(np.full((points.shape[1], 1), scale**-2), np.zeros(1))
    across = (Linear(points.T * (-2.0 / scale**2), squares),)
    # Rounding may leave a little less than 0.
    return Sum((across, own_square)), Clip(0.0, largest / scale**2)

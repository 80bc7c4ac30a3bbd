"""Programs of several steps that more than one part of the library makes."""

import numpy as np

from polycal._typing import Float64s
from polycal.steps._base import Product, Program, Sum
from polycal.steps.columns import Clip, Linear


def gaussian_exponents(points: Float64s, scale: float, largest: float) -> Program:
    """``-||x - point||^2 / (2 scale^2)`` for each of the points, of shape (n_points, inputs).

    Everything that can be is in the product's weights: no other pass over an array of all points is needed. The last
    argument is what no squared distance exceeds.
    """
    squares = np.einsum("ij,ij->i", points, points) * (-0.5 / scale**2)
    own_square = Product(((), ())), Linear(np.full((points.shape[1], 1), -0.5 / scale**2), np.zeros(1))
    across = (Linear(points.T / scale**2, squares),)
    # Rounding may leave a little more than 0.
    return Sum((across, own_square)), Clip(-0.5 * largest / scale**2, 0.0)

"""How large a degree the multinomial kernel needs, with explicit constants."""

import math

import numpy as np

from polycal._validation import check_real


def lipschitz_degree(tolerance: float) -> int:
    r"""Compute a degree that approximates every 1-Lipschitz function on [-1, 1] within `tolerance`.

    Parameters
    ----------
    tolerance : float
        Largest error allowed anywhere on [-1, 1]; positive.

    Returns
    -------
    int

    Notes
    -----
    Jackson's theorem with the best constant (Favard; Akhiezer and Krein): a 1-Lipschitz f has a polynomial of
    degree d within :math:`\frac{\pi}{2 (d + 1)}`, so :math:`d + 1 = \lceil \pi / (2\,\text{tolerance}) \rceil`.

    Examples
    --------
    >>> from polycal.kernels.degree import lipschitz_degree
    >>> lipschitz_degree(0.1)
    15
    """
    return math.ceil(math.pi / (2 * _positive(tolerance, "tolerance"))) - 1


def sigmoid_degree(slope: float, tolerance: float) -> int:
    r"""Compute a degree that approximates :math:`\tanh(L t + b)` on [-1, 1] within `tolerance`, for every b.

    Parameters
    ----------
    slope : float
        L, positive.
    tolerance : float
        Largest error allowed anywhere on [-1, 1]; positive.

    Returns
    -------
    int

    Notes
    -----
    A function analytic in the Bernstein ellipse of parameter :math:`\rho` and at most M there has a Chebyshev
    expansion whose part up to degree d is within :math:`2 M \rho^{-d} / (\rho - 1)` on [-1, 1] [1]_. The ellipse has
    height :math:`(\rho - 1/\rho) / 2`; where that equals :math:`\theta / L` for a :math:`\theta < \pi/2`, the argument
    :math:`L t + b` has imaginary part y with :math:`|y| \le \theta`, away from the poles of tanh at
    :math:`\pm i\pi/2`. There :math:`|\tanh(x + i y)|^2 = (\cosh 2x - \cos 2y) / (\cosh 2x + \cos 2y)` is at most 1 for
    :math:`|y| \le \pi/4`, and at most :math:`\tan^2 y` beyond (at x = 0), so :math:`M = \max(1, \tan\theta)` whatever b
    is, and

    .. math:: \rho = \theta/L + \sqrt{1 + \theta^2/L^2}, \qquad
              d = \Big\lceil \log \frac{2 M}{\text{tolerance}\,(\rho - 1)} \Big/ \log \rho \Big\rceil .

    The smallest d over a grid of :math:`\theta` is returned: :math:`O(L \log(L / \text{tolerance}))`. A tolerance of 1
    or more needs degree 0.

    References
    ----------
    .. [1] Trefethen (2013), "Approximation Theory and Approximation Practice", Theorem 8.2.

    Examples
    --------
    >>> from polycal.kernels.degree import sigmoid_degree
    >>> sigmoid_degree(4, 0.1)
    17
    """
    slope, tolerance = _positive(slope, "slope"), _positive(tolerance, "tolerance")
    if tolerance >= 1:
        return 0
    theta = np.linspace(np.pi / 4, np.pi / 2, 200, endpoint=False)
    height = theta / slope
    rho = height + np.sqrt(1 + height**2)
    largest = np.maximum(1.0, np.tan(theta))
    degrees = np.ceil(np.log(2 * largest / (tolerance * (rho - 1))) / np.log(rho))
    return max(0, int(degrees.min()))


def _positive(value: float, name: str) -> float:
    if check_real(value, name, low=0) == 0:
        raise ValueError(f"{name} must be positive; got 0.")
    return float(value)

"""The degree that a polynomial needs to stand for a Lipschitz function or a sigmoid, and the polynomials."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, chebyshev

from polycal._typing import Float64s
from polycal._validation import check_integer, check_positive, check_real


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
    >>> import polycal as pc
    >>> pc.kernels.lipschitz_degree(0.1)
    15
    """
    return math.ceil(math.pi / (2 * check_positive(tolerance, "tolerance"))) - 1


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
    >>> import polycal as pc
    >>> pc.kernels.sigmoid_degree(4, 0.1)
    17
    """
    slope, tolerance = check_positive(slope, "slope"), check_positive(tolerance, "tolerance")
    if tolerance >= 1:
        return 0
    theta = np.linspace(np.pi / 4, np.pi / 2, 200, endpoint=False)
    height = theta / slope
    rho = height + np.sqrt(1 + height**2)
    largest = np.maximum(1.0, np.tan(theta))
    degrees = np.ceil(np.log(2 * largest / (tolerance * (rho - 1))) / np.log(rho))
    return max(0, int(degrees.min()))


# Sampled at this many times the degree: more nodes than the degree keep every bound below.
_NODES_PER_DEGREE = 16
_FEWEST_NODES = 512


def jackson_polynomial(function: Callable[[Float64s], Any], degree: int) -> Chebyshev:
    r"""Approximate a function on [-1, 1] by a polynomial that stays in its range.

    Parameters
    ----------
    function : callable
        From an array of points in [-1, 1] to their values.
    degree : int
        d, at least 1.

    Returns
    -------
    numpy.polynomial.Chebyshev
        Within :math:`\pi \sin\frac{\pi}{2(d + 2)} \le \frac{\pi^2}{2 (d + 2)}` of a 1-Lipschitz function, and between
        the smallest and the largest value of the function.

    Notes
    -----
    The polynomial is the mean of :math:`f(\cos(\theta - s))` under the positive kernel of degree d whose first
    coefficient :math:`\rho_1 = \cos\frac{\pi}{d + 2}` is largest (Fejér, Korovkin): the Chebyshev series of f with
    coefficient j multiplied by

    .. math:: \rho_j = \frac{(d + 2 - j) \cos(j h) + \sin(j h) \cot h}{d + 2}, \qquad h = \frac{\pi}{d + 2} .

    A mean lies in the range of the function. For a 1-Lipschitz f the error is at most the mean of
    :math:`|s| \le \pi |\sin\frac{s}{2}|`, and the mean of :math:`\sin^2\frac{s}{2}` is
    :math:`(1 - \rho_1)/2 = \sin^2\frac{h}{2}`. Coefficients are sums over nodes, more of them than the degree; so are
    the means, and the bounds hold for them as they are.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), the lemma on approximating Lipschitz functions; Jackson (1911).

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> p = pc.kernels.jackson_polynomial(np.abs, 48)
    >>> t = np.linspace(-1, 1, 1001)
    >>> bool(np.abs(p(t) - np.abs(t)).max() < 0.1), bool(p(t).min() >= 0)
    (True, True)
    """
    check_integer(degree, "degree", minimum=1)
    j, h = np.arange(degree + 1), np.pi / (degree + 2)
    damping = ((degree + 2 - j) * np.cos(j * h) + np.sin(j * h) / np.tan(h)) / (degree + 2)
    return Chebyshev(_chebyshev_series(function, degree) * damping)


def jackson_error(degree: int) -> float:
    """Bound how far `jackson_polynomial` is from a 1-Lipschitz function: ``pi sin(pi / (2 (degree + 2)))``.

    Parameters
    ----------
    degree : int

    Returns
    -------
    float
    """
    return math.pi * math.sin(math.pi / (2 * (check_integer(degree, "degree", minimum=1) + 2)))


def sigmoid_polynomial(slope: float, shift: float, tolerance: float) -> Chebyshev:
    r"""Approximate :math:`\tanh(L t + b)` on [-1, 1] by a polynomial with values in [-1, 1].

    Parameters
    ----------
    slope : float
        L, positive.
    shift : float
        b.
    tolerance : float
        Largest error allowed anywhere on [-1, 1]; positive.

    Returns
    -------
    numpy.polynomial.Chebyshev
        Of degree ``sigmoid_degree(slope, tolerance / 2)``, which is :math:`O(L \log(L / tolerance))`.

    Notes
    -----
    The Chebyshev series up to that degree is within tolerance/2; divided by 1 + tolerance/2 it lies in [-1, 1]
    and has moved by at most tolerance/2 [1]_.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), the lemma on approximating sigmoids.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> p = pc.kernels.sigmoid_polynomial(4, 1, 0.1)
    >>> t = np.linspace(-1, 1, 1001)
    >>> p.degree(), bool(np.abs(p(t) - np.tanh(4 * t + 1)).max() < 0.1)
    (19, True)
    """
    check_real(shift, "shift", low=-np.inf)
    degree = sigmoid_degree(slope, tolerance / 2)
    series = _chebyshev_series(lambda t: np.tanh(slope * t + shift), degree)
    return Chebyshev(series / (1 + tolerance / 2))


def projection_norm(polynomial: Any, length: float) -> float:
    r"""Bound the norm of :math:`v \mapsto p(\langle a, v\rangle)` in the space of the multinomial kernel.

    Parameters
    ----------
    polynomial : numpy.polynomial polynomial
        p, of any basis, on [-1, 1].
    length : float
        The Euclidean length of a.

    Returns
    -------
    float
        :math:`(\sum_i \eta_i^2 \|a\|_2^{2 i})^{1/2}` for :math:`p = \sum_i \eta_i t^i`.

    Notes
    -----
    :math:`\langle a, v\rangle^i` is the inner product of the features of degree i with
    :math:`a \otimes \dots \otimes a`, of length :math:`\|a\|_2^i` [1]_. It is a bound, not the norm: on the simplex
    :math:`\langle 1, v\rangle = 1`, so that a function has other features too.

    References
    ----------
    .. [1] Goel, Kanade, Klivans and Thaler (2017), Lemma 2.7.

    Examples
    --------
    >>> from numpy.polynomial import Polynomial
    >>> import polycal as pc
    >>> pc.kernels.projection_norm(Polynomial([3, 0, 1]), 2.0)
    5.0
    """
    check_real(length, "length", low=0)
    eta = polynomial.convert(kind=np.polynomial.Polynomial).coef
    return float(np.linalg.norm(eta * float(length) ** np.arange(eta.size)))


def largest_coefficients(degree: int) -> list[int]:
    r"""Compute the largest :math:`|\eta_i|` of a polynomial of degree d with :math:`|p| \le 1` on [-1, 1], for each i.

    Parameters
    ----------
    degree : int
        d, at least 0.

    Returns
    -------
    list of int
        d + 1 whole numbers, of any size.

    Notes
    -----
    V. A. Markov's theorem (1892): they are those of the Chebyshev polynomial :math:`T_d` where i and d are both even
    or both odd, and of :math:`T_{d-1}` otherwise. Their sum is at most :math:`(1 + \sqrt2)^d`, where the paper uses
    :math:`4^d`.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.kernels.largest_coefficients(4)
    [1, 3, 8, 4, 8]
    """
    before, last = [0], [1]
    for _ in range(check_integer(degree, "degree", minimum=0)):
        step = 2 if before != [0] else 1
        rise = [0] + [step * c for c in last]
        before, last = last, [x - y for x, y in zip(rise, before + [0] * 2, strict=False)]
    return [max(abs(x), abs(y)) for x, y in zip(last, [*before, 0], strict=False)]


def bounded_radius_squared(degree: int, squared_length: float) -> int:
    r"""Bound the squared norm of :math:`p(\langle a, v\rangle)` over all p with :math:`|p| \le 1` and all short a.

    Parameters
    ----------
    degree : int
        The degree of p.
    squared_length : float
        m, the largest :math:`\|a\|_2^2`; rounded up to a whole number.

    Returns
    -------
    int
        :math:`\sum_i \max |\eta_i|^2\,m^i`, by `largest_coefficients`; at most the paper's
        :math:`\max(4, 4 \sqrt m)^{2 d}`.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.kernels.bounded_radius_squared(4, 10), 160**4
    (662491, 655360000)
    """
    m = math.ceil(check_real(squared_length, "squared_length", low=0, high=1e9))
    return sum(eta * eta * m**i for i, eta in enumerate(largest_coefficients(degree)))


def _chebyshev_series(function: Callable[[Float64s], Any], degree: int) -> Float64s:
    """The first coefficients of a function's Chebyshev series, by interpolation at many more nodes."""
    n_nodes = max(_FEWEST_NODES, _NODES_PER_DEGREE * degree)
    series: Float64s = chebyshev.chebinterpolate(function, n_nodes - 1)[: degree + 1]
    return series

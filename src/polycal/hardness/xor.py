"""Random and planted t-XOR: points of the simplex on which a steep sigmoid knows what nobody can learn fast."""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from polycal._typing import Float64s, Ints, Seed
from polycal._validation import check_integer, check_real, check_seed


@dataclass(frozen=True, eq=False, repr=False)
class XorInstance:
    """Clauses of t literals, each said to multiply to +1 or -1.

    Attributes
    ----------
    literals : ndarray of int64, shape (n_clauses, t)
        Literal j below n stands for variable j, literal n + j for its negation; increasing in each row.
    signs : ndarray of float64, shape (n_clauses,)
        What each product is said to be, +1 or -1.
    n_variables : int
        n.
    assignment : ndarray of float64, shape (n_variables,), or None
        The planted assignment.

    Examples
    --------
    >>> import polycal as pc
    >>> instance = pc.hardness.make_planted_xor(8, 3, 400, noise=0.2)
    >>> instance.n_variables, instance.signs.shape
    (8, (400,))
    """

    literals: Ints
    signs: Float64s
    n_variables: int
    assignment: Float64s | None = None

    @property
    def size(self) -> int:
        """t, the number of literals in a clause."""
        return int(self.literals.shape[1])

    def products(self, assignment: Any) -> Float64s:
        """The product of the literals of each clause under an assignment of +1 and -1."""
        return np.asarray(np.prod(literal_values(assignment)[self.literals], axis=1))

    def sums(self, assignment: Any) -> Float64s:
        """The sum of the literals of each clause under an assignment."""
        return np.asarray(literal_values(assignment)[self.literals].sum(axis=1))

    def satisfied(self, assignment: Any) -> float:
        """The share of clauses whose product is as said."""
        return float(np.mean(self.products(assignment) == self.signs))

    def __repr__(self) -> str:
        kind = "random" if self.assignment is None else "planted"
        return (
            f"XorInstance({kind}, n_variables={self.n_variables}, t={self.size}, n_clauses={self.signs.size})"
        )


def literal_values(assignment: Any) -> Float64s:
    """An assignment's values of all literals: the variables, then their negations."""
    z = np.asarray(assignment, dtype=np.float64)
    return np.concatenate([z, -z])


def make_random_xor(n_variables: int, t: int, n_clauses: int, *, random_state: Seed = 0) -> XorInstance:
    """Draw clauses and their signs uniformly: no assignment satisfies much more than half of many clauses.

    Parameters
    ----------
    n_variables, t, n_clauses : int
        Sizes; a clause has t different variables, each negated or not.
    random_state : int, Generator or None, default 0

    Returns
    -------
    XorInstance

    Examples
    --------
    >>> import polycal as pc
    >>> instance = pc.hardness.make_random_xor(8, 3, 400)
    >>> instance.literals.shape
    (400, 3)
    """
    rng = np.random.default_rng(check_seed(random_state))
    literals = _draw_clauses(n_variables, t, n_clauses, rng)
    return XorInstance(literals, rng.choice([-1.0, 1.0], n_clauses), n_variables)


def make_planted_xor(
    n_variables: int, t: int, n_clauses: int, *, noise: float = 0.0, random_state: Seed = 0
) -> XorInstance:
    """Draw clauses whose signs agree with a hidden assignment, but for a share of `noise` drawn at random.

    Parameters
    ----------
    n_variables, t, n_clauses : int
        As for `make_random_xor`.
    noise : float, default 0
        The probability that a sign is flipped, at most 1/2.
    random_state : int, Generator or None, default 0

    Returns
    -------
    XorInstance
        With the hidden assignment.

    Examples
    --------
    >>> import polycal as pc
    >>> instance = pc.hardness.make_planted_xor(8, 3, 400)
    >>> instance.satisfied(instance.assignment)
    1.0
    """
    check_real(noise, "noise", low=0, high=0.5)
    rng = np.random.default_rng(check_seed(random_state))
    literals = _draw_clauses(n_variables, t, n_clauses, rng)
    assignment = rng.choice([-1.0, 1.0], n_variables)
    agreed = np.prod(literal_values(assignment)[literals], axis=1)
    flipped = np.where(rng.random(n_clauses) < noise, -1.0, 1.0)
    return XorInstance(literals, agreed * flipped, n_variables, assignment)


@dataclass(frozen=True, eq=False, repr=False)
class MonomialLift:
    r"""Clauses as points of the simplex: uniform over the monomials of degree at most d that are 1 on the clause.

    Attributes
    ----------
    points : ndarray of float64, shape (n_clauses, n_monomials)
        Each row has :math:`\binom{t}{\le d}` equal entries, which sum to 1.
    monomials : tuple of tuples of int
        The sets of literals, in column order; the empty one first.
    degree : int
        d.

    Examples
    --------
    >>> import polycal as pc
    >>> lift = pc.hardness.lift_clauses(pc.hardness.make_random_xor(4, 2, 10), 2)
    >>> lift.degree, len(lift.monomials)
    (2, 37)
    """

    points: Float64s
    monomials: tuple[tuple[int, ...], ...]
    degree: int

    def __repr__(self) -> str:
        n, k = self.points.shape
        return f"MonomialLift(n_points={n}, n_classes={k}, degree={self.degree})"


def lift_clauses(instance: XorInstance, degree: int) -> MonomialLift:
    r"""Lift clauses to the simplex of all sets of at most `degree` literals.

    Parameters
    ----------
    instance : XorInstance
    degree : int
        d, at least 1 and at most t. There are :math:`\binom{2n}{\le d}` classes: keep n and d small.

    Returns
    -------
    MonomialLift

    Examples
    --------
    >>> import polycal as pc
    >>> instance = pc.hardness.make_random_xor(4, 2, 10)
    >>> pc.hardness.lift_clauses(instance, 2).points.shape
    (10, 37)
    """
    check_integer(degree, "degree", minimum=1, maximum=instance.size)
    n_literals = 2 * instance.n_variables
    monomials = tuple(s for size in range(degree + 1) for s in combinations(range(n_literals), size))
    column = {monomial: i for i, monomial in enumerate(monomials)}
    points = np.zeros((instance.signs.size, len(monomials)))
    for row, clause in enumerate(instance.literals.tolist()):
        present = [column[s] for size in range(degree + 1) for s in combinations(clause, size)]
        points[row, present] = 1 / len(present)
    return MonomialLift(points, monomials, degree)


@dataclass(frozen=True, eq=False, repr=False)
class XorSigmoid:
    """The function tanh(L <w, v>) on lifted clauses that computes the product of their literals.

    Attributes
    ----------
    direction : ndarray of float64, shape (n_monomials,)
        w, in [-1, 1].
    slope : float
        L.
    radius : int
        Clauses whose literals sum to at most this in absolute value get the right sign.

    Examples
    --------
    >>> import polycal as pc
    >>> instance = pc.hardness.make_planted_xor(6, 2, 50)
    >>> sigmoid = pc.hardness.xor_sigmoid(pc.hardness.lift_clauses(instance, 2), instance.assignment, 2)
    >>> sigmoid.slope > 1
    True
    """

    direction: Float64s
    slope: float
    radius: int

    def __call__(self, points: Float64s) -> Float64s:
        """Evaluate at lifted clauses."""
        return np.tanh(self.slope * (points @ self.direction))

    def __repr__(self) -> str:
        return f"XorSigmoid(n_classes={self.direction.size}, slope={self.slope:.4g}, radius={self.radius})"


def xor_sigmoid(lift: MonomialLift, assignment: Any, t: int, *, steepness: float = 2.0) -> XorSigmoid:
    r"""Build the sigmoid that solves a planted instance from its assignment.

    Parameters
    ----------
    lift : MonomialLift
    assignment : array-like of shape (n_variables,)
        +1 and -1.
    t : int
        The number of literals in a clause.
    steepness : float, default 2
        The sigmoid is tanh(steepness p) with p = +1 or -1 the product: tanh(2) = 0.96.

    Returns
    -------
    XorSigmoid

    Notes
    -----
    A clause whose literals sum to s has (t - s)/2 negative ones, so its product is :math:`(-1)^{(t-s)/2}`, a
    function of s; a polynomial p of degree d interpolates it on the d + 1 sums of smallest absolute value.
    As a function of the clause's 0/1 vector, p(s) is multilinear, and its coefficient for a set of a literals that
    are +1 and b that are -1 is :math:`\sum_{i \le a, j \le b} (-1)^{a+b-i-j} \binom{a}{i} \binom{b}{j} p(i - j)`.
    Dividing by the largest coefficient B and by :math:`\binom{t}{\le d}`, the weight of a lifted clause, moves
    both into the slope.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> instance = pc.hardness.make_planted_xor(6, 2, 50)
    >>> lift = pc.hardness.lift_clauses(instance, 2)
    >>> sigmoid = pc.hardness.xor_sigmoid(lift, instance.assignment, 2)
    >>> bool((np.sign(sigmoid(lift.points)) == instance.signs).all())
    True
    """
    check_integer(t, "t", minimum=lift.degree)
    check_real(steepness, "steepness", low=0)
    sums = _smallest_sums(t, lift.degree + 1)
    polynomial = interpolate(sums, [(-1.0) ** ((t - s) // 2) for s in sums])
    z = literal_values(assignment)
    coefficients = np.array([_coefficient(polynomial, z[list(m)]) for m in lift.monomials])
    largest = float(np.abs(coefficients).max())
    weight = sum(comb(t, size) for size in range(lift.degree + 1))
    return XorSigmoid(coefficients / largest, steepness * largest * weight, max(map(abs, sums)))


def _draw_clauses(n_variables: int, t: int, n_clauses: int, rng: np.random.Generator) -> Ints:
    """Clauses of t different variables, negated or not."""
    check_integer(t, "t", minimum=1)
    check_integer(n_variables, "n_variables", minimum=t)
    check_integer(n_clauses, "n_clauses", minimum=1)
    variables = np.argsort(rng.random((n_clauses, n_variables)), axis=1)[:, :t]
    return np.sort(variables + n_variables * rng.integers(0, 2, variables.shape), axis=1).astype(np.int64)


def _smallest_sums(t: int, count: int) -> list[int]:
    """The ``count`` possible sums of t signs (they share t's parity) of smallest absolute value."""
    return sorted(range(-t, t + 1, 2), key=lambda s: (abs(s), s))[:count]


def interpolate(points: list[int], values: list[float]) -> np.polynomial.Polynomial:
    """The polynomial through the points."""
    return np.polynomial.Polynomial(np.linalg.solve(np.vander(points, increasing=True).astype(float), values))


def _coefficient(polynomial: np.polynomial.Polynomial, values: Float64s) -> float:
    """The multilinear coefficient of a set of literals with these values, by inclusion and exclusion."""
    a, b = int(np.sum(values > 0)), int(np.sum(values < 0))
    return float(
        sum(
            (-1) ** (a + b - i - j) * comb(a, i) * comb(b, j) * polynomial(i - j)
            for i in range(a + 1)
            for j in range(b + 1)
        )
    )

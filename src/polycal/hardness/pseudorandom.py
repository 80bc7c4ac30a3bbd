"""Is a set of clauses pseudorandom? A semidefinite bound on how far any assignment can bend the sums of clauses."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._typing import Float64s, Seed
from polycal._validation import check_integer, check_seed
from polycal.hardness.xor import XorInstance

# What rounding keeps of a positive semidefinite form, at least. No constant will do for forms of zero diagonal.
KEPT = 2.0 / np.pi


@dataclass(frozen=True)
class ClauseSpread:
    """How large the mean square of clause sums can get over all assignments, between two bounds.

    Attributes
    ----------
    relaxed : float
        The semidefinite bound: no assignment has a larger mean square.
    reached : float
        The mean square of the best assignment found by rounding: some assignment has this one.
    t : int
        The mean square under random assignments.

    Examples
    --------
    >>> import polycal as pc
    >>> spread = pc.hardness.clause_spread(pc.hardness.make_random_xor(8, 3, 400))
    >>> spread.reached <= spread.relaxed
    True
    """

    relaxed: float
    reached: float
    t: int

    @property
    def at_least(self) -> float:
        """What some assignment reaches for certain: a mean of squares is at least 2/pi of its relaxation."""
        return max(self.reached, KEPT * self.relaxed)


def clause_spread(instance: XorInstance, *, n_roundings: int = 100, random_state: Seed = 0) -> ClauseSpread:
    r"""Bound ``max_z mean_i <c_i, z>^2`` over assignments z by semidefinite programming.

    Parameters
    ----------
    instance : XorInstance
        Its signs are not looked at.
    n_roundings : int, default 100
        Random hyperplanes that round the solution to assignments.
    random_state : int, Generator or None, default 0

    Returns
    -------
    ClauseSpread

    Notes
    -----
    Expanding the square, the mean is t plus a quadratic form :math:`z^\top A z` with zero diagonal (literal and
    negation have opposite signs). Its maximum over signs is at most that over unit vectors,
    :math:`\max \langle A, X \rangle` with X positive semidefinite of unit diagonal, which a solver finds. The mean of
    squares itself, :math:`t I + A`, is positive semidefinite, so that signs reach at least :math:`2/\pi` of it [1]_:
    the bound tells random sets of clauses, for which it is :math:`O(t \log t)`, from structured ones. The excess over t
    alone has no such factor: Grothendieck's inequality is about two sets of signs, and for one set and a zero diagonal
    the gap grows with the number of variables [2]_. Cost: a semidefinite program of n variables, up to a few hundred.

    References
    ----------
    .. [1] Nesterov (1998), "Semidefinite relaxation and nonconvex quadratic optimization".
    .. [2] Alon, Makarychev, Makarychev and Naor (2006), "Quadratic forms on graphs".

    Examples
    --------
    >>> import polycal as pc
    >>> spread = pc.hardness.clause_spread(pc.hardness.make_random_xor(8, 3, 400))
    >>> spread.reached <= spread.relaxed
    True
    """
    check_integer(n_roundings, "n_roundings", minimum=1)
    random_state = check_seed(random_state)
    form = pair_form(instance)
    solution = _solve(form)
    relaxed = instance.size + float(np.sum(form * solution))
    best = max(_rounded(form, solution, n_roundings, random_state), 0.0)
    return ClauseSpread(
        relaxed=max(relaxed, instance.size + best), reached=instance.size + best, t=instance.size
    )


def pair_form(instance: XorInstance) -> Float64s:
    """A with ``mean_i (c_i . z)^2 = t + z' A z``: signed counts of the pairs of variables that share a clause."""
    n, m = instance.n_variables, instance.signs.size
    clauses = np.zeros((m, n))
    sign = np.where(instance.literals < n, 1.0, -1.0)
    clauses[np.arange(m)[:, None], instance.literals % n] = sign
    form: Float64s = clauses.T @ clauses / m
    np.fill_diagonal(form, 0.0)
    return form


def _solve(form: Float64s) -> Float64s:
    """The matrix X of the relaxation."""
    cp = _cvxpy()
    variable = cp.Variable(form.shape, PSD=True)
    problem = cp.Problem(cp.Maximize(cp.trace(form @ variable)), [cp.diag(variable) == 1])
    problem.solve(solver=cp.CLARABEL)
    if variable.value is None:
        raise RuntimeError(f"the semidefinite program was not solved: {problem.status}")
    return np.asarray(variable.value)


def _rounded(form: Float64s, solution: Float64s, n_roundings: int, random_state: int) -> float:
    """The best value of signs of random projections of the solution's vectors."""
    values, vectors = np.linalg.eigh(solution)
    factors = vectors * np.sqrt(np.maximum(values, 0.0))
    normals = np.random.default_rng(random_state).standard_normal((form.shape[0], n_roundings))
    signs = np.where(factors @ normals >= 0, 1.0, -1.0)
    return float(np.einsum("ij,ik,kj->j", signs, form, signs).max())


def _cvxpy() -> Any:
    """The modelling library, an optional dependency."""
    try:
        import cvxpy  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("the semidefinite check needs cvxpy: pip install 'polycal[hardness]'") from error
    return cvxpy

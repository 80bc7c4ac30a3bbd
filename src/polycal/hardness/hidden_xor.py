"""Products of hidden signs in the labels of two classes: what makes sigmoid and projected calibration hard."""

from dataclasses import replace
from itertools import combinations, product
from math import comb

import numpy as np

from polycal._typing import Ints, Seed
from polycal._validation import check_integer, check_real, check_seed
from polycal.datasets import Generated, make_finite
from polycal.families.reduction import lift
from polycal.hardness.xor import XorInstance, lift_clauses, literal_values, xor_sigmoid

# A table of predictions larger than this (entries) is a mistake, not an experiment.
_MOST_ENTRIES = 20_000_000


def make_hidden_xor(
    n_samples: int,
    n_variables: int,
    t: int,
    *,
    noise: float = 0.1,
    degree: int | None = None,
    steepness: float = 2.0,
    random_state: Seed = 0,
) -> Generated:
    r"""Make predictions whose errors follow the product of t hidden signs, through the lifts of the paper.

    Parameters
    ----------
    n_samples : int
    n_variables : int
        n. There are :math:`2^t \binom{n}{t}` distinct predictions: keep it small.
    t : int
        The number of literals in a clause, from 1 to n.
    noise : float, default 0.1
        How often the product is reported wrongly, at most 1/2. At 1/2 the predictions are calibrated.
    degree : int, optional
        d, from 1 to t: the classes are the sets of at most d literals, :math:`\binom{2n}{\le d}` of them. By default t.
    steepness : float, default 2
        The sigmoid of "sigmoid at least" is tanh(steepness) where the product is 1.
    random_state : int, Generator or None, default 0
        Seed of the hidden assignment and of the rows.

    Returns
    -------
    Generated
        With the exact canonical error; for degree t also the halfspace error, and the error "sigmoid at least" that
        sigmoids of slope "sigmoid slope" show.

    Notes
    -----
    Clauses c are uniform. Their points x of the simplex have equal entries at all sets of at most d literals of the
    clause (`lift_clauses`); the prediction is :math:`v = (x + e_1 + e_2)/3` and labels follow
    :math:`v + z (e_1 - e_2)/3`, with z the product of the clause's literals under the hidden assignment, wrong with
    probability `noise`. So the gap is :math:`(1 - 2\,noise)\,z (e_1 - e_2)/3` and the canonical error is
    :math:`\frac23 (1 - 2\,noise)`.

    *Degree t.* The product is :math:`\mathrm{sign}\langle w, x\rangle`, hence a halfspace of v with the same error, and
    the sigmoid :math:`\tanh(L\langle w, x\rangle) = \tanh(3 L \langle w, v\rangle + b)` of `xor_sigmoid` and its
    negation show :math:`\frac23 (1 - 2\,noise) \tanh(steepness)`. No algorithm is known that finds it in polynomial
    time as t grows.

    *Degree 1.* The entries of x say which literals the clause has. Whatever fewer than t of them are known, the
    product is +1 and -1 equally often: it is uncorrelated with every polynomial of v of degree below t, and `LowDegree`
    and the multinomial kernel see nothing before degree t.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.hardness.make_hidden_xor(100, 4, 2)
    >>> made.proba.shape, round(made.truth["canonical"], 4)
    ((100, 37), 0.5333)
    """
    check_integer(t, "t", minimum=1)
    check_integer(n_variables, "n_variables", minimum=t)
    check_real(noise, "noise", low=0, high=0.5)
    check_real(steepness, "steepness", low=0)
    degree = t if degree is None else check_integer(degree, "degree", minimum=1)
    _refuse_large(n_variables, t, degree)
    rng = np.random.default_rng(check_seed(random_state))
    assignment = rng.choice([-1.0, 1.0], n_variables)
    literals = _all_clauses(n_variables, t)
    signs = np.prod(literal_values(assignment)[literals], axis=1)
    lifted = lift_clauses(XorInstance(literals, signs, n_variables, assignment), degree)
    support = lift(lifted.points)
    conditionals = support.copy()
    conditionals[:, :2] += (1 - 2 * noise) / 3 * signs[:, None] * [1, -1]
    made = make_finite(support, conditionals, np.ones(signs.size), n_samples, random_state=random_state)
    truth = {"canonical": 2 / 3 * (1 - 2 * noise)}
    if degree == t:
        truth["halfspace"] = truth["canonical"]
        truth["sigmoid at least"] = truth["canonical"] * float(np.tanh(steepness))
        truth["sigmoid slope"] = 3 * xor_sigmoid(lifted, assignment, t, steepness=steepness).slope
    return replace(made, truth=truth)


def _all_clauses(n_variables: int, t: int) -> Ints:
    """Every set of t different variables, with every choice of negations."""
    rows = [
        sorted(v + n_variables * negated for v, negated in zip(variables, negations, strict=True))
        for variables in combinations(range(n_variables), t)
        for negations in product((0, 1), repeat=t)
    ]
    return np.array(rows, dtype=np.int64)


def _refuse_large(n_variables: int, t: int, degree: int) -> None:
    """Tables that no experiment needs, and degrees that do not exist."""
    if degree > t:
        raise ValueError(f"degree must be at most t, {t}; got {degree}.")
    n_classes = sum(comb(2 * n_variables, size) for size in range(degree + 1))
    n_points = 2**t * comb(n_variables, t)
    if n_classes * n_points > _MOST_ENTRIES:
        raise ValueError(
            f"n_variables = {n_variables} and t = {t} make {n_points} predictions of {n_classes} classes; "
            "take fewer of either."
        )

"""Hypothesis strategies for predictions, labels and weights."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


@st.composite
def samples(draw, min_classes=2, max_classes=6, max_rows=40, weighted=None):
    """(labels, proba, weight or None): continuous, tied, one-hot or repeated predictions."""
    n = draw(st.integers(1, max_rows))
    k = draw(st.integers(min_classes, max_classes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    style = draw(st.sampled_from(["continuous", "tied", "one-hot", "repeated"]))
    proba = rng.dirichlet(np.full(k, draw(st.sampled_from([0.1, 1.0, 5.0]))), n)
    if style == "tied":
        proba = rng.multinomial(4, np.full(k, 1 / k), n) / 4
    elif style == "one-hot":
        proba = np.eye(k)[rng.integers(0, k, n)]
    elif style == "repeated":
        proba = proba[rng.integers(0, min(n, 3), n)]
    labels = draw(hnp.arrays(np.int64, n, elements=st.integers(0, k - 1)))
    weighted = draw(st.booleans()) if weighted is None else weighted
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    if weight is not None:
        weight[rng.integers(0, n)] = 1.0
    return labels, proba, weight


@st.composite
def lines(draw, max_points=40):
    """(values, residual): any points of a line of length at most 2, with any residuals."""
    n = draw(st.integers(1, max_points))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.uniform(-1, 1, n) * draw(st.sampled_from([0.0, 0.1, 1.0]))
    if draw(st.booleans()):
        values = np.round(values * 4) / 4
    scale = draw(st.sampled_from([1e-6, 1.0]))
    return values, rng.normal(draw(st.sampled_from([-1.0, 0.0, 1.0])), 1.0, n) * scale / n

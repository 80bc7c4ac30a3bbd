"""Programs that use every step, on every path through it."""

import numpy as np

from polycal import steps as s

RNG = np.random.default_rng(1)
K = 5
STARTS = np.array([0, 1, 3, 8, 72, 80])
KNOTS = np.concatenate([np.sort(RNG.uniform(0, 1, n)) for n in np.diff(STARTS)])
EDGES = KNOTS.copy()
EDGES[STARTS[:-1]] = -np.inf
HEIGHTS = RNG.uniform(0, 1, 80)

PROGRAMS = {
    "nothing": (),
    "log": (s.Log(1e-3),),
    "affine": (s.Affine(RNG.normal(size=K), np.array([0.3])),),
    "linear": (s.Linear(RNG.normal(size=(K, 3)), RNG.normal(size=3)),),
    "softmax": (s.Log(), s.Affine(np.array([3.0]), RNG.normal(size=K)), s.Softmax()),
    "sigmoid": (s.Log(), s.Sigmoid()),
    "normalise": (s.Affine(np.array([1.0]), np.array([-1.0])), s.Normalise(np.full(K, 0.2))),
    "interpolate": (s.Interpolate(KNOTS, HEIGHTS, STARTS), s.Normalise(np.full(K, 0.2))),
    "lookup": (s.Lookup(EDGES, HEIGHTS, STARTS), s.Normalise(np.full(K, 0.2))),
    "others": (s.Others(), s.Log()),
    "project": (s.Affine(np.array([2.0]), RNG.normal(0, 0.3, K)), s.Project()),
    "product": (s.Product(((), (s.Log(), s.Exp()), (s.Top(), s.Linear(np.ones((K, 1)), np.ones(1))))),),
    "blocks": (s.InBlocks(((s.Clip(0.1, 0.6), s.Exp()),), 300_000.0),),
    "polynomial": (s.Polynomial(np.array([0.5, -1.0, 0.0, 2.0])),),
    "constant": (s.Polynomial(np.array([0.5])),),
    "top": (s.Linear(RNG.normal(size=(K, K)), np.zeros(K)), s.Top()),
    "distances": (s.Distances(RNG.dirichlet(np.ones(K), 9)), s.LargestOf(np.array([0, 1, 2, 5, 8, 9]))),
    "sum": (
        s.Sum(((), (s.Log(), s.Linear(RNG.normal(size=(K, K)), np.zeros(K))), (s.Project(),))),
        s.Softmax(),
    ),
}
WIDTHS = {name: 3 if name == "linear" else K for name in PROGRAMS}


def predictions(n, dtype=np.float64):
    """Rows of the simplex, with zeros, corners and values on knots."""
    proba = np.random.default_rng(2).dirichlet(np.full(K, 0.4), n)
    proba[: n // 10] = np.eye(K)[np.arange(n // 10) % K]
    proba[n // 2 :, 1] = KNOTS[1]
    return proba.astype(dtype)

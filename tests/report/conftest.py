"""Audits to render, made once."""

import numpy as np
import pytest

import polycal as pc

HOSTILE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "</script><script>window.hacked = 1</script>",
    "<!--<script>",
    "{{ 7 * 7 }} {% raw %}",
    "a | b `c` *d* [e](https://example.org)\n# f",
    "'; window.hacked = 1; //",
    "ünïcode 🐈 \u2028 \u202e",
]


@pytest.fixture(scope="session")
def proven():
    made = pc.datasets.make_shifted_subset(4000, 4, error=0.2, random_state=0)
    return pc.audit(
        made.labels,
        made.proba,
        class_names=["cat", "dog", "car", "bus"],
        groups={"animal": ["cat", "dog"], "with wheels": ["car", "bus"], "all": ["cat", "dog", "car", "bus"]},
    )


@pytest.fixture(scope="session")
def silent():
    made = pc.datasets.make_calibrated(1000, 4, random_state=3)
    return pc.audit(made.labels, made.proba, groups={"even": [0, 2]})


@pytest.fixture(scope="session")
def few():
    return pc.audit([0, 1, 1], [0.2, 0.7, 0.6])


@pytest.fixture(scope="session")
def weighted():
    made = pc.datasets.make_shifted_subset(2000, 5, error=0.2, random_state=0)
    return pc.audit(made.labels, made.proba, sample_weight=np.arange(2000.0) % 3)


@pytest.fixture(scope="session")
def compared():
    first, second = (pc.datasets.load_fashion(part) for part in ("calibration", "evaluation"))
    calibrator = pc.TemperatureScaling().fit(first.proba, first.labels, class_names=first.class_names)
    rows = slice(0, 3000)
    return pc.audit(
        second.labels[rows],
        second.proba[rows],
        class_names=second.class_names,
        groups=pc.datasets.load_fashion_groups(),
        calibrator=calibrator,
    )


@pytest.fixture(scope="session")
def hostile():
    made = pc.datasets.make_shifted_subset(2000, len(HOSTILE), error=0.3, random_state=0)
    groups = {name: [i, (i + 1) % len(HOSTILE)] for i, name in enumerate(HOSTILE)}
    return pc.audit(made.labels, made.proba, class_names=HOSTILE, groups=groups)


@pytest.fixture(params=["proven", "silent", "few", "weighted", "compared", "hostile"])
def audit(request):
    return request.getfixturevalue(request.param)

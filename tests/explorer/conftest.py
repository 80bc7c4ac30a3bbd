import time

import pytest
from starlette.testclient import TestClient

import polycal as pc
from polycal.explorer.app import make_app
from polycal.explorer.state import make_explorer

PORT, TOKEN = 8123, "right"


@pytest.fixture
def client_of():
    """A client of an explorer, as its own page would ask."""

    def new(explorer, **headers):
        headers = {"Authorization": f"Bearer {TOKEN}", **headers}
        return TestClient(
            make_app(explorer, PORT, TOKEN), base_url=f"http://127.0.0.1:{PORT}", headers=headers
        )

    return new


@pytest.fixture(scope="session")
def fashion():
    return pc.datasets.load_fashion("evaluation").take(slice(0, 3000))


@pytest.fixture(scope="session")
def calibrator():
    first = pc.datasets.load_fashion("calibration")
    return pc.TemperatureScaling().fit(first.proba, first.labels, class_names=first.class_names)


@pytest.fixture(scope="session")
def explorer(fashion):
    groups = pc.datasets.load_fashion_groups()
    return make_explorer(fashion, title="clothes", groups=groups, n_jobs=1)


@pytest.fixture
def client(client_of, explorer):
    return client_of(explorer)


@pytest.fixture
def wait():
    """Wait until something is so."""

    def until(condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.05)

    return until

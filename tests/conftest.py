"""What all tests share: random cases, the same ones in every run unless new ones are asked for, one thread, and default
signals."""

import os
import signal

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, print_blob=True)
settings.register_profile("new", derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A program started by nohup ignores SIGHUP, and so does what it starts, as it should; the tests look at all others.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def all_threads():
    """For tests that are to run as for users: on a thread for each core, unless they say how many."""


@pytest.fixture(autouse=True)
def one_thread(request):
    """A machine of one core, unless a test says how many threads it wants.

    The processes of the tests fill the cores already, and pools for samples of a few hundred rows cost more than the
    work: threads wait for one another, and that is paid for in time of the processor.
    """
    with pytest.MonkeyPatch.context() as patch:
        if "all_threads" not in request.fixturenames:
            patch.setattr("polycal._threads.cpu_count", lambda: 1)
        yield

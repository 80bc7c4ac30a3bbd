"""What all tests share: random cases, the same ones in every run unless new ones are asked for, and default signals."""

import os
import signal

from hypothesis import settings

settings.register_profile("same", derandomize=True, print_blob=True)
settings.register_profile("new", derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A program started by nohup ignores SIGHUP, and so does what it starts, as it should; the tests look at all others.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

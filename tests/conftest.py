"""Which random cases the property tests try: the same ones in every run, or new ones on request."""

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, print_blob=True)
settings.register_profile("new", derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

"""Multi-class calibration: find the question the probabilities cannot be trusted for, prove it, fix it."""

import lazy_loader as _lazy

# Names are listed in __init__.pyi and imported when first used: no compilation, no heavy import here.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

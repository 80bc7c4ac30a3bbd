"""The monitor: an alarm that may be looked at after every row."""

import lazy_loader as _lazy

# Names are listed in __init__.pyi and imported when first used.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

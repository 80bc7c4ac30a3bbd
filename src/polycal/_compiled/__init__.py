"""Passes that Python is too slow for, compiled by numba; importing this imports numba."""

import warnings
from typing import Any

from numba import njit


def compiled(function: Any) -> Any:
    """A function compiled at its first call, and kept on disk where that is possible."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        # numba finds no folder that it may write to.
        _warn_without_cache()
        return njit(nogil=True)(function)


def _warn_without_cache() -> None:
    global _warned  # noqa: PLW0603 - said once, whatever the filters of warnings
    if not _warned:
        _warned = True
        warnings.warn(
            "compiled functions cannot be kept: neither polycal's folder nor a cache of the user can be written to, so "
            "every process compiles them anew, which takes some seconds. Set NUMBA_CACHE_DIR to a folder that can.",
            RuntimeWarning,
            stacklevel=2,
        )


_warned = False

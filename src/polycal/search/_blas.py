"""Searches run many small matrix products on threads of their own; threads inside each product get in the way."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let matrix products use one thread each while this lasts. Also a decorator."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - not at import

    with threadpool_limits(limits=1, user_api="blas"):
        yield

"""Running tasks: on threads of this process, or on the workers of a cluster."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")
# From a delayed value to the value.
Compute = Callable[[Any], Any]


class ClusterError(OSError):
    """A cluster that did not finish the work; the data may be sound."""


def dask(module: str = "") -> Any:
    """Import Dask, or one of its modules, when it is first needed."""
    try:
        return importlib.import_module(f"dask.{module}" if module else "dask")
    except ImportError as error:
        raise ImportError(
            "polycal.distributed needs Dask, which is not installed: pip install 'polycal[dask]'"
        ) from error


@contextmanager
def computing(client: Any) -> Iterator[Compute]:
    """A function that computes a delayed value: by a client, at an address, or by threads if neither is given."""
    if client is None:
        yield lambda value: dask().compute(value, scheduler="threads")[0]
    elif isinstance(client, str):
        dask()
        with importlib.import_module("distributed").Client(client) as own:
            yield lambda value: _result(own.compute(value))
    elif hasattr(client, "compute"):
        yield lambda value: _result(client.compute(value))
    else:
        raise TypeError(f"client must be a Dask client or the address of a scheduler; got {client!r}.")


def _result(future: Any) -> Any:
    """What a future becomes; what a cluster says about itself and not about the data is told in one line."""
    killed = importlib.import_module("distributed").KilledWorker
    try:
        return future.result()
    except killed as error:
        raise ClusterError(
            f"{error.allowed_failures + 1} workers died one after the other at the same task; most often they have "
            f"less memory than they are told to use. The log of {error.last_worker.address} may say more."
        ) from error
    except CancelledError as error:
        raise ClusterError(f"the cluster gave the work up ({str(error).partition(chr(10))[0]})") from error


def merged_as_tree(merge: Callable[[Item, Item], Item], values: Sequence[Any]) -> Any:
    """One delayed value from several, merged two by two, so that no worker ever holds more than a few."""
    delayed_merge = dask().delayed(merge, pure=False)
    level = list(values)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        rest = level[-1:] if len(level) % 2 else []
        level = [delayed_merge(left, right) for left, right in pairs] + rest
    return level[0]

"""Running tasks: on threads of this process, or on the workers of a cluster."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")


def dask(module: str = "") -> Any:
    """Import Dask, or one of its modules, when it is first needed."""
    try:
        return importlib.import_module(f"dask.{module}" if module else "dask")
    except ImportError as error:
        raise ImportError(
            "polycal.distributed needs Dask, which is not installed: pip install 'polycal[dask]'"
        ) from error


@contextmanager
def computing(client: Any) -> Iterator[Callable[[Any], Any]]:
    """A function that computes a delayed value: by a client, at an address, or by threads if neither is given."""
    if client is None:
        yield lambda value: dask().compute(value, scheduler="threads")[0]
    elif isinstance(client, str):
        dask()
        with importlib.import_module("distributed").Client(client) as own:
            yield lambda value: own.compute(value).result()
    elif hasattr(client, "compute"):
        yield lambda value: client.compute(value).result()
    else:
        raise TypeError(f"client must be a Dask client or the address of a scheduler; got {client!r}.")


def merged_as_tree(merge: Callable[[Item, Item], Item], values: Sequence[Any]) -> Any:
    """One delayed value from several, merged two by two, so that no worker ever holds more than a few."""
    delayed_merge = dask().delayed(merge, pure=False)
    level = list(values)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        rest = level[-1:] if len(level) % 2 else []
        level = [delayed_merge(left, right) for left, right in pairs] + rest
    return level[0]

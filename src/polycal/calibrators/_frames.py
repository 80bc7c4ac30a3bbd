"""Data frames out, as they came in."""

from collections.abc import Sequence
from typing import Any

from polycal._typing import Floats


def like_frame(frame: Any, values: Floats, columns: Sequence[Any]) -> Any:
    """``values`` as a frame of the same library as ``frame``, and with the same index where there is one."""
    import narwhals as nw  # noqa: PLC0415 - NumPy users should not pay for it

    library = nw.from_native(frame, eager_only=True).implementation
    names = [str(column) for column in columns]
    made = nw.from_numpy(values, schema=names, backend=library).to_native()
    if library.is_pandas_like():
        made.index = frame.index
        made.columns = list(columns)
    return made

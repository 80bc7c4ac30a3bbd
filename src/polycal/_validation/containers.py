"""Foreign containers (pandas, polars, PyArrow, torch, lists) to NumPy, without importing them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Bools, Floats


def to_numpy(data: Any, name: str) -> NDArray[Any]:
    """Turn any supported container into an array, sharing its memory where possible."""
    if isinstance(data, np.ndarray):
        # What a mask hides would be read as if it were there.
        if isinstance(data, np.ma.MaskedArray) and data.mask.any():
            raise ValueError(f"{name} is a masked array with values missing; drop those rows.")
        return np.asarray(data)
    module = type(data).__module__.partition(".")[0]
    if module == "torch":
        return _from_torch(data, name)
    if module in {"pandas", "polars", "pyarrow", "modin"}:
        return _from_dataframe_library(data)
    try:
        return np.asarray(data)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{name} cannot be read as an array: {error}. Are its rows of equal length?"
        ) from error


def column_names(data: Any) -> list[Any] | None:
    """The column labels of a two-dimensional data frame, or None for anything else."""
    if isinstance(data, np.ndarray | list | tuple):
        return None
    module = type(data).__module__.partition(".")[0]
    if module == "pyarrow":
        return list(data.column_names) if hasattr(data, "column_names") else None
    return list(data.columns) if hasattr(data, "columns") else None


def row_index(data: Any) -> Any:
    """The index of a pandas series or data frame; None for anything else."""
    return (
        data.index if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "index") else None
    )


def _from_torch(tensor: Any, name: str) -> NDArray[Any]:
    """A CPU tensor as an array; half-precision brain floats have no NumPy type and become float32."""
    if tensor.device.type != "cpu":
        raise TypeError(f"{name} is a tensor on {tensor.device}; move it to the CPU first: {name}.cpu().")
    tensor = tensor.detach()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    array: NDArray[Any] = tensor.numpy()
    return array


def _from_dataframe_library(data: Any) -> NDArray[Any]:
    """A data frame or series as an array, by narwhals."""
    # Imported here: NumPy users should not pay for it.
    import narwhals as nw  # noqa: PLC0415

    native = data.combine_chunks() if type(data).__name__ == "ChunkedArray" else data
    if type(native).__module__.startswith("pyarrow") and not hasattr(native, "column_names"):
        return np.asarray(native.to_numpy(zero_copy_only=False))
    return np.asarray(nw.from_native(native, allow_series=True, eager_only=True).to_numpy())


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


def is_missing(value: Any) -> bool:
    """None, NaN, NaT, pandas' NA or empty text."""
    if (
        value is None
        or (isinstance(value, str) and not value)
        or type(value).__name__ in {"NAType", "NaTType"}
    ):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def some_rows(data: Any, rows: Bools, name: str) -> Any:
    """Rows of any container; a data frame stays one, with its names."""
    if column_names(data) is None:
        return to_numpy(data, name)[rows]
    import narwhals as nw  # noqa: PLC0415 - NumPy users should not pay for it

    return nw.from_native(data, eager_only=True).filter(rows.tolist()).to_native()

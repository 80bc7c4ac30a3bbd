"""Names of types."""

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Float64s = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Path = str | PathLike[str]
# What random steps may be given: a whole number, a NumPy Generator, or None; the gate makes a number of it.
Seed = Any

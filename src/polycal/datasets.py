"""The shipped example, and generators whose true calibration error is known."""

from importlib.resources import as_file, files
from typing import Literal

from polycal._generators import (
    make_calibrated,
    make_cat_and_dog,
    make_finite,
    make_shifted_subset,
    make_temperature,
)
from polycal.io.groups import read_groups
from polycal.io.predictions import read_predictions
from polycal.sample import Sample

__all__ = [
    "load_fashion",
    "load_fashion_groups",
    "make_calibrated",
    "make_cat_and_dog",
    "make_finite",
    "make_shifted_subset",
    "make_temperature",
]

Part = Literal["all", "calibration", "evaluation"]


def load_fashion(part: Part = "all") -> Sample:
    """Load real predictions: a small neural network on 20,000 pictures of clothes, ten classes.

    Parameters
    ----------
    part : {"all", "calibration", "evaluation"}
        Which half: 10,000 rows to fit on, 10,000 to report on, or both.

    Returns
    -------
    Sample

    Examples
    --------
    >>> import polycal as pc
    >>> pc.datasets.load_fashion("evaluation")
    Sample(n_samples=10000, n_classes=10, float32)
    """
    with as_file(files("polycal") / "data" / "fashion_mlp.npz") as path:
        return read_predictions(path, part=part)


def load_fashion_groups() -> dict[str, list[str | int]]:
    """Load named groups of the classes of `load_fashion`, such as "footwear".

    Returns
    -------
    dict of str to list of str

    Examples
    --------
    >>> import polycal as pc
    >>> pc.datasets.load_fashion_groups()["footwear"]
    ['Sandal', 'Sneaker', 'Ankle_boot']
    """
    with as_file(files("polycal") / "data" / "fashion_mlp.groups.json") as path:
        return read_groups(path)

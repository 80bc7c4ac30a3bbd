"""Elementary steps: a calibrator's map, or a witness, written once, as data.

A fitted calibrator is a short program, a tuple of steps applied one after the other to blocks of rows. Evaluation
by NumPy, the saved file, the ONNX graph and the torch module all follow from the same steps.
"""

from polycal.steps._base import InBlocks, Product, Program, Step, Sum, is_program, run
from polycal.steps.columns import FLOOR, Affine, Clip, Exp, Linear, Log, Polynomial, Sigmoid
from polycal.steps.compound import gaussian_exponents
from polycal.steps.curves import Interpolate, Lookup
from polycal.steps.rows import Distances, LargestOf, Normalise, Others, Project, Softmax, Top
from polycal.steps.trees import LOWEST, Boosted

__all__ = [
    "FLOOR",
    "LOWEST",
    "Affine",
    "Boosted",
    "Clip",
    "Distances",
    "Exp",
    "InBlocks",
    "Interpolate",
    "LargestOf",
    "Linear",
    "Log",
    "Lookup",
    "Normalise",
    "Others",
    "Polynomial",
    "Product",
    "Program",
    "Project",
    "Sigmoid",
    "Softmax",
    "Step",
    "Sum",
    "Top",
    "gaussian_exponents",
    "is_program",
    "run",
]

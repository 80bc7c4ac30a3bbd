"""The gate: the one place where user input becomes trusted arrays and options.

Every public function's first step is a ``check_*`` from here; nothing behind the gate checks again.
Each message names the argument, what was given (of arrays the first offending row), and the fix.
"""

from polycal._validation.arrays import (
    check_chunk,
    check_examples,
    check_length,
    check_proba,
    check_sample,
    check_values,
    check_weight,
)
from polycal._validation.classes import (
    agree_names,
    check_distinct,
    check_groups,
    check_labels,
    check_same_classes,
    check_subset,
    class_set,
)
from polycal._validation.containers import column_names, like_frame, to_numpy
from polycal._validation.features import check_column_names, check_features, check_masks
from polycal._validation.losses import LossTable, check_loss, check_losses, named_losses
from polycal._validation.monitored import find_labelled
from polycal._validation.options import (
    CalibrationWarning,
    check_auditor,
    check_auditors,
    check_choice,
    check_estimator,
    check_function,
    check_integer,
    check_jobs,
    check_kernel,
    check_level,
    check_notion,
    check_notions,
    check_positive,
    check_real,
    check_seed,
    check_some,
    check_statistic,
    check_witness,
    keep_seed,
    with_names,
)
from polycal._validation.taxonomy import MAX_DEPTH, nested_paths, taxonomy_nodes

__all__ = [
    "MAX_DEPTH",
    "CalibrationWarning",
    "LossTable",
    "agree_names",
    "check_auditor",
    "check_auditors",
    "check_choice",
    "check_chunk",
    "check_column_names",
    "check_distinct",
    "check_estimator",
    "check_examples",
    "check_features",
    "check_function",
    "check_groups",
    "check_integer",
    "check_jobs",
    "check_kernel",
    "check_labels",
    "check_length",
    "check_level",
    "check_loss",
    "check_losses",
    "check_masks",
    "check_notion",
    "check_notions",
    "check_positive",
    "check_proba",
    "check_real",
    "check_same_classes",
    "check_sample",
    "check_seed",
    "check_some",
    "check_statistic",
    "check_subset",
    "check_values",
    "check_weight",
    "check_witness",
    "class_set",
    "column_names",
    "find_labelled",
    "keep_seed",
    "like_frame",
    "named_losses",
    "nested_paths",
    "taxonomy_nodes",
    "to_numpy",
    "with_names",
]

"""torchmetrics: the smooth calibration error of a question as a metric of constant memory that syncs by sums."""

from typing import Any

import numpy as np

try:
    import torch
    from torch import Tensor
    from torchmetrics import Metric
except ImportError as error:
    raise ImportError("this module needs torchmetrics: pip install 'polycal[torchmetrics]'.") from error

from polycal._typing import Float64s
from polycal._validation import check_integer, check_level, check_real, check_sample, check_subset
from polycal.inference.question_bounds import error_bounds
from polycal.sample import ask_members
from polycal.states.cells import Cells, QuestionSummary, Weights


class SmoothCalibrationError(Metric):  # type: ignore[misc,unused-ignore]
    """The smooth calibration error of one yes/no question, over all batches and devices.

    Parameters
    ----------
    subset : list of int, optional
        The classes that count as "yes". By default "is the most likely class right?".
    top : int, default 1
        Without a subset: how many most likely classes count as "yes".
    from_logits : bool, default False
        Whether predictions are logits. They are never guessed to be.
    resolution : float, default 1/1024
        Width of the cells of the predicted probability in which residuals are added up.
    **kwargs
        Of `torchmetrics.Metric`, such as ``dist_sync_on_step``.

    Notes
    -----
    `compute` differs from `polycal.smooth_calibration_error` on all rows together by at most half a resolution times
    the mean absolute residual. The states are sums of 2 / `resolution` + 5 numbers, so that memory does not grow, and
    devices sync by adding them up. Like every plug-in error it is biased upwards; `interval` has bounds that
    take chance into account. Batches are judged on the CPU, in double precision.

    Examples
    --------
    >>> import torch
    >>> from polycal.integrations.torchmetrics import SmoothCalibrationError
    >>> metric = SmoothCalibrationError(subset=[0, 1])
    >>> metric.update(torch.tensor([[0.2, 0.3, 0.5]] * 2), torch.tensor([2, 2]))
    >>> metric.update(torch.tensor([[0.7, 0.2, 0.1]] * 2), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 2)
    0.22
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound: float = 0.0
    plot_upper_bound: float = 1.0

    cells: Tensor
    totals: Tensor
    n_rows: Tensor

    def __init__(
        self,
        subset: Any = None,
        *,
        top: int = 1,
        from_logits: bool = False,
        resolution: float = 1.0 / 1024.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.subset = None if subset is None else list(subset)
        self.top = check_integer(top, "top", minimum=1)
        self.from_logits = from_logits
        self.resolution = check_real(resolution, "resolution", low=1e-6, high=0.5)
        empty = Cells.empty(1, int(np.ceil(1.0 / self.resolution)))
        self.add_state("cells", torch.from_numpy(empty.cells), dist_reduce_fx="sum")
        self.add_state("totals", torch.from_numpy(empty.totals), dist_reduce_fx="sum")
        self.add_state("n_rows", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Take in a batch.

        Parameters
        ----------
        preds : tensor of shape (n, n_classes), or (n,) for two classes
            Probabilities, or logits if the metric was told so.
        target : tensor of shape (n,)
            Class indices.
        """
        proba = preds.detach().to(device="cpu", dtype=torch.float64).numpy()
        sample = check_sample(target.detach().cpu().numpy(), proba, from_logits=self.from_logits)
        members = self.top if self.subset is None else check_subset(self.subset, sample)
        question = ask_members(sample, members)
        added = Cells.empty(1, self.cells.shape[1])
        added.add(question.predicted[:, None], ~question.hits, np.ones(sample.n_samples))
        self.cells += torch.from_numpy(added.cells).to(self.cells)
        self.totals += torch.from_numpy(added.totals).to(self.totals)
        self.n_rows += sample.n_samples

    def compute(self) -> Tensor:
        """The error over all batches."""
        return torch.tensor(self.summary().value, dtype=torch.float64)

    def summary(self) -> QuestionSummary:
        """The error with its curve, the mean prediction and the frequency of "yes", of what this process has seen."""
        if self.n_rows.item() == 0:
            raise ValueError("the metric has seen no row; update it first.")
        return self._sums().summary(0, self.n_rows.item())

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Bounds that the true error lies between with probability at least 1 - alpha, of what this process has seen.

        Parameters
        ----------
        alpha : float, default 0.05

        Returns
        -------
        tuple of float
            At least, and at most.
        """
        check_level(alpha)
        n = self.n_rows.item()
        residuals = self._sums().residuals(0, self.summary().value, Weights(int(n), n, n, 1.0))
        bounds: Float64s = error_bounds([] if residuals is None else [residuals], alpha / 2, alpha / 2)
        low, high = bounds[:, 0].tolist()
        return low, high

    def _sums(self) -> Cells:
        return Cells(self.cells.double().cpu().numpy(), self.totals.double().cpu().numpy())

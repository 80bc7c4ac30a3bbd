"""Recalibration from auditing: the paper's lemma, for any auditor."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Seed
from polycal._validation import (
    check_auditor,
    check_choice,
    check_integer,
    check_level,
    check_real,
    check_seed,
)
from polycal.calibrators.audited.rounds import (
    AuditRound,
    Judge,
    Update,
    additive,
    audit_rounds,
    fit_start,
    multiplicative,
    started_parts,
)
from polycal.calibrators.audited.sharpness import SharpnessFirst
from polycal.calibrators.base import Calibrator
from polycal.calibrators.registry import check_unfitted
from polycal.calibrators.rows import counted_rows
from polycal.families.auditor import Auditor
from polycal.families.defaults import AutoAuditor
from polycal.families.swap import SwapAuditor
from polycal.sample import Sample, split_rows
from polycal.steps import Program

# With fewer rows nothing could be shown.
_FEWEST_ROWS = 20
_TOO_FEW_ROWS = f"fewer than {_FEWEST_ROWS} rows"


class AuditedCalibrator(Calibrator):
    r"""Repair what an auditor finds, and prove each finding before acting on it.

    Round by round: look for a witness of miscalibration in the predictions as they are by now, prove its error on
    held-out rows, and move the predictions along it, by a step that lowers the loss there. It ends when nothing more is
    proved. If nothing is proved at all, predictions stay as they are.

    Parameters
    ----------
    auditor : Auditor, optional
        How to look for a witness. By default `AutoAuditor`; for multiplicative updates, which can change a temperature,
        only after all predictions are neither too sure nor not sure enough, as far as is seen.
    losses : mapping of str to loss, or a single loss, optional
        In place of an auditor: repair only what matters to who acts by these losses (see `make_loss`), by
        `SwapAuditor`, until no action is proved to be dearer than promised. Updates are additive then, so that the
        squared loss never rises.
    start : Calibrator, optional
        Applied first; the rounds repair what it leaves. By default nothing.
    update : {"multiplicative", "additive"}, optional
        By default multiplicative, with `losses` additive. How a witness w moves a prediction p:
        :math:`\mathrm{softmax}(\log p + \eta w(p))` keeps every class possible
        and is judged by the log loss; :math:`\Pi(p + \eta w(p))`, with :math:`\Pi` the nearest point of the simplex, is
        the paper's and is judged by the squared loss.
    keep : float
        For additive updates only: the part of each prediction that stays. As :math:`\Pi` makes zeros, which the log
        loss does not forgive, the update is :math:`(1 - \mathrm{keep})\,\Pi(p + \eta w(p)) + \mathrm{keep}\,p`; 0 is
        the paper's.
    alpha : float
        The probability that any round acts on an error that is not there, at most (not what the paper calls
        :math:`\alpha`).
    tolerance : float
        The correlation that a witness must be proved to exceed (with `losses`, in parts of the largest difference of
        two costs, what an action costs beyond its promise): the :math:`\beta` of the paper's lemma. Its
        :math:`\alpha`, the error left in the end, is up to the auditor: the largest error of its family in which it may
        fail to find a witness that can be proved.
    max_rounds : int
        No more rounds than this.
    holdout : float
        Share of the held-out rows.
    random_state : int, Generator or None, default 0
        Seed of the parts and of the default auditor.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    used_ : {"audited", "start", "identity"}
        What the map does: rounds that passed (after `start`, if given), `start` alone, or nothing.
    stopped_because_ : str
        Why there are no more rounds: no error above the tolerance was proved; `max_rounds` was reached; there are fewer
        than 20 rows; or no step lowered the loss, which only rounding can bring about.
    rounds_ : tuple of AuditRound
        What each round found: the loss on the held-out rows before and after, the certificate (estimate, lower
        bound, p-value), the step, the question, and whether it was accepted.
    round_numbers_ : ndarray of shape (n_rounds, 7)
        The numbers of `rounds_`.
    round_questions_ : ndarray of str, shape (n_rounds,)
        The questions of `rounds_`.

    See Also
    --------
    KernelCalibrator : The calibrator to try first.

    Notes
    -----
    *Lemma* [1]_. If w has correlation :math:`\beta = \mathbb{E}\langle y - p, w(p)\rangle`, then
    :math:`\|p + \eta w - y\|^2 = \|p - y\|^2 - 2\eta\langle y - p, w\rangle + \eta^2\|w\|^2`, and :math:`\Pi` brings a
    point nearer to every y. So with :math:`\eta = \beta/k` the expected squared loss falls by at least
    :math:`\beta^2/k`, and there are at most :math:`2k/\beta^2` such rounds. Keeping a part loses that part of the gain,
    as the loss is convex. In logits the same argument holds for the log loss: with :math:`\eta = \beta` it falls by at
    least :math:`\beta^2/2`, whatever k.

    *Rows.* They are parted once: held-out rows, and of the others four fifths to search and one fifth to measure what
    was found. A round passes if the lower confidence bound of its witness on the held-out rows exceeds `tolerance`. Its
    step is the lemma's, for the correlation on the rows that measure, which no search has seen, and no shorter than
    the lemma's for `tolerance`; it is doubled while that lowers the loss on these rows (up to 0.25, or a temperature of
    4) and, with `losses`, makes acting by the witness's loss no dearer there. Then it is halved until the loss on the
    held-out rows falls by :math:`\tfrac34\beta^2/k` (in logits, :math:`\tfrac38\beta^2`) with :math:`\beta` the
    tolerance. Halving ends: the lemma holds for these rows as for any distribution, and their correlation is above the
    tolerance, as its lower bound is. So no run stops at a proved error before `max_rounds`, and with additive updates
    no run has more than :math:`\tfrac83 k/\beta^2` rounds (twice as many with ``keep=0.5``).

    *Validity.* Given the other rows, the held-out rows decide how many rounds there are and how often each step is
    halved, nothing else. The first round has level alpha. Round t leaves to the next the share :math:`1 - 1/(t+9)^2` of
    its level if its step was not halved, and :math:`2^{-j}/(t+9)^2` if it was halved j times. These shares add up to 1,
    so the levels of the first rounds without a real error, over all sequences possible, add up to alpha at most. Hence
    with probability at least ``1 - alpha`` (over the rows and the seed that parts them) every round accepted acted on a
    correlation above `tolerance`, and calibrated predictions are left alone. Steps are seldom halved, and without that
    at least ``0.9 * alpha`` is left for every round. Three things are no tests: that nothing more was proved does not
    mean that nothing is left, as searches learn ever less from the same rows; the losses after each round flatter a
    little, since the steps were halved by them; and the loss on new rows falls in expectation only for steps below
    twice the lemma's, which the rows that measure estimate.

    *Default auditor.* A temperature has one parameter, and a step along :math:`\pm\log p` repairs it as a whole;
    along clipped witnesses of large families the same repair takes many steps and stays coarse. So as long as a third
    of the rows to search shows, at level 0.01, that all predictions are too sure (for temperatures up to 8) or not
    sure enough, by more than `tolerance`, that is the witness; else `AutoAuditor` is asked.

    *Start.* An auditor would see the rows that `start` was fitted on as better than they are. So the rows to learn from
    get the predictions of fits on other folds of them (four folds), and the held-out rows the predictions of a fit on
    all rows to learn from. In the end `start` is fitted once more on all rows; certificates and losses are about
    the fit without the held-out rows. Cost: six fits of `start`.

    *Weights.* Whole weights, at most 10 on average, are counts: a row of weight 2 is two observations, to a test and
    to a split as well. Other weights count in every loss, but such a row is one observation.

    Saving and exporting work for every witness made of arrays; not for those of `LearnerAuditor` and of kernels given
    as functions.

    References
    ----------
    .. [1] Gopalan, Hu, Rothblum (2024), "On computationally efficient multi-class calibration", Lemma on
       recalibration from auditing.

    Examples
    --------
    >>> import polycal as pc
    >>> sample = pc.datasets.load_fashion("calibration")
    >>> calibrator = pc.AuditedCalibrator(pc.SubsetAuditor()).fit(sample.proba, sample.labels)
    >>> calibrator.used_
    'audited'
    >>> first = calibrator.rounds_[0]
    >>> first.lower_bound > 0, first.loss_after < first.loss_before
    (True, True)
    """

    family: ClassVar[str] = "audited"
    saved_attributes: ClassVar[tuple[str, ...]] = (
        "used_",
        "stopped_because_",
        "round_numbers_",
        "round_questions_",
    )
    used_: str
    # Files of earlier versions do not say.
    stopped_because_: str = "not recorded"
    round_numbers_: Float64s
    round_questions_: NDArray[np.str_]

    def __init__(
        self,
        auditor: Auditor | None = None,
        *,
        losses: Any = None,
        start: Calibrator | None = None,
        update: str | None = None,
        keep: float = 0.5,
        alpha: float = 0.05,
        tolerance: float = 0.0,
        max_rounds: int = 100,
        holdout: float = 1 / 3,
        random_state: Seed = 0,
        from_logits: bool = False,
    ) -> None:
        self.auditor = auditor
        self.losses = losses
        self.start = start
        self.update = update
        self.keep = keep
        self.alpha = alpha
        self.tolerance = tolerance
        self.max_rounds = max_rounds
        self.holdout = holdout
        self.random_state = random_state
        self.from_logits = from_logits

    @property
    def rounds_(self) -> tuple[AuditRound, ...]:
        """What each round found."""
        pairs = zip(self.round_numbers_.tolist(), self.round_questions_.tolist(), strict=True)
        return tuple(AuditRound.from_numbers(numbers, question) for numbers, question in pairs)

    def _fit(self, sample: Sample) -> Program:
        judge = Judge(check_level(self.alpha), check_real(self.tolerance, "tolerance", low=0.0, high=2.0))
        share = check_real(self.holdout, "holdout", low=0.05, high=0.95)
        seed = check_seed(self.random_state)
        seeds = range(seed, seed + check_integer(self.max_rounds, "max_rounds", minimum=0))
        auditor, start = self._check_auditor(judge.tolerance, seed), self._check_start()
        update = self._make_update(sample.n_classes)
        sample = counted_rows(sample)
        rounds: list[AuditRound] = []
        program: Program = ()
        reason = _TOO_FEW_ROWS
        if sample.n_samples >= _FEWEST_ROWS:
            learn, held_out = (sample.take(rows) for rows in split_rows(sample, (1.0 - share, share), seed))
            parts = started_parts(start, learn, held_out, seed)
            rounds, program, reason = audit_rounds(auditor, update, parts, judge, seeds)
        first = fit_start(start, sample)
        self._set_rounds(rounds)
        self.stopped_because_ = reason
        self.used_ = "audited" if program else "start" if first else "identity"
        return *first, *program

    @property
    def _geometry(self) -> str:
        """The update asked for, or the default."""
        if self.update is None:
            return "multiplicative" if self.losses is None else "additive"
        return check_choice(self.update, "update", ("multiplicative", "additive"))

    def _check_auditor(self, tolerance: float, seed: int) -> Auditor:
        if self.losses is not None:
            if self.auditor is not None:
                raise ValueError(
                    "give an auditor or losses, not both: losses are searched by SwapAuditor(losses)."
                )
            return SwapAuditor(self.losses)
        if self.auditor is None:
            auditor = AutoAuditor(random_state=seed)
            return auditor if self._geometry == "additive" else SharpnessFirst(auditor, tolerance, seed)
        checked: Auditor = check_auditor(self.auditor, "auditor", seed)
        return checked

    def _check_start(self) -> Calibrator | None:
        return None if self.start is None else check_unfitted(self.start, "start")

    def _make_update(self, n_classes: int) -> Update:
        keep = check_real(self.keep, "keep", low=0.0, high=0.99)
        return additive(keep, n_classes) if self._geometry == "additive" else multiplicative()

    def _set_rounds(self, rounds: list[AuditRound]) -> None:
        """Set what is said about the rounds, as plain arrays."""
        self.round_numbers_ = np.array([r.numbers() for r in rounds], dtype=np.float64).reshape(-1, 7)
        self.round_questions_ = np.array([r.question for r in rounds], dtype=np.str_)

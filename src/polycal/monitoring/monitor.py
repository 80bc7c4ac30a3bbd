"""The monitor: rows as they come, and an alarm that may be looked at any time."""

from copy import deepcopy
from pathlib import Path as FilePath
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from polycal._text import printable
from polycal._typing import Float64s, Path
from polycal._validation import (
    agree_names,
    check_choice,
    check_chunk,
    check_groups,
    check_level,
    check_real,
    check_same_classes,
    check_sample,
    column_names,
    find_labelled,
)
from polycal._version import __version__
from polycal.calibrators.base import Calibrator
from polycal.calibrators.kernel import KernelCalibrator
from polycal.monitoring.findings import Change, changes
from polycal.monitoring.game import Game, Rules, Stream
from polycal.sample import Sample
from polycal.states.base import plain_set
from polycal.storage.atomic import replacing
from polycal.storage.rules import ClassNames, Kept, Part, Real, Text, Whole, expect
from polycal.storage.saved import Saved, packed, save

ALARMS = ("once", "many")


class Monitor(Saved):
    r"""Watch a deployed classifier: have its probabilities stopped being right?

    Rows come as they happen, in batches of any size. After every row one may look, and stop at will: if the labels
    follow the predictions, an alarm is ever raised with probability at most `alpha`.

    Parameters
    ----------
    alpha : float, default 0.01
        The probability of a false alarm, however long the stream is. With ``alarms="many"``, false alarms come at
        most once in 1/alpha rows on average: take alpha = 1e-6 for one in a million rows.
    reference : Calibrator, Sample, or (labels, predictions), optional
        Forgive what was wrong from the start: the map of a fitted calibrator, or a `KernelCalibrator` fitted on these
        rows, is applied to all predictions, and watched is whether the labels follow *it*. What the rows could not
        teach the calibrator is not forgiven; with a `tolerance` it is.
    tolerance : float, default 0
        Only an error above this of some question is worth an alarm; one of exact predictions otherwise.
    alarms : {"once", "many"}, default "once"
        Whether to begin anew after an alarm.
    groups : mapping of str to classes, optional
        Named sets of classes to watch, as for `audit`.
    class_names : sequence of str, optional
        Names of the classes; data frames bring theirs.

    Attributes
    ----------
    n_rows : int
        Rows seen, those of merged monitors included; `n_unlabelled` were left out, as they had no label.
    n_impossible : int
        Rows whose label had a probability below 1e-6, which counts as 1e-6.
    counted : dict of str to str
        Files that `polycal monitor` has counted: the names by the checksums of their contents.

    See Also
    --------
    audit : One look at many rows, with sharper bounds and repair.

    Notes
    -----
    *Bets.* If a label y has law v given the past and v, then a bet of one coin on probabilities q, made of the past
    and of v alone, which pays :math:`q_y / v_y`, is worth at most one coin on average. Calibrators that know the rows
    before bet so: a grid of temperatures and backgrounds, shifts of the classes, and shifts given the most likely
    class learn with every row; `VectorScaling` and `KernelCalibrator` (up to 512 classes) are fitted again whenever
    rows are half as many more, on the last 4,000 (fewer, where that is more than 4 million numbers; the kernel: half a
    million), and vector scaling also every 500 rows on the last 1,000. Beside them, bets on the residuals of
    questions: confidence, every class (up to 1,000), the groups, two short sets of classes found on the way, and
    confidence for each value of given features. The e-value is the money of all bettors together, of 1 coin at first.

    *Changes.* Three quarters of the money are bet from the first row on, and the rest is spread over all later rows, so
    that a change finds bettors with money: `polycal.monitoring.fortune` has the proof. What has to be won after t
    rows is some :math:`\log t` more.

    *With a tolerance*, only questions are bet on, each that the mean of x is at most `tolerance` given the past, with x
    as in `polycal.monitoring.questions`. That holds if the smooth error of no question is larger at any time.

    *Cost.* O(k) numbers a row and bettor; memory does not grow with the stream: mostly the rows to fit on (16 MiB at
    most), sums for each pair of classes (32 k^2 bytes), and sums of each question at 32 earlier times (9 KiB each).

    *When it holds.* The labels must come for reasons that do not depend on them, given the prediction: labels that
    come late are fine if all come late alike; frauds that are found sooner than honest payments are not. Rows that are
    there twice are counted twice, and break it.

    References
    ----------
    .. [1] Shafer (2021), "Testing by betting: a strategy for statistical and scientific communication".
    .. [2] Shin, Ramdas, Rinaldo (2022), "E-detectors: a nonparametric framework for sequential change detection".

    Examples
    --------
    >>> import polycal as pc
    >>> sample = pc.datasets.load_fashion("evaluation")
    >>> monitor = pc.Monitor(class_names=sample.class_names)
    >>> monitor.update(sample.labels[:2000], sample.proba[:2000]).alarm
    True
    >>> print(monitor.findings[0].question)
    is the most likely class right?
    """

    role: ClassVar[str] = "monitor"
    family: ClassVar[str] = "monitor"
    homes: ClassVar[dict[str, str]] = {"monitor": "polycal.monitoring.monitor"}

    alpha: Annotated[float, Real(low=1e-12, high=1.0)]
    tolerance: Annotated[float, Real(low=0.0, high=1.0)]
    alarms: Annotated[str, Text()]
    n_classes: Annotated[int | None, Whole(low=2, optional=True)]
    class_names: Annotated[tuple[str, ...] | None, ClassNames()]
    n_unlabelled: Annotated[int, Whole()]
    counted: Annotated[dict[str, str], Kept()]
    _groups: Annotated[dict[str, Any], Kept()]
    _reference: Annotated[tuple[Calibrator, ...], Part((Calibrator,), "n_references")]
    _game: Annotated[tuple[Game, ...], Part((Game,), "n_games")]

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        reference: Any = None,
        tolerance: float = 0.0,
        alarms: str = "once",
        groups: Any = None,
        class_names: Any = None,
    ) -> None:
        self.alpha = check_level(alpha)
        self.tolerance = check_real(tolerance, "tolerance", low=0.0, high=1.0)
        self.alarms = check_choice(alarms, "alarms", ALARMS)
        self.n_classes = None
        self.class_names = None if class_names is None else tuple(map(str, class_names))
        self.n_unlabelled = 0
        self.counted = {}
        self._groups = {str(name): plain_set(members) for name, members in dict(groups or {}).items()}
        self._reference = () if reference is None else (_calibrator(reference),)
        self._game = ()
        for calibrator in self._reference:
            self._agree(calibrator.n_classes_, calibrator.class_names_)

    def update(
        self,
        y_true: Any,
        y_proba: Any,
        *,
        features: Any = None,
        class_names: Any = None,
        from_logits: bool = False,
    ) -> Self:
        """Take in rows, in the order in which their labels came; a batch without rows changes nothing.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Class indices, or class names when these are known. Rows whose label is missing (None, NaN) are left out.
        y_proba : array-like or data frame of shape (n_samples, n_classes), or (n_samples,) for two classes
            What was predicted before the labels came.
        features : data frame, or mapping of str to columns, optional
            Columns of a few values each (a country, a device). Watched is whether the most likely class is right as
            often as said for each value, of the first 200 that are met.
        class_names, from_logits
            As for `audit`.

        Returns
        -------
        Monitor
            The same object.
        """
        rows = find_labelled(y_true, y_proba, features)
        # A frame says itself what its columns are.
        known = self.class_names if column_names(y_proba) is None else None
        names = known if class_names is None else class_names
        sample = check_chunk(rows.labels, rows.y_proba, class_names=names, from_logits=from_logits)
        if sample is not None:
            self._agree(sample.n_classes, sample.class_names)
            self._opened(sample).absorb(self._stream(sample, rows.columns), self._game_rules)
        self.n_unlabelled += rows.n_missing
        return self

    @property
    def n_rows(self) -> int:
        """Rows seen, those of merged monitors included."""
        return sum(game.n_rows + game.other_rows for game in self._game)

    @property
    def n_impossible(self) -> int:
        """Rows whose label had a probability below 1e-6."""
        return sum(game.impossible for game in self._game)

    @property
    def evidence(self) -> float:
        """The logarithm of the e-value, to base 10: 2 is odds of 100 to 1 against the predictions."""
        return self._game[0].evidence if self._game else 0.0

    @property
    def alarm(self) -> bool:
        """Whether there was an alarm: the e-value has ever reached 1/alpha."""
        return bool(self.alarm_rows)

    @property
    def alarm_rows(self) -> tuple[int, ...]:
        """The rows at which there was an alarm, counted from 0: one at most, unless alarms may be many."""
        return tuple(int(row) for game in self._game for row in game.alarms[:, 0])

    @property
    def alarm_row(self) -> int | None:
        """The row of the last alarm, counted from 0; None without one."""
        return self.alarm_rows[-1] if self.alarm else None

    @property
    def since(self) -> int | None:
        """The row since when the richest bettor has won, at the last alarm, or now, if there is none.

        An estimate of where the change began: there, its winnings were least. None before the first row.
        """
        if self.alarm:
            return int(self._game[0].alarms[-1, 1])
        return self._game[0].since() if self._game else None

    @property
    def findings(self) -> tuple[Change, ...]:
        """The questions that are shown to be off, by how much at least, the largest bound first.

        All bounds hold together, at any time, with probability at least 1 - alpha. After an alarm there is at least
        one finding, with a bound of 0 if no single question is shown to be off yet.
        """
        if not self._game:
            return ()
        return changes(self._game[0].questions, self._name, self.alpha, forced=self.alarm)

    @property
    def history(self) -> dict[str, Any]:
        """Evidence over time: arrays ``row``, rows seen, and ``evidence``; at most 512 points, evenly spaced."""
        if not self._game:
            return {"row": np.empty(0, dtype=np.int64), "evidence": np.empty(0)}
        history = self._game[0].history
        return {"row": history.rows.copy(), "evidence": history.evidence.copy()}

    @property
    def bets(self) -> dict[str, float]:
        """What each family of bettors has made of the money that was meant for it, as log10."""
        return self._game[0].bets() if self._game else {}

    def merge(self, other: "Monitor") -> Self:
        """Take in the evidence of another monitor, which saw other rows; the other is left as it is.

        The logarithms of the e-values add up, and so do the sums behind `findings`; each monitor has bet on its own
        past alone. An alarm of the other counts by its evidence. More rows may follow.
        """
        if not isinstance(other, Monitor):
            raise TypeError(f"a Monitor cannot be merged with a {type(other).__name__}.")
        if other is self:
            raise ValueError("a monitor cannot be merged with itself: every row would count twice.")
        if self.alarms == "many" or other.alarms == "many":
            raise ValueError('monitors with alarms="many" cannot be merged: their evidence begins anew.')
        if self._parameters() != other._parameters():
            raise ValueError(
                "monitors with other parameters cannot be merged: alpha, tolerance, reference and groups must agree."
            )
        for digest in self.counted.keys() & other.counted.keys():
            raise ValueError(f"both monitors have counted {self.counted[digest]}: a merge counts it twice.")
        for game in other._game:
            self._agree(game.n_classes, other.class_names)
            if self._game:
                self._game[0].merge(game, self._game_rules)
            else:
                self._game = (deepcopy(game),)
        self.n_unlabelled += other.n_unlabelled
        self.counted |= other.counted
        return self

    def anew(self) -> "Monitor":
        """A monitor with the same parameters that has seen nothing."""
        other = Monitor(self.alpha, tolerance=self.tolerance, alarms=self.alarms)
        other._groups, other._reference = self._groups, self._reference
        other.class_names, other.n_classes = self.class_names, self.n_classes if self._reference else None
        return other

    def save(self, path: Path) -> None:
        """Write the monitor to one file, to be read back by `polycal.load`; no pickle is involved."""
        save(self, path)

    def to_html(self, path: Path | None = None, *, title: str | None = None) -> str:
        """Write what was seen as one HTML page that needs nothing else: it opens offline, in any browser.

        Parameters
        ----------
        path : str or path, optional
            The file, which is replaced as a whole or not at all. By default nothing is written.
        title : str, optional
            What is watched, such as the model's name.

        Returns
        -------
        str
            The page: evidence over time, the alarm, the questions, and what is said and happens before and after.
        """
        from polycal.report.monitor import render_monitor  # noqa: PLC0415 - templates are slow to import

        page = render_monitor(self.to_dict(), title=title)
        if path is not None:
            with replacing(FilePath(path)) as file:
                file.write(page.encode())
        return page

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what the command prints as JSON, and the page shows."""
        history = self.history
        return {
            "n_rows": self.n_rows,
            "n_classes": self.n_classes,
            "class_names": None if self.class_names is None else list(self.class_names),
            "n_unlabelled": self.n_unlabelled,
            "n_impossible": self.n_impossible,
            "alpha": self.alpha,
            "threshold": self._game_rules.threshold / float(np.log(10.0)),
            "tolerance": self.tolerance,
            "has_reference": bool(self._reference),
            "alarms": self.alarms,
            "alarm": self.alarm,
            "alarm_row": self.alarm_row,
            "alarm_rows": list(self.alarm_rows),
            "since": self.since,
            "evidence": self.evidence,
            "bets": self.bets,
            "findings": [finding.to_dict() for finding in self.findings],
            "versions": {"polycal": __version__},
            "history": {"row": history["row"].tolist(), "evidence": history["evidence"].tolist()},
        }

    def __repr__(self) -> str:
        return f"Monitor(n_rows={self.n_rows}, evidence={self.evidence:z.2f}, alarm={self.alarm})"

    def __str__(self) -> str:
        lines = [f"{self.n_rows:,} rows, evidence 10^{self.evidence:z.1f} against the predictions"]
        if self.alarm:
            lines[0] += f": alarm at row {self.alarm_row:,}, since about row {self.since:,}"
        return printable("\n".join([*lines, *(f"  {finding}" for finding in self.findings)]), lines=True)

    @property
    def _game_rules(self) -> Rules:
        return Rules(self.alpha, self.tolerance, self.alarms == "many")

    def _parameters(self) -> tuple[Any, ...]:
        reference = [repr(packed(calibrator)) for calibrator in self._reference]
        return self.alpha, self.tolerance, self._groups, reference

    def _name(self, class_index: int) -> str:
        return str(class_index) if self.class_names is None else self.class_names[class_index]

    def _agree(self, n_classes: int, class_names: tuple[str, ...] | None) -> None:
        """Refuse rows of other classes, or of the same in another order."""
        if self.n_classes is not None:
            check_same_classes(n_classes, self.n_classes, "the monitor watches")
        if self.class_names is not None:
            agree_names(self.class_names, class_names)
        self.class_names = self.class_names or class_names
        self.n_classes = n_classes

    def _opened(self, sample: Sample) -> Game:
        """The game, begun by the first rows."""
        if not self._game:
            groups = check_groups(self._groups, sample)
            self._game = (Game.fresh(sample.n_classes, groups, self._game_rules),)
        return self._game[0]

    def _stream(self, sample: Sample, columns: dict[str, Any]) -> Stream:
        proba: Float64s = sample.proba.astype(np.float64, copy=False)
        for calibrator in self._reference:
            proba = calibrator._taking(from_logits=False).predict_proba(proba, n_jobs=1)
        return Stream(proba, sample.labels, columns)

    @classmethod
    def _rebuilt(cls, values: dict[str, Any]) -> Self:
        monitor = cls(values["alpha"], tolerance=values["tolerance"], alarms=values["alarms"])
        for name in cls._rules.keys() - {"alpha", "tolerance", "alarms"}:
            setattr(monitor, name, values[name.lstrip("_")])
        return monitor

    def _check(self) -> None:
        super()._check()
        check_choice(self.alarms, "alarms", ALARMS)
        expect(isinstance(self._groups, dict), "groups must be named sets of classes")
        expect(
            isinstance(self.counted, dict) and all(isinstance(name, str) for name in self.counted.values()),
            "counted must be names of files",
        )
        expect(len(self._game) <= 1 and len(self._reference) <= 1, "there is one game, and one reference")
        sizes = {game.n_classes for game in self._game} | {c.n_classes_ for c in self._reference}
        expect(sizes <= {self.n_classes}, "all parts must be of the same classes")
        expect(
            all(game.bets_on_calibrators == (self.tolerance == 0) for game in self._game),
            "calibrators bet if there is no tolerance",
        )


def _calibrator(reference: Any) -> Calibrator:
    """A fitted calibrator, or one fitted on rows."""
    if isinstance(reference, Calibrator):
        if not hasattr(reference, "steps_"):
            raise ValueError("reference is a calibrator that is not fitted; fit it first.")
        return reference
    if isinstance(reference, Sample):
        return KernelCalibrator()._fit_sample(reference)
    if not isinstance(reference, tuple) or len(reference) != 2:
        raise TypeError(
            "reference must be a fitted calibrator, a Sample, or a tuple (labels, predictions); "
            f"got {type(reference).__name__}."
        )
    return KernelCalibrator()._fit_sample(check_sample(*reference))

"""Answers at the right depth of a tree of classes: as specific as a certified risk allows."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polycal import _typing
from polycal._card import card
from polycal._typing import Bools, Float64s, Ints
from polycal._validation import check_proba, check_sample, check_seed
from polycal._validation.lists import check_entries, is_sparse
from polycal.io.chunks import PredictionFiles, opened_predictions
from polycal.io.layout import Layout
from polycal.io.memory import DEFAULT_MEMORY
from polycal.io.reader import Part as FilePart
from polycal.states.depth import DepthCertificate, DepthState
from polycal.storage.rules import ClassNames, Part, Real, Whole, expect
from polycal.storage.saved import Saved, save
from polycal.taxonomy import Taxonomy, make_taxonomy

# What is answered where no node is likely enough.
ANYTHING = "anything"


class Answers(NamedTuple):
    """The answers of rows.

    Attributes
    ----------
    nodes : ndarray of int64
        The number of the node in the tree; -1 is "anything".
    proba : ndarray of float64
        Its predicted probability.
    """

    nodes: Ints
    proba: Float64s


class AnswerDepth(Saved):
    r"""Answer with the deepest node of a tree whose probability is large enough, such that the risk is certified.

    Parameters
    ----------
    taxonomy : Taxonomy, mapping or list
        The tree of the classes, as for `make_taxonomy`.
    risk : float, default 0.05
        The share of answers that may be wrong: the label is not below the node answered.
    alpha : float, default 0.05
        The probability that the risk is larger all the same.
    n_thresholds : int, default 50
        Thresholds that are tried.
    random_state : int, default 0
        Seed of the orders in which rows are bet on, if they have weights.

    Attributes
    ----------
    taxonomy_ : Taxonomy
    certificate_ : DepthCertificate or None
        What is certified; None if not even the most careful threshold is, and every answer is "anything".
    specificity_ : float
        Mean share of the classes that an answer rules out, on the rows of the fit: 1 - (classes below - 1) / (k - 1).
    n_classes_, class_names_
        The classes of the fit.

    Notes
    -----
    For a threshold t the answer is the deepest node whose probability is at least t, down the tree from the likeliest
    top; without one it is "anything", which is always right. Thresholds are fixed in advance and tested from careful
    to specific, each at level `alpha` against a risk above `risk`, until the first that fails: so the last one that
    passed has a risk of at most `risk` with probability at least 1 - `alpha`, without any correction. The test is the
    exact binomial one, and with weights one by betting. Cost: O(n nodes).

    Of lists of classes, the probability of a node is what is listed below it: the certificate is of that rule.

    Examples
    --------
    >>> import polycal as pc
    >>> known, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> tree = {
    ...     "clothes": {"tops": ["T-shirt/top", "Pullover", "Coat", "Shirt"], "other": ["Trouser", "Dress"]},
    ...     "footwear": ["Sandal", "Sneaker", "Ankle_boot"],
    ...     "Bag": None,
    ... }
    >>> model = pc.AnswerDepth(tree, risk=0.05).fit(known.proba, known.labels, class_names=known.class_names)
    >>> model.certificate_.at_most <= 0.05
    True
    >>> model.predict(fresh.proba[:5])
    array(['footwear/Ankle_boot', 'clothes/tops/Pullover',
           'clothes/other/Trouser', 'clothes/other/Trouser', 'clothes/tops'],
          dtype=object)
    """

    role: ClassVar[str] = "answers"
    family: ClassVar[str] = "depth"
    homes: ClassVar[dict[str, str]] = {"depth": "polycal.answering"}

    risk: Annotated[float, Real(low=0, high=1)]
    alpha: Annotated[float, Real(low=0, high=1)]
    n_thresholds: Annotated[int, Whole(low=2)]
    random_state: Annotated[int, Whole()]
    taxonomy_: Annotated[Taxonomy, Part((Taxonomy,))]
    n_classes_: Annotated[int, Whole(low=2)]
    class_names_: Annotated[tuple[str, ...] | None, ClassNames("n_classes_")]
    specificity_: Annotated[float, Real(low=0, high=1)]
    # One, or none.
    _certificates: Annotated[tuple[DepthCertificate, ...], Part((DepthCertificate,), "n_certificates")]

    def __init__(
        self,
        taxonomy: Any,
        *,
        risk: float = 0.05,
        alpha: float = 0.05,
        n_thresholds: int = 50,
        random_state: int = 0,
    ) -> None:
        self.taxonomy, self.risk, self.alpha = taxonomy, risk, alpha
        self.n_thresholds, self.random_state = n_thresholds, random_state

    def fit(self, proba: Any, y: Any, sample_weight: Any = None, *, class_names: Any = None) -> Self:
        """Find the most specific threshold whose risk is certified.

        Parameters
        ----------
        proba : array-like or sparse matrix of shape (n_samples, n_classes)
            Predicted probabilities of rows that had no part in making them.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight, class_names
            As for `smooth_calibration_error`.

        Returns
        -------
        AnswerDepth
        """
        sample = check_sample(
            y, proba, sample_weight=sample_weight, class_names=class_names, remainder="unknown"
        )
        state = self.state()
        state.absorb(sample, np.arange(sample.n_samples))
        return self.fit_state(state)

    def fit_files(
        self,
        data: _typing.Path | Sequence[_typing.Path] | PredictionFiles,
        *,
        memory: int | str = DEFAULT_MEMORY,
        part: FilePart = "all",
        layout: Layout | None = None,
    ) -> Self:
        """Fit on predictions in files, which need not fit into memory: the same model as from memory.

        Parameters
        ----------
        data, memory, part
            As for `audit_stream`.
        layout : Layout, optional
            What the columns of the files are, as the command's options say it.

        Returns
        -------
        AnswerDepth
        """
        state = self.state()
        for chunk in opened_predictions(data, memory, part, "unknown", layout or Layout()):
            state.absorb(chunk.sample, chunk.rows)
        return self.fit_state(state)

    def state(self) -> DepthState:
        """What adds up over chunks, files and workers, to be given to `fit_state`."""
        return DepthState(
            make_taxonomy(self.taxonomy),
            risk=self.risk,
            alpha=self.alpha,
            n_thresholds=self.n_thresholds,
            random_state=check_seed(self.random_state),
        )

    def fit_state(self, state: DepthState) -> Self:
        """Fit on the rows that a state has seen.

        Parameters
        ----------
        state : DepthState
            Made by `state`, and shown rows.

        Returns
        -------
        AnswerDepth
        """
        certificate, self.specificity_ = state.finish()
        self._certificates = () if certificate is None else (certificate,)
        self.taxonomy_, self.class_names_ = state.taxonomy, state.class_names
        self.n_classes_ = int(state.taxonomy.leaves.size)
        return self

    @property
    def certificate_(self) -> DepthCertificate | None:
        """What is certified; None if nothing is, and every answer is "anything"."""
        self._check_fitted()
        return next(iter(self._certificates), None)

    @property
    def n_certificates(self) -> int:
        """One, or none."""
        return len(self._certificates)

    def answer(self, proba: Any) -> Answers:
        """The number of the node answered for each row, and its probability.

        Parameters
        ----------
        proba : array-like or sparse matrix of shape (n_samples, n_classes)

        Returns
        -------
        Answers
        """
        certificate = self.certificate_
        checked = check_entries(proba, "proba") if is_sparse(proba) else check_proba(proba, name="proba")[0]
        if checked.shape[1] != self.n_classes_:
            raise ValueError(f"proba has {checked.shape[1]} classes; fit saw {self.n_classes_}.")
        classes = self.taxonomy_.classes(self.n_classes_, self.class_names_)
        nodes, chances = self.taxonomy_.likeliest(checked, classes)
        threshold = np.inf if certificate is None else certificate.threshold
        depth = ((nodes >= 0) & (chances >= threshold)).sum(axis=1)[:, None]
        # Before the first step stands "anything", which is always right.
        answered = np.take_along_axis(np.insert(nodes, 0, -1, axis=1), depth, axis=1)
        said = np.take_along_axis(np.insert(chances, 0, 1.0, axis=1), depth, axis=1)
        return Answers(answered[:, 0], said[:, 0])

    def paths(self, nodes: Ints) -> NDArray[np.object_]:
        """The paths of nodes by their numbers; -1 is "anything"."""
        # The last, which -1 stands for.
        found: NDArray[np.object_] = np.array([*self.taxonomy_.paths, ANYTHING], dtype=object)[nodes]
        return found

    def predict(self, proba: Any) -> NDArray[np.object_]:
        """The path of the node answered for each row, or "anything".

        Parameters
        ----------
        proba : array-like or sparse matrix of shape (n_samples, n_classes)

        Returns
        -------
        ndarray of str
        """
        return self.paths(self.answer(proba).nodes)

    def is_right(self, nodes: Ints, y: Ints) -> Bools:
        """Whether labels, as class indices, are below the nodes answered."""
        return self.taxonomy_.holds(nodes, y, self.taxonomy_.classes(self.n_classes_, self.class_names_))

    def save(self, path: _typing.Path) -> None:
        """Write the fitted model to one file, to be read back by `polycal.load`; no pickle is involved."""
        self._check_fitted()
        save(self, path)

    def check_class_names(self, names: Sequence[str] | None) -> None:
        """Refuse predictions whose classes are named otherwise, or in another order."""
        if None not in (names, self.class_names_) and tuple(names or ()) != self.class_names_:
            raise ValueError("the model was fitted on classes of other names, or in another order.")

    @classmethod
    def _rebuilt(cls, values: dict[str, Any]) -> Self:
        options = ("risk", "alpha", "n_thresholds", "random_state")
        model = cls(values["taxonomy_"], **{name: values[name] for name in options})
        for name in ("taxonomy_", "n_classes_", "class_names_", "specificity_"):
            setattr(model, name, values[name])
        model._certificates = values["certificates"]
        return model

    def _check(self) -> None:
        super()._check()
        expect(self.n_certificates <= 1, "there is one certificate, or none")
        self.taxonomy_.classes(self.n_classes_, self.class_names_)

    def _check_fitted(self) -> None:
        if not hasattr(self, "_certificates"):
            raise ValueError("this AnswerDepth is not fitted yet; call fit first.")

    def __repr__(self) -> str:
        return f"AnswerDepth(risk={self.risk}, alpha={self.alpha})"

    def _repr_html_(self) -> str:
        if not hasattr(self, "_certificates"):
            return card("AnswerDepth", [("risk", f"{self.risk:g}"), ("fitted", "no")])
        certificate = self.certificate_
        bound = "nothing is certified" if certificate is None else f"at most {certificate.at_most:.4f}"
        return card(
            "AnswerDepth",
            [
                ("risk", bound),
                ("confidence", f"{1 - self.alpha:.4g}"),
                ("specificity", f"{self.specificity_:.3f}"),
            ],
        )

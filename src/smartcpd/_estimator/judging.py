"""What a fitted estimator does with data: new rows, scores, findings and expected values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smartcpd._common.doors import doors
from smartcpd._data.labelled import is_frame
from smartcpd._estimator.columns import check_given_names, compare_columns
from smartcpd._estimator.display import found
from smartcpd._estimator.protocol import Estimator
from smartcpd._fitting.consensus import Consensus
from smartcpd._fitting.model import CPModel
from smartcpd._problem.history import History, Status
from smartcpd.errors import InvalidDataError

if TYPE_CHECKING:
    from smartcpd._fitting.answers.diagnosis import Diagnosis


class MeetsNewData(Estimator):
    """The methods of `smartcpd.SmartCPD` that take data and leave the fit as it is."""

    model_: CPModel
    history_: History
    status_: Status
    consensus_: Consensus | None
    deviance_explained_: float | None
    loss_reason_: str
    constraint: Any
    fixed: Any
    fixed_components: Any
    same: Any
    absent: str

    def __repr__(self) -> str:
        text = super().__repr__()
        if not hasattr(self, "model_"):
            return text
        lines = [text, f"  {found(self.model_, self.status_, self.deviance_explained_)}"]
        if self.loss_reason_:
            lines.append(f"  loss {self.loss_reason_}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return doors.shown_estimator(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    @property
    def components_(self) -> np.ndarray:
        """The components as an array of rank x the shape of a slice of mode 0.

        The model values of slices are ``transform(X) @ components_``, where X is a table; in
        general ``np.tensordot(transform(X), components_, 1)``. It is made when it is asked for;
        one of more than 4 GB is refused.
        """
        self._check_fitted()
        model = self.model_
        rows = np.diag(model.weights)
        return np.asarray(CPModel([rows, *model.factors[1:]]).full())

    @property
    def n_iter_(self) -> int:
        """The number of epochs that the fit took."""
        self._check_fitted()
        return self.history_[-1].epoch if self.history_ else 0

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that `transform` returns: "component 1" and so on.

        Parameters
        ----------
        input_features : sequence of str, optional
            Only compared with the names that the fit has seen, if it has seen any.

        Returns
        -------
        ndarray of str

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X, _ = datasets.count((6, 5, 4), rank=1, random_state=0)
        >>> fitted = SmartCPD(1, "poisson", random_state=0).fit(X)
        >>> fitted.get_feature_names_out().tolist()
        ['component 1']
        """
        self._check_fitted()
        if input_features is not None:
            known = getattr(self, "feature_names_in_", None)
            check_given_names(known, self.model_.shape[1], input_features)
        return np.array([f"component {r}" for r in range(1, self.model_.rank + 1)], dtype=object)

    def _check_names(self, X: Any, mode: int | str = 0) -> None:
        """Compare the columns of a table with those of the fit, unless they are the new slices."""
        table = is_frame(X) or (isinstance(X, np.ndarray) and X.ndim == 2)
        if table and self.model_.order == 2 and self._is_first(mode):
            compare_columns(getattr(self, "feature_names_in_", None), X, type(self).__name__)

    def _is_first(self, mode: int | str) -> bool:
        return mode in (0, self.model_.named_modes[0].name)

    def transform(
        self, X: Any, mode: int | str = 0, *, mask: Any = None, weights: Any = None
    ) -> Any:
        """Return the factor of one mode for new slices, the other factors fixed.

        Parameters
        ----------
        X : array or SparseTensor
            New slices: of the shape of the data, but for the length of one mode.
        mode : int or str
            The mode that they are slices of, by number or name.
        mask, weights : optional
            As for `fit`.

        Returns
        -------
        ndarray (slices x rank)
            Within the constraint of that mode. Rows of slices of which nothing was observed are 0;
            a warning names them. Of data with labels a `LabelledTensor`, whose rows keep theirs; of
            a DataFrame an array; or the table that ``set_output`` asks for.

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X, _ = datasets.count((6, 5, 4), rank=1, random_state=0)
        >>> fitted = SmartCPD(1, "poisson", random_state=0).fit(X)
        >>> fitted.transform(X[:2]).shape
        (2, 1)
        """
        self._check_fitted()
        self._check_names(X, mode)
        how = {"constraint": self.constraint, "absent": self.absent}
        rows = self.model_.transform(X, mode, mask=mask, weights=weights, **how)
        columns = self.get_feature_names_out().tolist()
        return self._in_container(rows, columns, X, 0 if self._is_first(mode) else 1)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the data that the model expects of slices of mode 0 with given rows.

        Parameters
        ----------
        X : array (slices x rank)
            Rows as `transform` returns them.

        Returns
        -------
        ndarray (slices x the shape of a slice)

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X, _ = datasets.count((6, 5, 4), rank=1, random_state=0)
        >>> fitted = SmartCPD(1, "poisson", random_state=0).fit(X)
        >>> fitted.inverse_transform(fitted.transform(X[:2])).shape
        (2, 5, 4)
        """
        self._check_fitted()
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != self.model_.rank:
            raise InvalidDataError(
                f"inverse_transform takes rows of {self.model_.rank} numbers, one for each "
                f"component, as transform returns them; got shape {rows.shape}."
            )
        model = self.model_
        slices = CPModel([rows, *model.factors[1:]], model.weights, model.loss_function)
        return np.asarray(slices.full())

    def score_samples(
        self,
        X: Any,
        mode: int | str = 0,
        *,
        dispersion: float | None = None,
        mask: Any = None,
        weights: Any = None,
    ) -> np.ndarray:
        """Return the mean log-likelihood of each slice, under the factors that `transform` finds.

        The slices may be new ones.

        Parameters
        ----------
        X : array or SparseTensor
            Slices: of the shape of the data, but for the length of one mode.
        mode : int or str
            The mode that they are slices of, by number or name.
        dispersion : float, optional
            How widely the data scatters, where the loss leaves that open; estimated from X by
            default.
        mask, weights : optional
            As for `fit`.

        Returns
        -------
        ndarray
            One number a slice; NaN where nothing was observed.

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X, _ = datasets.count((6, 5, 4), rank=1, random_state=0)
        >>> fitted = SmartCPD(1, "poisson", random_state=0).fit(X)
        >>> fitted.score_samples(X).shape
        (6,)
        """
        self._check_fitted()
        self._check_names(X, mode)
        how = (self.constraint, self.absent, mask, weights)
        model = doors.with_new_rows(self.model_, X, mode, *how)
        return model.score_samples(
            X, mode, dispersion=dispersion, absent=self.absent, mask=mask, weights=weights
        )

    def score(self, X: Any, y: Any = None, *, mask: Any = None, weights: Any = None) -> float:
        """Return how well the model predicts cells of X: their mean log-likelihood.

        X may hold other slices of mode 0 than the fit had, and any number of them. A slice needs a
        row of its own before anything can be said of it (see `transform`), and a row fitted to the
        cells that it is judged by would look the better the more components there are. So the
        cells are divided into five parts along the longest of the other modes, and each part is
        judged by rows that were found from the others. Scores therefore compare over ranks and
        losses, and `sklearn.model_selection.GridSearchCV` finds both.

        Those who hold out rows learn how well patterns carry over to new rows. Whether a rank and
        a loss suit the data at hand is better found by holding out cells, of which every row and
        every column keeps most: `smartcpd.select` and `smartcpd.cross_validate` do that, for
        sparse data too.

        Parameters
        ----------
        X : array or SparseTensor
            Data of the shape of the fitted data, but for the length of mode 0.
        y : ignored
        mask, weights : optional
            As for `fit`.

        Returns
        -------
        float
            On the scale of the data, higher is better. Where the loss gives such values no
            probability (one of your own; poisson for amounts that are no whole numbers), minus the
            mean loss, which compares over ranks only.

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X, _ = datasets.count((12, 9, 8), rank=1, a_max=1.5, random_state=0)
        >>> fitted = SmartCPD(1, "poisson", random_state=0).fit(X[:8])
        >>> fitted.score(X[8:]) > fitted.score(X[8:] + 5)
        True
        """
        self._check_fitted()
        self._check_names(X)
        how = (self.constraint, self.absent, mask, weights)
        return doors.predictive_score(self.model_, X, *how)

    def diagnose(
        self, X: Any, *, mask: Any = None, weights: Any = None, compare_ranks: bool = False
    ) -> Diagnosis:
        """Find out what may be wrong with the fit, and what to do about it; see `CPModel.diagnose`.

        It knows how the fit ended and, with ``n_init`` > 1, what other starts found.

        Parameters
        ----------
        X, mask, weights
            As for `fit`.
        compare_ranks : bool
            As for `CPModel.diagnose`.

        Returns
        -------
        Diagnosis

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X, _ = datasets.count((6, 5, 4), rank=1, random_state=0)
        >>> fitted = SmartCPD(1, "poisson", random_state=0).fit(X)
        >>> type(fitted.diagnose(X)).__name__
        'Diagnosis'
        """
        self._check_fitted()
        return doors.diagnose(
            self.model_,
            X,
            self.absent,
            mask=mask,
            weights=weights,
            constraint=self.constraint,
            status=self.status_,
            history=self.history_,
            consensus=self.consensus_,
            compare_ranks=compare_ranks,
        )

    def report(
        self,
        X: Any = None,
        path: str | os.PathLike[str] = "report.html",
        *,
        mask: Any = None,
        weights: Any = None,
        title: str | None = None,
    ) -> Path:
        """Write a page about the fit: one file of HTML that needs no network.

        Parameters
        ----------
        X : optional
            The data: how well it is described, whether the rank suits it and what may be wrong then
            stand on the page too. Of the rank nothing is said where parts of the model were fixed
            or modes share a factor.
        path : path
            The file, which is replaced if it exists.
        mask, weights : optional
            As for `fit`.
        title : str, optional
            By default the names of the modes.

        Returns
        -------
        Path
            The path of the file.

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X, _ = datasets.count((6, 5, 4), rank=1, random_state=0)
        >>> SmartCPD(1, random_state=0).fit(X).report(X, "page.html").name
        'page.html'
        """
        self._check_fitted()
        return doors.report(
            self.model_,
            path,
            X,
            self.absent,
            mask=mask,
            weights=weights,
            title=title,
            constraint=self.constraint,
            status=self.status_,
            history=self.history_,
            consensus=self.consensus_,
            settings={"rank": self.model_.rank, "loss": str(self.model_.loss_function)},
            compare_ranks=self.same is self.fixed is self.fixed_components is None,
        )

    def predict(self, indices: Any) -> np.ndarray:
        """Return the expected values of chosen cells.

        Parameters
        ----------
        indices : (n x order) array of int, or labels
            A cell a row, by numbers or by labels, as `CPModel.mean` takes them. Cells without data
            are ``np.argwhere(np.isnan(X))``; ``model_.full()`` gives all cells, and `transform`
            takes new slices.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> from smartcpd import SmartCPD, datasets
        >>> X, _ = datasets.count((10, 9, 8), rank=1, a_max=1.0, random_state=0)
        >>> fit = SmartCPD(1, "poisson", random_state=0).fit(X)
        >>> fit.predict([[0, 0, 0], [1, 2, 3]]).round(1)
        array([0.2, 0.2])
        """
        self._check_fitted()
        return self.model_.mean(indices)

"""The methods of `CPModel` that take data X."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smartcpd._common.doors import doors
from smartcpd._data.labelled import LabelledTensor

if TYPE_CHECKING:
    from smartcpd._fitting.answers.diagnosis import Diagnosis
    from smartcpd._fitting.answers.intervals import Intervals
    from smartcpd._objectives import Estimate


class MeetsData:
    """The methods of a model that take data; each calls the module that does the work."""

    def loss(self, X: Any, absent: str = "zero", *, mask: Any = None, weights: Any = None) -> float:
        """Return the mean loss of this model on data X, over all observed cells.

        Parameters
        ----------
        X : array or SparseTensor
            Data of the shape of the model.
        absent : {"zero", "unobserved"}
            What cells mean that sparse data does not store, as for `SmartCPD`.
        mask, weights : optional
            As for `SmartCPD.fit`. With weights w the mean is the sum of w l over the sum of w.

        Returns
        -------
        float

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))], loss_function="gaussian")
        >>> model.loss(np.full((2, 3), 3.0))
        2.0
        """
        return self.loss_estimate(X, absent, mask=mask, weights=weights).loss

    def loss_estimate(
        self, X: Any, absent: str = "zero", *, mask: Any = None, weights: Any = None
    ) -> Estimate:
        """Return the mean loss on X and its standard error.

        The error is 0, the loss exact, for dense data, for losses whose zeros sum up in closed form
        (poisson, gaussian), and for sparse tensors of up to 33 million cells. Beyond, the loss of
        the zeros comes from a quadratic in closed form plus what it leaves on a sample of cells, or
        on all cells that matter.

        Parameters
        ----------
        X, absent, mask, weights
            As for `loss`.

        Returns
        -------
        Estimate
            ``loss`` and ``error``.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))], loss_function="gaussian")
        >>> model.loss_estimate(np.zeros((2, 3)))
        Estimate(loss=0.5, error=0.0)
        """
        return doors.mean_loss(X, self, absent, mask, weights)

    def diagnose(
        self,
        X: Any,
        absent: str = "zero",
        *,
        mask: Any = None,
        weights: Any = None,
        constraint: Any = "auto",
        compare_ranks: bool = False,
    ) -> Diagnosis:
        """Find out what may be wrong with this model of data X, and what to do about it.

        It looks for dead, duplicate and diverging components, a fit that had not come to its end,
        counts that scatter too widely or have too many zeros, probabilities that do not come true,
        single cells that dominate, and rows of which too little is known. Checks that mean nothing
        for a loss are left out. Large data is sampled, always in the same way.

        Parameters
        ----------
        X, absent, mask, weights
            As for `loss`.
        constraint : str, Constraint, or one a mode
            The constraint that the model was fitted under, as for `SmartCPD`.
        compare_ranks : bool
            Whether to refit with fewer and with more components, some cells held out, to see
            whether the rank is too high or too low; it takes a second or two.

        Returns
        -------
        Diagnosis
            To print, or to go through; ``ok`` if there is no warning in it.

        See Also
        --------
        SmartCPD.diagnose : knows how the fit went, too.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((4, 1)), np.full((5, 1), 2.0)], loss_function="poisson")
        >>> model.diagnose(np.tile([1, 2, 3, 2, 2], (4, 1))).ok
        True
        """
        return doors.diagnose(
            self,
            X,
            absent,
            mask=mask,
            weights=weights,
            constraint=constraint,
            compare_ranks=compare_ranks,
        )

    def transform(
        self,
        X_new: Any,
        mode: int | str = 0,
        *,
        constraint: Any = "auto",
        absent: str = "zero",
        mask: Any = None,
        weights: Any = None,
    ) -> np.ndarray | LabelledTensor:
        """Return the factor of one mode for new slices, the other factors and the weights fixed.

        Parameters
        ----------
        X_new : array or SparseTensor
            New slices: of the shape of the data, but for the length of one mode.
        mode : int or str
            The mode that they are slices of, by number or name.
        constraint : str, Constraint, or one a mode
            As for `SmartCPD`; `SmartCPD.transform` gives its own. One that ties the rows of a
            column together holds for the new rows among themselves.
        absent, mask, weights
            As for `loss`.

        Returns
        -------
        ndarray (slices x R)
            A `LabelledTensor` with the labels of the rows, if the slices have some. Where the fit
            has converged, the slices it was made from get their own rows. Rows of
            slices of which nothing was observed are 0; a warning names them.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))], loss_function="poisson")
        >>> model.transform(np.array([[2, 3, 4]])).round(6)
        array([[3.]])
        """
        return doors.transform(
            self,
            X_new,
            mode,
            constraint=constraint,
            absent=absent,
            mask=mask,
            weights=weights,
        )

    def dispersion(
        self, X: Any, absent: str = "zero", *, mask: Any = None, weights: Any = None
    ) -> float | None:
        """Return how widely data scatters about this model, where the loss leaves that open.

        The dispersion d makes -l / d the log-likelihood of a cell, up to what the data alone
        decides: the variance of the noise for gaussian, that relative to the squared mean for
        gamma. For gaussian and huber it follows from the mean loss, for other losses it is
        Pearson's estimate: the mean of squared residuals over the variances that the loss names.

        Parameters
        ----------
        X, absent, mask, weights
            As for `loss`.

        Returns
        -------
        float or None
            None where the loss leaves nothing open (poisson does for amounts that are no whole
            numbers), or where it names no distribution.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((20, 1)), np.ones((50, 1))], loss_function="gaussian")
        >>> noise = 0.5 * np.random.default_rng(0).standard_normal((20, 50))
        >>> round(model.dispersion(1 + noise), 1)
        0.3
        """
        return doors.dispersion(self, X, absent, mask, weights)

    def score_samples(
        self,
        X: Any,
        mode: int | str = 0,
        *,
        dispersion: float | None = None,
        absent: str = "zero",
        mask: Any = None,
        weights: Any = None,
    ) -> np.ndarray:
        """Return the mean log-likelihood of the observed cells of each slice of a mode.

        Parameters
        ----------
        X : array or SparseTensor
            Data of the shape of the model.
        mode : int or str
            By number or name.
        dispersion : float, optional
            How widely the data scatters, for losses that leave it open; by default estimated from
            X, as `dispersion` does.
        absent, mask, weights
            As for `loss`.

        Returns
        -------
        ndarray
            One number a slice, on the scale of the data; NaN where nothing was observed.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))], loss_function="poisson")
        >>> model.score_samples(np.array([[1, 1, 1], [0, 0, 9]])).round(2)
        array([-1.  , -5.27])
        """
        return doors.score_samples(
            self, X, mode, dispersion=dispersion, absent=absent, mask=mask, weights=weights
        )

    def surprise(
        self,
        X: Any,
        indices: Any = None,
        *,
        dispersion: float | None = None,
        absent: str = "zero",
        mask: Any = None,
    ) -> np.ndarray:
        """Return how surprising observed values are: their two-sided tail probabilities.

        They are near 1 for a value in the middle of what the model expects, near 0 for one far out.

        Parameters
        ----------
        X : array or SparseTensor
            Data of the shape of the model; with ``indices``, the values of those cells.
        indices : optional
            Cells, as for `values`.
        dispersion : float, optional
            As for `score_samples`; with ``indices`` it is not estimated.
        absent, mask
            As for `loss`.

        Returns
        -------
        ndarray
            In the shape of dense data, NaN where a cell is missing; of sparse data, a number for
            each entry in the order of ``SparseTensor.indices``; or one for each of the cells.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))], loss_function="poisson")
        >>> model.surprise([1, 9], [[0, 0], [0, 1]]).round(6)
        array([1.e+00, 2.e-06])
        """
        return doors.surprise(self, X, indices, dispersion=dispersion, absent=absent, mask=mask)

    def intervals(
        self,
        X: Any,
        level: float = 0.9,
        *,
        method: str = "auto",
        constraint: Any = "auto",
        dispersion: float | None = None,
        n_bootstrap: int = 200,
        random_state: Any = None,
        absent: str = "zero",
        mask: Any = None,
        weights: Any = None,
    ) -> Intervals:
        """Return intervals for loadings and weights: how sure the data is about them.

        They are about the normalised model, columns of unit length with their scale in the weights,
        and about the optimum that was found: other optima are no part of it.

        Parameters
        ----------
        X : array or SparseTensor
            The data that the model was fitted to.
        level : float
            The share of intervals that should contain the true value.
        method : {"auto", "hessian", "conditional", "bootstrap"}
            "hessian" inverts the expected information about all loadings together, for up to 3000
            of them. "conditional" takes each row as if the other factors were known, for data of
            any size; its intervals are somewhat too narrow. "bootstrap" fits data that is simulated
            from the model, starting there. "auto" is "hessian", or "conditional" beyond its limits.
        constraint : str, Constraint, or one a mode
            The constraint that the model was fitted under, as for `SmartCPD`. Loadings at a bound
            get a one-sided interval, as far as the likelihood ratio allows.
        dispersion : float, optional
            As for `score_samples`: estimated where the loss leaves it open. For "huber" and for
            your own losses, second derivatives are taken at the data, and the dispersion is the
            mean square of the slopes over them, as if both were in proportion; a loss without
            second derivatives is refused.
        n_bootstrap : int
            Simulated data sets.
        random_state : int, Generator or None
            Seed of the simulations.
        absent, mask, weights
            As for `loss`.

        Returns
        -------
        Intervals
            With ``lower`` and ``upper`` factors, ``weights_lower``, ``weights_upper``, and
            ``to_frame``. Rows of which nothing was observed have intervals without an end.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((4, 1)), np.full((5, 1), 2.0)], loss_function="poisson")
        >>> model.intervals(np.tile([1, 2, 3, 2, 2], (4, 1)))
        Intervals(90%, shape=4x5, rank=1, method=hessian)
        """
        return doors.intervals(
            self,
            X,
            level,
            method=method,
            constraint=constraint,
            dispersion=dispersion,
            n_bootstrap=n_bootstrap,
            random_state=random_state,
            absent=absent,
            mask=mask,
            weights=weights,
        )

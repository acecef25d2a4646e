"""The base of all losses: formulas about one cell, l(x, m), and knowledge of its data."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from smartcpd._common.distinct import distinct
from smartcpd._common.registry import AUTO
from smartcpd.errors import InvalidParameterError
from smartcpd.losses.formulas import Formulas
from smartcpd.losses.kinds import Data, Dispersion, Domain, Evidence
from smartcpd.losses.proximal import proximal
from smartcpd.losses.saturation import settled

__all__ = ["CERTAIN", "EPS", "Data", "Dispersion", "Domain", "Evidence", "Loss", "Tails"]

EPS = 1e-9
"""Keeps logarithms and quotients finite where the model is zero."""
CERTAIN = 25.0
"""Log-odds beyond which a probability is 0 or 1 for all that data can tell."""

Tails = tuple[np.ndarray, np.ndarray]
"""P(X <= x) and P(X >= x)."""


@dataclass(frozen=True)
class Loss(Formulas):
    """A loss, described by functions of single numbers.

    Subclasses are frozen dataclasses whose fields, at most two numbers, reach the formulas as
    ``p``. The formulas are written with float literals (``1.0``, not ``1``) and the ``exp`` and
    ``log`` of `smartcpd._kernels.elementary`: compiled, they then run in the precision of the data.

    A fit needs ``name``, ``data``, ``domain``, ``value`` and ``derivative``. What is inferred from
    a fit needs the distribution as well: ``dispersion``, ``has_typical_data``, ``variance``,
    ``log_base``, ``tails`` and ``simulate``. What a loss does not define is not known (`knows`),
    and is refused or measured on the data, never guessed.

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("gaussian")
    >>> loss.value(3.0, 1.0, loss.params)
    2.0
    """

    dispersion: ClassVar[Dispersion] = Dispersion.UNKNOWN
    """Whether the loss says how widely data scatters about its mean."""
    has_typical_data: ClassVar[bool] = False
    """Whether the second derivative at `typical_data` is its expectation, as it is for losses that
    are linear in x, or in a function of x, up to a term without m. Where it is not, or nobody
    knows, intervals take second derivatives at the data itself."""
    alternatives: ClassVar[tuple[str, ...]] = ()
    """Losses worth comparing where the values of a tensor suggest this one."""
    spelled: ClassVar[str | None] = None
    """The name with example parameters, where a loss cannot do without parameters."""
    tolerant: ClassVar[str | None] = None
    """The spelling, in messages, of a loss that minds gross errors less."""
    limit: ClassVar[str | None] = None
    """The loss without a parameter that this one becomes where its own goes to infinity: where a
    fit that finds the parameter begins."""
    bends_down: ClassVar[bool] = False
    """Whether the loss of a zero bends down, so that no quadratic suits all rows of a factor, and a
    descent in all of them at once is slow. A fit then ends row by row, where cells are not too
    many for that."""

    logarithmic: ClassVar[bool] = False
    """Whether the model is the logarithm of a mean or of odds: 0 is then a value like any other."""

    @property
    def is_open(self) -> bool:
        """Whether the parameter is "auto": a fit finds it, and the model has a loss with it."""
        return AUTO in self.fields

    def with_parameter(self, value: float) -> Self:
        """Return the same loss with another parameter, for losses that have a single one.

        Parameters
        ----------
        value : float
            The parameter.

        Returns
        -------
        Loss

        Examples
        --------
        >>> from smartcpd import losses
        >>> losses.get("huber(1.0)").with_parameter(2.0)
        Huber(delta=2.0)
        """
        return replace(self, **{fields(self)[0].name: value})

    @property
    def homogeneity(self) -> float | None:
        """The p for which l(s x, s m) = s^p l'(x, m) + `unit_shift`, if there is one.

        Data in other units then has the same fit in those units; l' is `in_units` of s. Losses with
        an eps inside have a p for models far above it.
        """
        return None

    def in_units(self, unit: float) -> Loss:
        """Return the loss of data that is divided by ``unit``, where `homogeneity` is known.

        Parameters
        ----------
        unit : float
            What the data is divided by.

        Returns
        -------
        Loss

        Examples
        --------
        >>> from smartcpd import losses
        >>> losses.get("huber(1.0)").in_units(10.0)
        Huber(delta=0.1)
        """
        return self

    def unit_shift(self, unit: float, mean: float) -> float:
        """Return what l(s x, s m) has besides s^p l'(x, m), on average over cells.

        `homogeneity` says what l' and p are.

        Parameters
        ----------
        unit : float
            The s.
        mean : float
            The mean of x over the cells, before it is multiplied.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import losses
        >>> loss = losses.get("gamma")
        >>> round(float(loss.values_at(30.0, 20.0) - loss.values_at(3.0, 2.0)), 4)
        2.3026
        >>> round(loss.unit_shift(10.0, mean=3.0), 4)
        2.3026
        """
        return 0.0

    @property
    def exposure_power(self) -> float | None:
        """The p for which l(x, e m) = e^p l(x / e, m), up to what does not depend on m.

        Rates with these weights then stand for data with exposure. None if there is none.
        """
        return self.homogeneity if self.in_units(2.0) == self else None

    def knows(self, statistic: str) -> bool:
        """Return whether this loss defines a statistic of the distribution of its data.

        Parameters
        ----------
        statistic : {"variance", "log_base", "tails", "simulate"}
            The name of the method that a loss which knows it defines.

        Returns
        -------
        bool

        Examples
        --------
        >>> from smartcpd import losses
        >>> losses.get("poisson").knows("tails"), losses.get("alpha(0.5)").knows("tails")
        (True, False)
        """
        return getattr(type(self), statistic) is not getattr(Loss, statistic)

    def variance(self, mean: np.ndarray) -> np.ndarray:
        """Return the variance of cells with these means, up to the dispersion where that is open.

        Parameters
        ----------
        mean : ndarray
            Expected values of cells.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> losses.get("negative-binomial(2)").variance(np.array([1.0, 4.0]))
        array([ 1.5, 12. ])
        """
        raise self._unknown("nobody knows how widely data scatters")

    def square_variance(self, v: np.ndarray) -> np.ndarray:
        """Return the variance of squared residuals; by default that of normal ones.

        Parameters
        ----------
        v : ndarray
            The expected squared residuals: the variances of the cells.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> losses.get("gaussian").square_variance(np.array([1.0, 3.0]))
        array([ 2., 18.])
        """
        return 2.0 * v * v

    @property
    def overdispersion(self) -> float:
        """The a of counts whose variance is mean + a mean²; 0 for losses that have no such term."""
        return 0.0

    @property
    def has_density(self) -> bool:
        """Whether `log_base` makes a likelihood that compares with those of other losses."""
        return self.knows("log_base") and self.dispersion is not Dispersion.UNKNOWN

    def log_base(self, x: np.ndarray, dispersion: float) -> np.ndarray:
        """Return b(x) such that the log-likelihood of a cell is b(x) - l(x, m) / dispersion.

        Parameters
        ----------
        x : ndarray
            What was observed.
        dispersion : float
            How widely the data scatters; 1 where the loss says that itself.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> losses.get("poisson").log_base(np.array([2.0, 3.0]), 1.0).round(4)
        array([-0.6931, -1.7918])
        """
        raise self._unknown("data has no likelihood under it")

    def tails(self, x: np.ndarray, m: np.ndarray, dispersion: float) -> Tails:
        """Return P(X <= x) and P(X >= x), cell by cell.

        Parameters
        ----------
        x : ndarray
            What was observed.
        m : ndarray
            The model values of the cells.
        dispersion : float
            How widely the data scatters; 1 where the loss says that itself.

        Returns
        -------
        pair of ndarray
            Both probabilities include x itself where values are whole numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> x, m = np.array([0.0, 3.0]), np.array([1.0, 1.0])
        >>> below, above = losses.get("poisson").tails(x, m, 1.0)
        >>> below.round(4), above.round(4)
        (array([0.3679, 0.981 ]), array([1.    , 0.0803]))
        """
        raise self._unknown("no value can be called surprising")

    def simulate(
        self, m: np.ndarray, rng: np.random.Generator, *, dispersion: float | None = None
    ) -> np.ndarray:
        """Draw data whose model is m.

        Parameters
        ----------
        m : ndarray
            Model values, one a cell.
        rng : numpy.random.Generator
            The source of random numbers.
        dispersion : float, optional
            How widely the data scatters; a loss that leaves it open has a default of its own.

        Returns
        -------
        ndarray
            In the shape of m.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> m, rng = np.full(10_000, 4.0), np.random.default_rng(0)
        >>> x = losses.get("bernoulli-odds").simulate(m, rng)  # odds of 4 to 1
        >>> sorted(set(x.tolist())), round(float(x.mean()), 1)
        ([0, 1], 0.8)
        """
        raise self._unknown("no data can be drawn from it")

    def estimate_dispersion(self, evidence: Evidence) -> float:
        """Return the dispersion by Pearson's estimate, or by one that suits the loss better.

        Parameters
        ----------
        evidence : Evidence
            Figures of the data beside its model, computed when asked for: ``mean_loss``,
            ``mean_log`` (the mean of log x), ``correction`` (the cells over the cells less the
            parameters of the model) and ``pearson(variance)``.

        Returns
        -------
        float

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> from smartcpd import losses
        >>> evidence = SimpleNamespace(mean_loss=0.5, correction=1.25)
        >>> losses.get("gaussian").estimate_dispersion(evidence)
        1.25
        """
        return evidence.pearson(self.variance) * evidence.correction

    def likely_dispersion(self, evidence: Evidence) -> float:
        """Return the dispersion under which the data is most likely: what compares losses.

        Parameters
        ----------
        evidence : Evidence
            Figures of the data beside its model, computed when asked for: ``mean_loss``,
            ``mean_log`` (the mean of log x), ``correction`` (the cells over the cells less the
            parameters of the model) and ``pearson(variance)``.

        Returns
        -------
        float

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> from smartcpd import losses
        >>> evidence = SimpleNamespace(mean_loss=2.0, mean_log=0.9, correction=1.0)
        >>> round(losses.get("gamma").likely_dispersion(evidence), 3)
        0.194
        """
        return self.estimate_dispersion(evidence)

    def typical_data(self, m: np.ndarray) -> np.ndarray:
        """Return data at which the losses of cells whose model is m bend as they do on average.

        Parameters
        ----------
        m : ndarray
            Model values.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> losses.get("bernoulli-odds").typical_data(np.array([1.0, 3.0]))
        array([0.5 , 0.75])
        """
        return np.asarray(self.mean(m, self.params))

    def expected_bends(self, m: np.ndarray) -> np.ndarray:
        """Return second derivatives of the losses of cells with model m, at their typical data.

        They are the expected information that a cell has about its model value; 0 where that would
        be negative.

        Parameters
        ----------
        m : ndarray
            Model values.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> losses.get("poisson").expected_bends(np.array([1.0, 4.0])).round(3)
        array([1.  , 0.25])
        """
        return np.maximum(self.bends_at(self.typical_data(m), m), 0.0)

    def best_model(self, x: np.ndarray) -> np.ndarray:
        """Return the model values that describe x best.

        The link gives them for nearly every loss. Where the derivative does not vanish there, as
        for a user's own loss, its root is searched.

        Parameters
        ----------
        x : ndarray
            What was observed.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> losses.get("negative-binomial(2)").best_model(np.array([1.0, 4.0])).round(4)
        array([0.5, 2. ])
        """
        x = np.asarray(x, dtype=np.float64)
        linked = x.copy() if type(self).link is Loss.link else np.vectorize(self.link, [float])(x)
        return settled(self.slopes_at, x, linked, self.domain is Domain.NONNEGATIVE)

    def proximal(self, x: np.ndarray, v: np.ndarray, stiffness: np.ndarray) -> np.ndarray:
        """Return the model values that minimise l(x, m) + stiffness (m - v)² / 2, cell by cell.

        It is defined for losses that are ``convex``.

        Parameters
        ----------
        x : ndarray
            What was observed.
        v : ndarray
            The values to which the model is tied.
        stiffness : ndarray
            How strongly it is tied to them, above 0.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> x, v, stiffness = np.array([3.0]), np.array([1.0]), np.array([1.0])
        >>> losses.get("gaussian").proximal(x, v, stiffness).round(6)
        array([2.])
        """
        return proximal(self, x, v, stiffness)

    def certain(self, m: np.ndarray) -> np.ndarray:
        """Say which cells of yes/no data a model gives a probability of 0 or 1.

        Parameters
        ----------
        m : ndarray
            Model values.

        Returns
        -------
        ndarray of bool
            False in all cells for losses of other data.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> losses.get("bernoulli-logit").certain(np.array([-30.0, 0.5]))
        array([ True, False])
        """
        return np.zeros(m.shape, bool)

    def _unknown(self, so: str) -> InvalidParameterError:
        return InvalidParameterError(
            f"Loss '{self}' names no distribution, so {so}. Use one that does, such as 'poisson' "
            "or 'gamma'; a subclass of smartcpd.losses.Loss can define what is missing."
        )

    def saturated(self, x: np.ndarray) -> np.ndarray:
        """Return the least loss that any model value has at x, cell by cell.

        Parameters
        ----------
        x : ndarray
            What was observed.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> losses.get("poisson").saturated(np.array([1.0, 2.0])).round(4)
        array([1.    , 0.6137])
        """
        kinds, which = distinct(np.asarray(x))
        return self.values_at(kinds, self.best_model(kinds))[which]

    def deviance(self, x: np.ndarray, m: np.ndarray) -> np.ndarray:
        """Return twice what the losses of cells exceed the least that they could be.

        Parameters
        ----------
        x, m : ndarray
            What was observed, and the model values of these cells.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> losses.get("poisson").deviance(np.array([2.0, 2.0]), np.array([1.0, 2.0])).round(4)
        array([0.7726, 0.    ])
        """
        return np.maximum(2.0 * (self.values_at(x, m) - self.saturated(x)), 0.0)

    def checked_dispersion(self, given: float | None) -> float:
        """Return a dispersion to compute with: what was given, or 1 where the loss says so.

        Parameters
        ----------
        given : float or None
            What a user passed.

        Returns
        -------
        float

        Raises
        ------
        InvalidParameterError
            If it is not positive, if it is missing and the loss leaves it open, or if it is given
            and the loss says it itself.

        Examples
        --------
        >>> from smartcpd import losses
        >>> losses.get("poisson").checked_dispersion(None)
        1.0
        >>> losses.get("gamma").checked_dispersion(0.5)
        0.5
        """
        if given is not None and not given > 0:
            raise InvalidParameterError(f"dispersion must be a positive number; got {given!r}.")
        if given is None and self.dispersion is Dispersion.UNKNOWN:
            raise self._unknown("nobody knows how widely data scatters")
        if given is None and self.dispersion is Dispersion.OPEN:
            raise InvalidParameterError(
                f"Loss '{self}' leaves the size of the noise open; pass dispersion, a positive "
                "number, as CPModel.dispersion(X) finds it."
            )
        if given not in (None, 1.0) and self.dispersion is Dispersion.FIXED:
            raise InvalidParameterError(
                f"Loss '{self}' says itself how widely data scatters; leave dispersion out. Got "
                f"{given!r}."
            )
        return 1.0 if given is None else float(given)

    def log_likelihood(self, x: Any, m: Any, dispersion: float | None = None) -> np.ndarray:
        """Return the logarithm of the probability (or density) of values under the model.

        Parameters
        ----------
        x, m : array
            The values that were observed, and the model values of their cells.
        dispersion : float, optional
            As for `tail_probability`.

        Returns
        -------
        ndarray
            In the shape that x and m have together. It is exact up to the eps inside the losses,
            but for "beta" beyond 1 (other than 2) and below 0, where it is the saddlepoint
            approximation of Tweedie's distributions.

        Examples
        --------
        >>> from smartcpd import losses
        >>> losses.get("poisson").log_likelihood([2, 9], 2.0).round(3)
        array([-1.307, -8.564])
        """
        d = self.checked_dispersion(dispersion)
        value = np.asarray(x, dtype=np.float64)
        return self.log_base(value, d) - self.values_at(value, m) / d

    def tail_probability(self, x: Any, m: Any, dispersion: float | None = None) -> np.ndarray:
        """Return two-sided tail probabilities of values, min(1, 2 min(P(X <= x), P(X >= x))).

        It is near 1 for a value in the middle, and near 0 for one far out on either side.

        Parameters
        ----------
        x : array
            The values that were observed.
        m : array
            The model values of their cells, `CPModel.values`.
        dispersion : float, optional
            How widely the data scatters, as `CPModel.dispersion` finds it; needed by losses that
            leave it open (gaussian, huber, gamma, beta). For poisson it is the unit in which
            amounts that are no counts scatter like counts, 1 by default.

        Returns
        -------
        ndarray
            In the shape that x and m have together; NaN where x is.

        Examples
        --------
        >>> from smartcpd import losses
        >>> losses.get("poisson").tail_probability([5, 9], 3.0).round(4)
        array([0.3695, 0.0076])
        """
        d = self.checked_dispersion(dispersion)
        value, model = np.broadcast_arrays(np.asarray(x, float), np.asarray(m, float))
        lower, upper = self.tails(value, model, d)
        probability = np.minimum(1.0, 2.0 * np.minimum(lower, upper))
        return np.where(np.isnan(value), np.nan, probability)

    @property
    def spelled_out(self) -> str:
        """``str(loss)`` with every digit of its parameters, which str rounds to six."""
        parameters = ", ".join(repr(float(v)) for v in self.fields if v is not None)
        return f"{self.name}({parameters})" if parameters else self.name

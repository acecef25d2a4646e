"""The model that a decomposition returns: factors, weights and the loss they were fitted under."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smartcpd import losses
from smartcpd._common.doors import doors
from smartcpd._common.factors import best_pairs, distributed, mode_cosines, normalized, signs
from smartcpd._common.model_cells import checked_indices, slabs, values_at
from smartcpd._data.choosing import Chosen, cells_by_label
from smartcpd._data.exposure import Exposure
from smartcpd._data.labelled import LabelledTensor
from smartcpd._data.labels import Mode, checked_modes
from smartcpd._fitting.model_exits import GoesElsewhere
from smartcpd._fitting.model_exposure import HasExposure
from smartcpd._fitting.model_verbs import MeetsData
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.losses import Loss


@dataclass(frozen=True, init=False, eq=False, repr=False)
class CPModel(MeetsData, HasExposure, GoesElsewhere):
    """A low-rank model: m_i = sum_r weights[r] * prod_n factors[n][i_n, r].

    Every method returns a new model; nothing changes this one. Its arrays are read-only copies.

    Components are numbered from 1 wherever people read of them: in frames, plots, pages, sentences
    and in the terminal. In code they are places, counted from 0: component 1 is ``model[0]``, and
    column 0 of every factor. A fit puts them in order of their shares, largest first, as `sort`
    does; after ``init=``, and beside what is fixed, they stay where they were put.

    Parameters
    ----------
    factors : list of ndarray (I_n x R)
        One matrix a mode. float32 is kept if all are float32, anything else becomes float64.
    weights : ndarray (R,), optional
        Ones by default.
    loss_function : Loss or str, optional
        The loss that links model values to data; needed by `loss`. Without one, `mean` and `full`
        give the model values themselves.
    modes : sequence of Mode, optional
        The names of the modes and the labels of their rows.
    exposure : Exposure, optional
        How much opportunity the cells had, where a fit was told: model values are then rates, and
        what is expected of the data is exposure x rate. `with_exposure` is the model of the data,
        `without_exposure` that of the rates alone.

    Examples
    --------
    >>> import numpy as np
    >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))], loss_function="bernoulli-odds")
    >>> model
    CPModel(shape=2x3, rank=1, loss=bernoulli-odds)
    >>> model.mean([[0, 2]])
    array([0.5])
    >>> len(model), [component.rank for component in model]
    (1, [1])
    """

    factors: list[np.ndarray]
    weights: np.ndarray
    loss_function: Loss | None
    modes: tuple[Mode, ...] | None
    exposure: Exposure | None

    def __init__(
        self,
        factors: Iterable[Any],
        weights: Any = None,
        loss_function: Loss | str | None = None,
        modes: Iterable[Mode] | None = None,
        exposure: Exposure | None = None,
    ) -> None:
        given = [np.asarray(A) for A in factors]
        if not given:
            raise InvalidParameterError("A model needs at least one factor; got none.")
        dtype = np.float32 if all(A.dtype == np.float32 for A in given) else np.float64
        frozen = [_frozen_copy(A, dtype, f"The factor of mode {n}", 2) for n, A in enumerate(given)]
        rank = frozen[0].shape[1]
        if any(A.size == 0 or A.shape[1] != rank for A in frozen):
            shapes = ", ".join(f"{A.shape[0]}x{A.shape[1]}" for A in frozen)
            raise InvalidParameterError(
                "Factors need at least one row each and the same number of columns, at least one; "
                f"got {shapes}."
            )
        scales = np.ones(rank) if weights is None else weights
        scales = _frozen_copy(scales, dtype, "The array of weights", 1)
        if scales.size != rank:
            raise InvalidParameterError(
                f"A model of rank {rank} needs {rank} weights; got {scales.size}."
            )
        loss = None if loss_function is None else losses.get(loss_function)
        named = None if modes is None else checked_modes(modes, [len(A) for A in frozen])
        values = {
            "factors": frozen,
            "weights": scales,
            "loss_function": loss,
            "modes": named,
            "exposure": exposure,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each mode."""
        return tuple(A.shape[0] for A in self.factors)

    @property
    def rank(self) -> int:
        """Number of components."""
        return self.weights.size

    @property
    def order(self) -> int:
        """Number of modes."""
        return len(self.factors)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        of = "" if self.exposure is None else f", {self.exposure.words}"
        return f"CPModel(shape={shape}, rank={self.rank}, loss={self.loss_function}{of})"

    def __len__(self) -> int:
        """The number of components."""
        return self.rank

    def __iter__(self) -> Iterator[CPModel]:
        """Go through the components, each a model of its own."""
        return (self[r] for r in range(self.rank))

    def __getitem__(self, components: Any) -> CPModel:
        """Return a model of some components: by place, a slice or a list of places, from 0."""
        chosen = np.atleast_1d(np.arange(self.rank)[components])
        if chosen.size == 0:
            raise InvalidParameterError(f"A model needs at least one component; {self!r} has some.")
        return self._take(chosen)

    def sel(self, **labels: Any) -> CPModel:
        """Return the model of chosen rows, by their labels.

        Parameters
        ----------
        **labels
            For each mode by its name: a label, and the mode goes, its row multiplied into the
            weights; a list of labels; or a slice from one label to another, both included.

        Returns
        -------
        CPModel

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel, Mode
        >>> modes = [Mode("city", ["Rome", "Oslo"]), Mode("year", [2023, 2024, 2025])]
        >>> model = CPModel([np.array([[1.0], [4.0]]), np.ones((3, 1))], modes=modes)
        >>> model.sel(city="Oslo", year=[2023, 2025])
        CPModel(shape=2, rank=1, loss=None)
        """
        chosen = Chosen.by_label(self.named_modes, labels)
        if len(chosen.single) == self.order:
            raise InvalidParameterError(
                "A single cell is no model; mean({...}) gives what is expected there."
            )
        rows = [A[chosen.rows[n]] if n in chosen.rows else A for n, A in enumerate(self.factors)]
        weights = self.weights * np.prod([rows[n][0] for n in chosen.single], axis=0)
        kept = [A for n, A in enumerate(rows) if n not in chosen.single]
        modes = None if self.modes is None else chosen.modes(self.modes)
        exposure = self.exposure
        if exposure is not None:
            exposure = exposure.of_rows(chosen.rows, chosen.single)
        return CPModel(kept, weights, self.loss_function, modes, exposure)

    @property
    def named_modes(self) -> tuple[Mode, ...]:
        """The modes, numbered where the data had no names."""
        if self.modes is not None:
            return self.modes
        return tuple(Mode.numbered(f"mode {n}", size) for n, size in enumerate(self.shape))

    def values(self, indices: Any) -> np.ndarray:
        """Return the model values m of chosen cells; rates, if the fit knew their exposure.

        Parameters
        ----------
        indices : (K x N) integer array, tuple of N integer arrays, or labels
            One cell a row, or one array a mode (these are broadcast against each other).
            Counted from 0; negative indices are refused. By labels: a DataFrame with a column for
            each mode, a dict of labels by mode such as ``{"city": ["Rome", "Oslo"], "year": 2024}``
            (broadcast), or rows of text.

        Returns
        -------
        ndarray
            K values, or as many as the broadcast arrays have, in their shape.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.array([[1.0], [4.0]]), np.array([[1.0], [2.0], [3.0]])])
        >>> model.values([[1, 2], [0, 1]])
        array([12.,  2.])
        """
        named = cells_by_label(self.named_modes, indices)
        places = checked_indices(indices if named is None else named, self.shape)
        return values_at(self.factors, self.weights, places)

    def mean(self, indices: Any) -> np.ndarray:
        """Return the expected data of chosen cells: their model values through the loss's link.

        Where the fit knew their exposure, model values are multiplied by it.

        Parameters
        ----------
        indices
            As for `values`.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.zeros((2, 1)), np.ones((3, 1))], loss_function="bernoulli-logit")
        >>> model.mean([[1, 2]])  # log-odds of 0
        array([0.5])
        """
        met = self.with_exposure()
        return met._through_link(met.values(indices))

    def full(self, max_bytes: float = 4e9) -> np.ndarray | LabelledTensor:
        """Return the expected data of every cell, as a dense array.

        Parameters
        ----------
        max_bytes : float
            A larger array is refused.

        Returns
        -------
        ndarray
            What `mean` gives, in the shape of the data; a `LabelledTensor`, which NumPy takes for
            an array, if the modes of the model have labels.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.array([[1.0], [4.0]]), np.array([[1.0], [2.0], [3.0]])])
        >>> model.full()
        array([[ 1.,  2.,  3.],
               [ 4.,  8., 12.]])
        """
        out = self._expected(max_bytes)
        return out if self.modes is None else LabelledTensor(out, self.modes)

    def _expected(self, max_bytes: float) -> np.ndarray:
        size = math.prod(self.shape) * self.weights.itemsize
        if size > max_bytes:
            raise InvalidParameterError(
                f"The dense array of {self!r} needs {size:,} bytes ({size / 1e9:,.1f} GB), more "
                f"than max_bytes={max_bytes:,.0f}. Ask for the cells you need with "
                "mean(indices), or pass a larger max_bytes."
            )
        out = np.empty(self.shape, self.weights.dtype)
        flat = out.reshape(-1)
        met = self.with_exposure()
        for where, m in slabs(met.factors, met.weights):
            flat[where] = self._through_link(m)
        return out

    def normalize(self, norm: int = 2) -> CPModel:
        """Scale the columns to unit l1 or l2 norm, and absorb their norms in the weights.

        A column of zeros stays as it is, and its component gets weight 0.

        Parameters
        ----------
        norm : {1, 2}
            Which norm.

        Returns
        -------
        CPModel

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> CPModel([np.ones((4, 1)), np.ones((9, 1))]).normalize().weights
        array([6.])
        """
        if norm not in (1, 2):
            raise InvalidParameterError(f"norm must be 1 or 2; got {norm!r}.")
        factors, weights = normalized(self.factors, self.weights, norm)
        return replace(self, factors=factors, weights=weights)

    def sort(self) -> CPModel:
        """Normalise, and put the components in order of their shares, as plots and pages do.

        The share of a component is its part of the sum of all model values; where some are
        negative, its part of the components' norms.

        Returns
        -------
        CPModel

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> CPModel([np.array([[1.0, 3.0]]), np.array([[1.0, 1.0]])]).sort().weights
        array([3., 1.])
        """
        return self.normalize()._take(doors.places_by_share(self))

    def align(self, other: CPModel) -> CPModel:
        """Put the components in the order, and give them the signs, of another model's.

        Components are paired so that their cosines, multiplied over the modes, have the largest
        sum. Columns that point away from their partner are then flipped: in pairs, or one together
        with the weight, so that no model value changes.

        Parameters
        ----------
        other : CPModel
            A model of the same shape and rank.

        Returns
        -------
        CPModel

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.eye(2), np.eye(2)], [5.0, 7.0])
        >>> model.align(CPModel([np.eye(2)[::-1], np.eye(2)[::-1]])).weights
        array([7., 5.])
        """
        if (self.shape, self.rank) != (other.shape, other.rank):
            raise IncompatibleError(
                f"Only models of one shape and rank can be aligned; got {self!r} and {other!r}."
            )
        cosines = mode_cosines(self.factors, other.factors)
        score = cosines.prod(axis=0) * np.outer(signs(self.weights), signs(other.weights))
        _, order = best_pairs(score.T)
        flips = signs(cosines[:, order, np.arange(self.rank)])
        model = self._take(order)
        return replace(
            model,
            factors=[A * s for A, s in zip(model.factors, flips, strict=True)],
            weights=model.weights * flips.prod(axis=0),
        )

    def absorb(self, mode: int = 0) -> CPModel:
        """Multiply the weights into the factor of one mode, leaving ones.

        Parameters
        ----------
        mode : int
            The mode whose factor takes the weights.

        Returns
        -------
        CPModel

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))], [4.0]).absorb(0)
        >>> model.factors[0].tolist(), model.weights.tolist()
        ([[4.0], [4.0]], [1.0])
        """
        if not isinstance(mode, int | np.integer) or not 0 <= mode < self.order:
            raise InvalidParameterError(
                f"mode must be one of 0 to {self.order - 1} for {self!r}; got {mode!r}."
            )
        factors = [A * self.weights if n == mode else A for n, A in enumerate(self.factors)]
        return replace(self, factors=factors, weights=np.ones(self.rank))

    def distribute(self) -> CPModel:
        """Spread the weights evenly over the factors, leaving ones.

        The sign of a negative weight goes to the first factor.

        Returns
        -------
        CPModel

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> CPModel([np.ones((1, 1)), np.ones((1, 1))], [4.0]).distribute().factors
        [array([[2.]]), array([[2.]])]
        """
        factors = distributed(self.factors, self.weights)
        return replace(self, factors=factors, weights=np.ones(self.rank))

    def _through_link(self, m: np.ndarray) -> np.ndarray:
        loss = self.loss_function
        return m if loss is None else loss.mean(m, loss.params)

    def _take(self, order: np.ndarray) -> CPModel:
        factors = [A[:, order] for A in self.factors]
        return replace(self, factors=factors, weights=self.weights[order])


def _frozen_copy(a: Any, dtype: type, name: str, ndim: int) -> np.ndarray:
    given = np.asarray(a)
    if given.dtype.kind not in "fiu" or given.ndim != ndim:
        raise InvalidParameterError(
            f"{name} must hold real numbers in {ndim} dimension{'s' * (ndim > 1)}; "
            f"got shape {given.shape} of {given.dtype}."
        )
    copy: np.ndarray = np.array(given, dtype, order="C")
    if not np.isfinite(copy).all():
        raise InvalidParameterError(f"{name} holds NaN or infinite values.")
    copy.flags.writeable = False
    return copy

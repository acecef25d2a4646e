"""Tensors whose modes have names and labels; those come off where data goes into a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from smartcpd._common.doors import doors
from smartcpd._common.extras import required
from smartcpd._data.choosing import Chosen
from smartcpd._data.labels import Mode, checked_modes
from smartcpd._data.storage.base import Storage
from smartcpd._data.storage.parts import part_of, stored_cells, without_modes
from smartcpd.errors import InvalidDataError


@dataclass(frozen=True, eq=False)
class LabelledTensor:
    """A tensor whose modes have names and labels; it goes wherever a tensor goes.

    Parameters
    ----------
    tensor : array or SparseTensor
        The data.
    modes : sequence of Mode or str
        One for each mode of the data, with a label for every row; a name alone numbers the rows.
    notes : tuple of str
        What was left out or decided where the tensor was made.
    date_format : mapping
        Columns of the table it was made of to the order of day and month that was found in them.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import LabelledTensor, Mode
    >>> modes = [Mode("city", ["Rome", "Oslo"]), Mode("year", [2023, 2024, 2025])]
    >>> X = LabelledTensor(np.arange(6).reshape(2, 3), modes)
    >>> X.shape
    (2, 3)
    >>> np.asarray(X.sel(city="Oslo", year=slice(2024, None)))
    array([4, 5])
    """

    tensor: Storage | np.ndarray
    modes: tuple[Mode, ...]
    notes: tuple[str, ...] = ()
    """What was left out or decided where the tensor was made."""
    date_format: Mapping[str, str] = field(default_factory=dict)
    """The order of day and month that was found in columns of a table, as `from_table` takes it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "modes", checked_modes(self.modes, self.tensor.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each mode."""
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        """Number of modes."""
        return len(self.modes)

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self.tensor.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All cells as a plain array; a sparse tensor of more than a gigabyte is refused."""
        whole = self.tensor.to_dense() if hasattr(self.tensor, "to_dense") else self.tensor
        return np.array(whole, dtype) if copy else np.asarray(whole, dtype)

    def __getitem__(self, key: Any) -> LabelledTensor:
        """Choose rows by their places, as in NumPy: numbers, slices and lists, mode by mode."""
        return self._part(Chosen.by_place(key, self.shape))

    def sel(self, **labels: Any) -> LabelledTensor:
        """Choose rows by their labels.

        Parameters
        ----------
        **labels
            For each mode by its name: a label, and the mode goes; a list of labels; or a slice from
            one label to another, both included.

        Returns
        -------
        LabelledTensor

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import LabelledTensor, Mode
        >>> modes = [Mode("city", ["Rome", "Oslo"]), Mode("year", [2023, 2024])]
        >>> X = LabelledTensor(np.array([[1, 2], [3, 4]]), modes)
        >>> np.asarray(X.sel(city="Oslo"))
        array([3, 4])
        """
        return self._part(Chosen.by_label(self.modes, labels))

    def _part(self, chosen: Chosen) -> LabelledTensor:
        part = without_modes(part_of(self.tensor, chosen.rows), chosen.single)
        return replace(self, tensor=part, modes=chosen.modes(self.modes))

    def to_xarray(self) -> Any:
        """Return an xarray DataArray with all cells and their labels.

        Returns
        -------
        xarray.DataArray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import LabelledTensor, Mode
        >>> modes = [Mode("city", ["Rome", "Oslo"]), Mode("year", [2023, 2024])]
        >>> X = LabelledTensor(np.array([[1, 2], [3, 4]]), modes)
        >>> int(X.to_xarray().sel(city="Rome", year=2024))
        2
        """
        xarray = required("xarray", "A tensor as an xarray DataArray")
        coords = {mode.name: mode.labels for mode in self.modes}
        return xarray.DataArray(np.asarray(self), coords, [mode.name for mode in self.modes])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each cell that is stored.

        Its columns are the modes, and "value"; a sparse tensor stores its nonzeros alone.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import LabelledTensor, Mode
        >>> modes = [Mode("city", ["Rome", "Oslo"]), Mode("year", [2023, 2024])]
        >>> X = LabelledTensor(np.array([[1, 2], [3, 4]]), modes)
        >>> X.to_frame().value.tolist()
        [1, 2, 3, 4]
        """
        pd = required("pandas", "A tensor as a DataFrame")
        columns, values = stored_cells(self.tensor)
        pairs = zip(self.modes, columns, strict=True)
        return pd.DataFrame({mode.name: mode.labels[c] for mode, c in pairs} | {"value": values})

    def __repr__(self) -> str:
        names = " x ".join(f"{mode.name} {len(mode):,}" for mode in self.modes)
        plain = isinstance(self.tensor, np.ndarray)
        what = f"{self.dtype} array" if plain else repr(self.tensor)
        return f"LabelledTensor({names}; {what})"

    def _repr_html_(self) -> str:
        return doors.shown_in_notebook(self)


def taken_off(X: Any) -> tuple[Any, tuple[Mode, ...] | None]:
    """Return the tensor alone, and the labels of its modes if it has any."""
    if isinstance(X, LabelledTensor):
        return X.tensor, X.modes
    if type(X).__module__.startswith("xarray.") and hasattr(X, "coords"):
        return _from_xarray(X)
    if is_frame(X):
        return _from_frame(X)
    if type(X).__module__.startswith("pyttb.") and isinstance(getattr(X, "data", 0), np.ndarray):
        return X.data, None
    return X, None


def is_frame(X: Any) -> bool:
    """Whether X is a table of pandas, polars or Dask: a matrix with names."""
    package = type(X).__module__.split(".")[0]
    return package in ("pandas", "polars", "dask", "dask_expr") and hasattr(X, "columns")


def _from_frame(X: Any) -> tuple[np.ndarray, tuple[Mode, ...] | None]:
    """Return the numbers of a table, its index and its columns."""
    X = X.compute() if hasattr(X, "compute") else X
    values = X.to_numpy()
    if values.dtype == object and any(isinstance(value, str) for value in values.flat):
        raise InvalidDataError(
            "X is a table with text in it, and a table is read as a matrix of numbers. If its rows "
            "are events or measurements, make a tensor of them first: "
            "smartcpd.from_table(X, modes=[...])."
        )
    if 0 in X.shape:
        return values, None
    index = getattr(X, "index", np.arange(len(X)))
    given = (getattr(index, "name", None), getattr(X.columns, "name", None))
    names = given if given[0] != given[1] else (None, None)
    rows = Mode(str(names[0] or "row"), index)
    return values, (rows, Mode(str(names[1] or "column"), X.columns))


def _from_xarray(X: Any) -> tuple[Any, tuple[Mode, ...]]:
    if not hasattr(X, "dims") or hasattr(X, "data_vars"):
        raise InvalidDataError(
            "X is an xarray Dataset, which holds several arrays; pass one of them, such as "
            f"X[{next(iter(X.data_vars), 'name')!r}]."
        )
    modes = []
    for dim, size in zip(X.dims, X.shape, strict=True):
        labels = X.coords[dim].values if dim in X.coords else np.arange(size)
        modes.append(Mode(str(dim), labels))
    # xarray does not say in public whether values have been read. Those that have not stay where
    # they are, for a reader of blocks.
    unread = X.chunks is None and not getattr(X.variable, "_in_memory", True)
    return X.variable if unread else X.data, tuple(modes)

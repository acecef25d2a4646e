"""The methods of `CPModel` that lead out of it: to files, tables, pictures and other libraries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from smartcpd._common.doors import doors
from smartcpd.losses import Loss

if TYPE_CHECKING:
    import pandas
    import polars
    import xarray

    from smartcpd._fitting.answers.intervals import Intervals
    from smartcpd._fitting.answers.relations import Relations


class GoesElsewhere:
    """The ways of a model to files, tables and pictures; each calls the module that does it."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write <path>.npz, the arrays, and <path>.json, the rest.

        Each file is replaced whole or not at all.

        Parameters
        ----------
        path : path
            The path, with or without the suffix .npz.

        Returns
        -------
        Path
            The path of the first file.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> path = CPModel([np.ones((2, 1)), np.ones((3, 1))]).save("model")
        >>> CPModel.load(path)
        CPModel(shape=2x3, rank=1, loss=None)
        """
        return doors.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], loss: Loss | str | None = None) -> Self:
        """Read a model written by `save`, or by ``smartcpd fit``.

        Parameters
        ----------
        path : path
            The path, with or without the suffix .npz, or the folder of a run.
        loss : Loss or str, optional
            Used instead of the saved loss. A model fitted under a custom loss needs it, because
            functions are not saved.

        Returns
        -------
        CPModel

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> path = CPModel([np.ones((2, 1)), np.ones((3, 1))]).save("model")
        >>> CPModel.load("model", loss="poisson")
        CPModel(shape=2x3, rank=1, loss=poisson)
        """
        return doors.load(path, loss)

    @overload
    def top(
        self, component: None = None, mode: int | str | None = None, k: int = 10
    ) -> list[dict[str, Any]]: ...
    @overload
    def top(
        self, component: int, mode: None = None, k: int = 10
    ) -> dict[str, list[tuple[Any, float]]]: ...
    @overload
    def top(self, component: int, mode: int | str, k: int = 10) -> list[tuple[Any, float]]: ...
    def top(self, component: int | None = None, mode: int | str | None = None, k: int = 10) -> Any:
        """Return the rows that components speak of most, with their shares as on the page.

        Parameters
        ----------
        component : int, optional
            Its place in the model, counted from 0; all components by default.
        mode : int or str, optional
            Its number or its name; all modes by default.
        k : int
            How many rows of a mode, at most.

        Returns
        -------
        list of (label, share)
            In order of decreasing magnitude. The shares of a column sum to 1; where the model has
            negative entries, they are entries relative to the largest. Of all modes, a dict of such
            lists by the modes' names; of all components, a list of dicts, with their numbers and
            their own shares.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel, Mode
        >>> modes = [Mode("drink", ["tea", "rye"]), Mode("day", [1, 2, 3])]
        >>> model = CPModel([np.array([[1.0], [4.0]]), np.ones((3, 1))], modes=modes)
        >>> model.top(0, "drink", 1)
        [('rye', 0.8)]
        """
        return doors.top(self, component, mode, k)

    def relate(
        self,
        mode: int | str,
        table: Any,
        *,
        on: str | None = None,
        intervals: Intervals | None = None,
    ) -> Relations:
        """Compare the loadings of a mode with what a table says of its rows.

        Numbers are compared by rank correlation, groups by whether their loadings rank alike; the
        probabilities are corrected for the number of comparisons. Nothing is fitted.

        Parameters
        ----------
        mode : int or str
            Its number or its name.
        table : DataFrame or dict of columns
            What is known of the rows: age, treatment, place.
        on : str, optional
            The column that holds the labels of the rows. By default the one that has the mode's
            name, or the index of a pandas frame; without either, rows are taken in order.
        intervals : Intervals, optional
            What `intervals` returned: the means of groups get intervals of their own.

        Returns
        -------
        Relations
            ``to_frame``, ``groups_frame`` and ``plot``; print it.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel, Mode
        >>> modes = [Mode("subject", ["ann", "bob", "cy"]), Mode("day", [1, 2])]
        >>> model = CPModel([np.array([[1.0], [2.0], [3.0]]), np.ones((2, 1))], modes=modes)
        >>> table = {"subject": ["cy", "bob", "ann"], "age": [50, 30, 10]}
        >>> round(model.relate("subject", table).rows[0].statistic, 3)
        1.0
        """
        return doors.relate(self, mode, table, on=on, intervals=intervals)

    def to_frame(self) -> pandas.DataFrame:
        """Return the factors as a pandas DataFrame, a row for each entry.

        Its columns are mode, label, component (counted from 1) and value. Labels are as they are in
        `named_modes`. Weights play no part: `absorb` or `distribute` them first if they should.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel, Mode
        >>> modes = [Mode("drink", ["tea", "rye"]), Mode("day", [1, 2, 3])]
        >>> model = CPModel([np.array([[1.0], [4.0]]), np.ones((3, 1))], modes=modes)
        >>> model.to_frame().query("mode == 'drink'").value.tolist()
        [1.0, 4.0]
        """
        return doors.to_frame(self)

    def to_polars(self) -> polars.DataFrame:
        """Return the factors as a Polars DataFrame; columns as for `to_frame`, labels as text.

        Returns
        -------
        polars.DataFrame

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel, Mode
        >>> modes = [Mode("drink", ["tea", "rye"]), Mode("day", [1, 2, 3])]
        >>> model = CPModel([np.array([[1.0], [4.0]]), np.ones((3, 1))], modes=modes)
        >>> model.to_polars().shape
        (5, 4)
        """
        return doors.to_polars(self)

    def to_xarray(self) -> xarray.Dataset:
        """Return the model as an xarray Dataset: weights, and a variable a mode with its labels.

        Returns
        -------
        xarray.Dataset

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel, Mode
        >>> modes = [Mode("drink", ["tea", "rye"]), Mode("day", [1, 2, 3])]
        >>> model = CPModel([np.array([[1.0], [4.0]]), np.ones((3, 1))], modes=modes)
        >>> model.to_xarray()["drink"].shape
        (2,)
        """
        return doors.to_xarray(self)

    def report(
        self,
        path: str | os.PathLike[str] = "report.html",
        X: Any = None,
        absent: str = "zero",
        *,
        mask: Any = None,
        weights: Any = None,
        title: str | None = None,
    ) -> Path:
        """Write a page about this model: one file of HTML that needs no network.

        Parameters
        ----------
        path : path
            The file, which is replaced if it exists.
        X : optional
            The data that the model is about: how well it is described, and what may be wrong, then
            stands on the page too.
        absent, mask, weights
            As for `loss`.
        title : str, optional
            By default the names of the modes.

        Returns
        -------
        Path
            The path of the file.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))], loss_function="poisson")
        >>> model.report("page.html").name
        'page.html'
        """
        return doors.report(self, path, X, absent, mask=mask, weights=weights, title=title)

    def plot(self, n_components: int | None = None, axes: Any = None) -> Any:
        """Draw all components, or the largest; see `smartcpd.plots.plot_model`.

        Parameters
        ----------
        n_components : int, optional
            How many, the largest first; all by default.
        axes : array of Matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        array of Matplotlib axes
            A row for each component, a column for each mode.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((2, 3)), np.ones((3, 3))])
        >>> model.plot(n_components=1).shape
        (1, 2)
        """
        return doors.plot_model(self, n_components, axes)

    def plot_component(self, component: int, mode: int | str | None = None, ax: Any = None) -> Any:
        """Draw one component; see `smartcpd.plots.plot_component`.

        Parameters
        ----------
        component : int
            Its place in the model, counted from 0.
        mode : int or str, optional
            Its number or its name; all modes by default.
        ax : Matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Matplotlib axes
            Those of the mode, or an array of them.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel, Mode
        >>> modes = [Mode("drink", ["tea", "rye"]), Mode("day", [1, 2, 3])]
        >>> model = CPModel([np.array([[1.0], [4.0]]), np.ones((3, 1))], modes=modes)
        >>> model.plot_component(0, "drink").get_title()
        'drink of component 1: 100 % of the total'
        """
        return doors.plot_component(self, component, mode, ax)

    def plot_comparison(self, other: Any, ax: Any = None) -> Any:
        """Draw which components another model has too; see `smartcpd.plots.plot_comparison`.

        Parameters
        ----------
        other : CPModel
            A model of data of the same shape.
        ax : Matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Matplotlib axes

        Examples
        --------
        >>> from smartcpd import CPModel, datasets
        >>> model = CPModel(datasets.count((6, 5, 4), rank=2, random_state=0).factors)
        >>> [text.get_text() for text in model.plot_comparison(model[[1, 0]]).get_xticklabels()]
        ['2', '1']
        """
        return doors.plot_comparison(self, other, ax)

    def plot_scree(self, ax: Any = None) -> Any:
        """Draw the shares of the components; see `smartcpd.plots.plot_scree`.

        Parameters
        ----------
        ax : Matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Matplotlib axes

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> model = CPModel([np.ones((2, 2)), np.ones((3, 2))], [3.0, 1.0])
        >>> [round(bar.get_height()) for bar in model.plot_scree().patches]
        [75, 25]
        """
        return doors.plot_scree(self, ax)

    def to_tensorly(self) -> Any:
        """Return the model as a ``tensorly.cp_tensor.CPTensor``, in TensorLy's current backend.

        Returns
        -------
        CPTensor
            With the weights and the factors of this model; labels and the loss stay behind.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> weights, factors = CPModel([np.ones((2, 1)), np.ones((3, 1))], [4.0]).to_tensorly()
        >>> weights, [A.shape for A in factors]
        (array([4.]), [(2, 1), (3, 1)])
        """
        return doors.to_tensorly(self)

    @classmethod
    def from_tensorly(cls, cp: Any, loss_function: Loss | str | None = None) -> Self:
        """Make a model from a TensorLy CPTensor or a pair (weights, factors).

        Parameters
        ----------
        cp : CPTensor or pair
            The model; weights of None are ones.
        loss_function : Loss or str, optional
            The loss that it was fitted under.

        Returns
        -------
        CPModel

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> CPModel.from_tensorly((None, [np.ones((2, 1)), np.ones((3, 1))]))
        CPModel(shape=2x3, rank=1, loss=None)
        """
        return doors.from_tensorly(cp, loss_function)

    def to_pyttb(self) -> Any:
        """Return the model as a ``pyttb.ktensor``.

        Returns
        -------
        pyttb.ktensor
            In float64; labels and the loss stay behind.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import CPModel
        >>> theirs = CPModel([np.ones((2, 1)), np.ones((3, 1))], [4.0]).to_pyttb()
        >>> theirs.full().data
        array([[4., 4., 4.],
               [4., 4., 4.]])
        """
        return doors.to_pyttb(self)

    @classmethod
    def from_pyttb(cls, ktensor: Any, loss_function: Loss | str | None = None) -> Self:
        """Make a model from a ``pyttb.ktensor``.

        Parameters
        ----------
        ktensor : pyttb.ktensor
            The model.
        loss_function : Loss or str, optional
            The loss that it was fitted under.

        Returns
        -------
        CPModel

        Examples
        --------
        >>> import numpy as np
        >>> import pyttb
        >>> from smartcpd import CPModel
        >>> theirs = pyttb.ktensor([np.ones((2, 1)), np.ones((3, 1))], np.array([4.0]))
        >>> CPModel.from_pyttb(theirs, "poisson")
        CPModel(shape=2x3, rank=1, loss=poisson)
        """
        return doors.from_pyttb(ktensor, loss_function)

    def _repr_html_(self) -> str:
        return doors.shown_in_notebook(self)

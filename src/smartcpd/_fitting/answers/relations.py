"""How loadings go with what a table says of them: the result of `CPModel.relate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from smartcpd._common.doors import doors
from smartcpd._common.extras import required


class Relation(NamedTuple):
    """How the loadings of one component go with one column of the table.

    Attributes
    ----------
    component : int
        Counted from 1.
    column : str
        The column of the table.
    kind : str
        "number" for a rank correlation (Spearman), "group" for a comparison of groups
        (Kruskal and Wallis).
    statistic : float
        The correlation, between -1 and 1; or the share of the variance of ranks that lies between
        the groups, between 0 and 1.
    p : float
        The probability of a relation at least as strong if there were none.
    q : float
        The same, corrected for the number of relations that were looked at (Benjamini and
        Hochberg).
    n : int
        Number of rows for which both are known.
    """

    component: int
    column: str
    kind: str
    statistic: float
    p: float
    q: float
    n: int


class GroupMean(NamedTuple):
    """The mean loading of a group of rows, with its interval where intervals were given."""

    component: int
    column: str
    group: str
    n: int
    mean: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Relations:
    """How the loadings of a mode go with the columns of a table.

    Loadings are those of the normalised model: columns of unit length.

    Attributes
    ----------
    model : CPModel
        The normalised model.
    mode : int
        The mode, by number.
    columns : dict of arrays
        What the table says of the rows of the mode, in their order; numbers as float64 with NaN,
        groups as text with "" where nothing is known.
    rows : tuple of Relation
        One for each component and column, in this order.
    groups : tuple of GroupMean
        The mean loadings of groups.
    unknown : tuple of str
        Rows of the mode that the table does not name.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel
    >>> model = CPModel([np.array([[1.0], [2.0], [3.0]]), np.ones((2, 1))])
    >>> found = model.relate(0, {"age": [10, 30, 50], "group": ["a", "a", "b"]})
    >>> found.to_frame()[["column", "kind", "n"]].values.tolist()
    [['age', 'number', 3], ['group', 'group', 3]]
    >>> found.groups_frame()["mean"].round(2).tolist()
    [0.4, 0.8]
    >>> found.plot("age")[0].get_xlabel()
    'age'
    """

    model: Any
    """A `CPModel`, which names this class as what a method of its returns."""
    mode: int
    columns: dict[str, np.ndarray]
    rows: tuple[Relation, ...]
    groups: tuple[GroupMean, ...]
    unknown: tuple[str, ...] = ()

    def to_frame(self) -> Any:
        """Return the relations as a pandas DataFrame, the clearest first.

        Returns
        -------
        pandas.DataFrame
            With the fields of a relation as columns: component, column, kind, statistic, p, q, n.
        """
        pd = required("pandas", "Relations as a DataFrame")
        ordered = sorted(self.rows, key=lambda row: row.q)
        return pd.DataFrame(ordered, columns=Relation._fields)

    def groups_frame(self) -> Any:
        """Return the mean loadings of groups as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            With the columns component, column, group, n, mean, lower and upper.
        """
        pd = required("pandas", "Groups as a DataFrame")
        return pd.DataFrame(self.groups, columns=GroupMean._fields)

    def plot(self, column: str | None = None) -> Any:
        """Draw one column against the loadings; see `smartcpd.plots.plot_relation`.

        Parameters
        ----------
        column : str, optional
            The column of the table; by default the one with the clearest relation.

        Returns
        -------
        array of Matplotlib axes
            One for each component.
        """
        return doors.plot_relation(self, column)

    def __repr__(self) -> str:
        clear = sum(row.q < 0.05 for row in self.rows)
        name = self.model.named_modes[self.mode].name
        return (
            f"Relations({name!r} with {len(self.columns)} columns, {clear} of {len(self.rows)} "
            "clear at q < 0.05)"
        )

    def __str__(self) -> str:
        lines = ["component  column                    kind    statistic        q     n"]
        for row in sorted(self.rows, key=lambda row: row.q):
            name = row.column if len(row.column) <= 24 else row.column[:23] + "…"
            lines.append(
                f"{row.component:>9}  {name:<24}  {row.kind:<6}  {row.statistic:>9.2f}  "
                f"{row.q:>7.2g}  {row.n:>4}"
            )
        if self.unknown:
            lines.append(f"{len(self.unknown)} rows are not in the table: {self.unknown[0]}, ...")
        return "\n".join(lines)

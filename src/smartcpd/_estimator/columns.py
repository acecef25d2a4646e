"""The columns of a table, compared with those of the table that was fitted.

The words of warnings and errors are those that scikit-learn's checks of estimators look for.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from smartcpd.errors import InvalidDataError, InvalidParameterError

MOST = 5
"""Number of names that are listed."""


def compare_columns(known: Sequence[str] | None, X: Any, estimator: str) -> None:
    """Refuse a table with other columns than the fit had; warn where only one of them has names."""
    given = _names_of(X)
    if known is None and given is None:
        return
    if known is None:
        said = f"X has feature names, but {estimator} was fitted without feature names"
        warnings.warn(said, stacklevel=4)
    elif given is None:
        said = f"X does not have valid feature names, but {estimator} was fitted with feature names"
        warnings.warn(said, stacklevel=4)
    elif list(known) != given:
        new, gone = sorted(set(given) - set(known)), sorted(set(known) - set(given))
        lines = [
            "The feature names should match those that were passed during fit.",
            *_listed("Feature names unseen at fit time:", new),
            *_listed("Feature names seen at fit time, yet now missing:", gone),
        ]
        if not (new or gone):
            lines.append("Feature names must be in the same order as they were in fit.")
        raise InvalidDataError("\n".join([*lines, ""]))


def check_given_names(known: Sequence[str] | None, n_columns: int, given: Any) -> None:
    """Refuse names that are not those of the columns that the fit had."""
    if len(given) != n_columns:
        raise InvalidParameterError(
            f"input_features should have length equal to the number of columns of the fit, "
            f"{n_columns}; got {len(given)}."
        )
    if known is not None and list(given) != list(known):
        first = next(n for n, pair in enumerate(zip(given, known, strict=True)) if len({*pair}) > 1)
        raise InvalidParameterError(
            "input_features is not equal to feature_names_in_, the columns of the fit: column "
            f"{first} is {known[first]!r}; got {given[first]!r}."
        )


def _names_of(X: Any) -> list[str] | None:
    """Return the columns of a table, if their names are text."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _listed(heading: str, names: Sequence[str]) -> list[str]:
    rest = ["- ..."] if len(names) > MOST else []
    return [heading, *(f"- {name}" for name in names[:MOST]), *rest] if names else []

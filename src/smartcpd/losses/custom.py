"""A user's own loss, at compiled speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import NumbaError

from smartcpd._kernels.compiling import inline
from smartcpd.errors import InvalidParameterError
from smartcpd.losses.base import Data, Domain, Loss


@dataclass(frozen=True)
class CustomLoss(Loss):
    """A loss given by two functions of two numbers; make one with `custom`.

    Parameters
    ----------
    value_function, derivative_function : callable (x, m) -> float
        The loss of one cell, and its derivative with respect to the model value m.
    mean_function : callable
        The expected values of x for an array of m.
    label : str
        What messages and saved models call it.
    positive : bool
        Whether the model must not be negative.

    Examples
    --------
    >>> from smartcpd import losses
    >>> losses.custom(lambda x, m: (x - m) ** 2.0, lambda x, m: 2.0 * (m - x)).name
    'custom'
    """

    value_function: Callable[[float, float], float]
    derivative_function: Callable[[float, float], float]
    mean_function: Callable[[Any], Any]
    label: str = "custom"
    positive: bool = False
    on_disk = False
    data = Data.REAL

    @property
    def name(self) -> str:  # type: ignore[override]
        """What messages and saved models call it."""
        return self.label

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        """The model values for which the loss is defined."""
        return Domain.NONNEGATIVE if self.positive else Domain.REAL

    @property
    def default_mirror(self) -> str:  # type: ignore[override]
        """The mirror map of stochastic steps, unless another is asked for."""
        return "entropy" if self.positive else "quadratic"

    @property
    def params(self) -> tuple[float, float]:
        return 0.0, 0.0

    @property
    def blueprint(self) -> Any:
        return self

    def formula(self, name: str, dtype: str) -> Any:  # type: ignore[override]
        f = inline(getattr(self, f"{name}_function"), dtype)

        def with_unused_params(x, m, p):
            return f(x, m)

        return with_unused_params

    @property
    def mean(self) -> Any:
        return lambda m, p: self.mean_function(m)

    @property
    def spelled_out(self) -> str:
        return self.label

    def __str__(self) -> str:
        return self.label


def custom(
    value: Callable[[float, float], float],
    derivative: Callable[[float, float], float],
    *,
    domain: str = "real",
    mean: Callable[[Any], Any] | None = None,
    name: str = "custom",
    data_range: tuple[float, float] = (0.0, 3.0),
) -> CustomLoss:
    """Make a loss of your own from two functions of single numbers.

    It names no distribution: what needs one (surprise, likelihoods, bootstrap) is refused, and
    intervals measure the noise on the data. A subclass of `Loss` can define all that.

    Parameters
    ----------
    value, derivative : callable (x, m) -> float
        The loss of one cell and its derivative with respect to the model value m. Plain Python,
        with ``math`` or NumPy functions of numbers; they are compiled, so they can use the same
        subset of Python as ``numba.njit``. Write literals as floats (``1.0``).
    domain : {"real", "nonnegative"}
        Which m the loss is defined for.
    mean : callable, optional
        The expected value of x for an array of m (the inverse link); identity by default.
    name : str
        What messages and saved models call it.
    data_range : (float, float)
        Where the derivative is checked against finite differences of the value.

    Returns
    -------
    CustomLoss
        Usable wherever the name of a loss is.

    Examples
    --------
    >>> import math
    >>> from smartcpd import losses
    >>> kl = losses.custom(
    ...     lambda x, m: m - x * math.log(m + 1e-9),
    ...     lambda x, m: 1.0 - x / (m + 1e-9),
    ...     domain="nonnegative",
    ... )
    >>> round(kl.value_function(2.0, 1.0), 6)
    1.0
    """
    if domain not in ("real", "nonnegative"):
        raise InvalidParameterError(f"domain must be 'real' or 'nonnegative'; got {domain!r}.")
    value, derivative = (_plain(f, name) for f in (value, derivative))
    _check_derivative(value, derivative, domain, data_range, name)
    return CustomLoss(value, derivative, mean or _identity, name, domain == "nonnegative")


def _identity(m: Any) -> Any:
    return m


def _plain(function: Any, name: str) -> Callable[[float, float], float]:
    """The Python function itself, once it is known to compile."""
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType):
        raise InvalidParameterError(
            f"The formulas of loss {name!r} must be plain functions of (x, m); got {function!r}. "
            "Wrap it: lambda x, m: ..."
        )
    try:
        inline(function).compile((types.float64, types.float64))
    except NumbaError as error:
        reason = str(error).strip().splitlines()[-1]
        raise InvalidParameterError(
            f"{function.__name__!r} of loss {name!r} cannot be compiled: {reason} "
            "Use numbers, math and NumPy functions of numbers, and helpers under numba.njit only."
        ) from None
    return function


def _check_derivative(
    value: Callable[[float, float], float],
    derivative: Callable[[float, float], float],
    domain: str,
    data_range: tuple[float, float],
    name: str,
) -> None:
    """Compare the derivative with central differences, before any data is seen."""
    points = (0.05, 0.3, 0.9, 1.7, 4.0)
    models = points if domain == "nonnegative" else (*(-m for m in points), *points)
    for x in np.linspace(*data_range, 4):
        for m in models:
            h = 1e-5 * max(1.0, abs(m))
            try:
                numeric = (value(float(x), m + h) - value(float(x), m - h)) / (2 * h)
                given = float(derivative(float(x), m))
            except (ValueError, ZeroDivisionError, OverflowError) as error:
                raise InvalidParameterError(
                    f"loss {name!r} fails at x={x:g}, m={m:g}: {error}. "
                    f"Check its domain ({domain!r}) or pass data_range=(low, high)."
                ) from error
            if not abs(given - numeric) <= 1e-4 * max(1.0, abs(numeric)):
                raise InvalidParameterError(
                    f"The derivative of loss {name!r} is wrong at x={x:g}, m={m:g}: it returns "
                    f"{given:.6g}, finite differences of the value give {numeric:.6g}. "
                    "Correct the derivative (it is taken with respect to m)."
                )

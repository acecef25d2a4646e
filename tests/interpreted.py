"""Compiled functions as Python runs them, with all that they call."""

from types import FunctionType

from numba.core.dispatcher import Dispatcher


def interpreted(function):
    """The Python function of a compiled one; those that it calls by name are Python's as well."""
    function = getattr(function, "py_func", function)
    names = {
        name: interpreted(value) if isinstance(value, Dispatcher) else value
        for name, value in function.__globals__.items()
        if name in function.__code__.co_names
    }
    return FunctionType(function.__code__, names, function.__name__)
